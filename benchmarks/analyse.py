"""How long a large decode log takes: `recognise` against a plain loop with one regular expression per line.

    python -m benchmarks.analyse [--mb 1024] [--rounds 1]

Both read the same file in the same run, and what counts is their ratio; absolute times (the processor's) are this
machine's. `plain` also turns the four numbers into floats and adds them up, `bare` does not; `evidence` is all of
`ddprobe.evidence`, which sets aside the other lines of the log too. Aim: both ≤ 2 × `bare`, less than 150 MB.
"""

from __future__ import annotations

import argparse
import functools
import random
import re
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

from ddprobe import evidence
from ddprobe.evidence import decode_logs
from ddprobe.evidence.document import Document

PIECE = 1024 * 1024
LINE = re.compile(
    r"#running-req: (\d+), .*?accept len: ([\d.]+), accept rate: ([\d.]+), .*?gen throughput \(token/s\): ([\d.]+)"
)


def write(path: Path, size: int) -> None:
    """A server's log of that many bytes: bursts of requests, one prefill line each, then decode lines."""
    draw = random.Random(7)
    now = datetime(2026, 11, 30)
    written = 0
    with path.open("w", encoding="ascii") as file:
        while written < size:
            lines = []
            running = draw.choice((1, 1, 2, 4, 8, 17, 32))
            context = draw.choice((900, 4000, 16000, 64000, 130000))
            stamp = f"[{now:%Y-%m-%d %H:%M:%S} TP0]"
            lines.append(
                f"{stamp} Prefill batch, #new-seq: {running}, #new-token: {context}, #cached-token: 0, token usage: 0.00, "
                f"#running-req: 0, #queue-req: 0, #pending-token: 0, cuda graph: False, input throughput (token/s): 9000.00"
            )
            for _ in range(30):
                now += timedelta(milliseconds=400)
                accepted = draw.randint(0, 280)
                context += 200
                tokens = running * context
                lines.append(
                    f"[{now:%Y-%m-%d %H:%M:%S} TP0] Decode batch, #running-req: {running}, #token: {tokens}, "
                    f"token usage: {tokens / 5e6:.2f}, accept len: {1 + accepted / 40:.2f}, "
                    f"accept rate: {accepted / 280:.2f}, cuda graph: True, "
                    f"gen throughput (token/s): {draw.uniform(50, 900):.2f}, #queue-req: 0"
                )
            text = "\n".join(lines) + "\n"
            written += len(text)
            file.write(text)


def pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece


def plain(path: Path) -> str:
    """What one would write in two minutes."""
    lines, commits, rates, speeds = 0, 0.0, 0.0, 0.0
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            found = LINE.search(line)
            if found:
                lines += 1
                commits += float(found[2])
                rates += float(found[3])
                speeds += float(found[4])
    return (
        f"{lines:,} lines, mean commit {commits / lines:.2f}, {rates / lines:.2f}, {speeds / lines:.1f} tok/s"
    )


def bare(path: Path) -> str:
    """The same loop with nothing but its regular expression."""
    lines = 0
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            if LINE.search(line):
                lines += 1
    return f"{lines:,} lines"


def recognised(path: Path) -> str:
    document = Document("log", functools.partial(pieces, path))
    found = decode_logs.recognise(document, document.sample())
    return found.what if found else "nothing"


def understood(path: Path) -> str:
    document = Document("log", functools.partial(pieces, path), large=True)
    return ", ".join(found.what for found in evidence.recognise(document).found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--mb", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=1)
    args = parser.parse_args()
    # In the order of growing memory: the peak is the whole process's.
    ways: dict[str, Callable[[Path], str]] = {
        "bare": bare, "plain": plain, "recognise": recognised, "evidence": understood,
    }  # fmt: skip
    best = dict.fromkeys(ways, float("inf"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "server.log"
        write(path, args.mb * 1024 * 1024)
        print(f"{path.stat().st_size / 2**20:.0f} MB")
        for _ in range(args.rounds):
            for name, way in ways.items():
                began = time.process_time()
                said = way(path)
                took = time.process_time() - began
                best[name] = min(best[name], took)
                unit = 2**20 if sys.platform == "darwin" else 2**10
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
                print(f"{name:10} {took:7.2f} s   peak {peak:4.0f} MB   {said}")
    for name in ("recognise", "evidence"):
        print(
            f"{name} / bare {best[name] / best['bare']:.2f}   {name} / plain {best[name] / best['plain']:.2f}"
        )
    return 0 if max(best["recognise"], best["evidence"]) <= 2 * best["bare"] else 1


if __name__ == "__main__":
    sys.exit(main())
