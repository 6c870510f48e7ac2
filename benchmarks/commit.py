"""What a commit probe costs beside the server's own work, and what its nested plan saves.

    python -m benchmarks.commit [--contexts 1k,4k,8k,16k]

A real llama-server (set up by `tests/run`) is probed through a real sshd on loopback, once as planned and once with
every prompt computed whole (`--cold`). Printed: the probe's wall time beyond the time that the server itself says it
computed (aim: at most 3 % or 1 s), and the prompt tokens computed, by the server's own count of cached ones, cold
against nested (aim: at least 3 times fewer).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

from tests.real import sshd as real
from tests.real.servers.llamacpp import BAD_DRAFTER, serving

ARMS = "repeat,prose"


def probe(folder: Path, hosts: Path, *words: str) -> tuple[dict[str, Any], Path, float]:
    """One `commit-probe` as a whole process: its report, the report's folder and its seconds."""
    reports = folder / f"reports-{len(list(folder.glob('reports-*')))}"
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "ddprobe", "commit-probe", *words, "--json", "--fail-on", "never"],
        env={**os.environ, "DDPROBE_HOSTS": str(hosts), "DDPROBE_REPORTS": str(reports)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - started
    assert done.returncode in (0, 4), done.stderr
    (made,) = reports.iterdir()
    return json.loads(done.stdout), made, seconds


def requests(report: dict[str, Any]) -> list[dict[str, Any]]:
    facts = [fact for step in report["steps"] for fact in step["facts"]]
    return [f for f in facts if f["type"] == "CommitRequest" and not f["error"]]


def computed(report: dict[str, Any]) -> int:
    """Prompt tokens of the points that the server computed, by its own count of what its cache served."""
    return sum(r["prompt_tokens"] - r["cached_tokens"] for r in requests(report) if r["purpose"] == "point")


def own_seconds(report: dict[str, Any], folder: Path) -> float:
    """What the server says it computed: prompt and prediction of every request."""
    total = 0.0
    for request in requests(report):
        body = (folder / request["source"][0]["artefact"]).read_text(encoding="utf-8")
        last = [json.loads(line[6:]) for line in body.splitlines() if line.startswith("data: {")][-1]
        total += (last["timings"]["prompt_ms"] + last["timings"]["predicted_ms"]) / 1000
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--contexts", default="1k,4k,8k,16k")
    contexts = parser.parse_args().contexts
    with (
        tempfile.TemporaryDirectory() as place,
        real.laptop() as laptop,
        real.server(laptop) as server,
        serving(*BAD_DRAFTER) as llama,
    ):
        folder = Path(place)
        entry = {"address": "127.0.0.1", "port": server.port, "user": server.user}
        hosts = folder / "hosts.yaml"
        hosts.write_text(
            yaml.safe_dump({"hosts": {"gpu1": {**entry, "url": llama.base, "engine": "llamacpp"}}})
        )
        common = ("--contexts", contexts, "--arms", ARMS, "--seed", "1")
        nested, made, seconds = probe(folder, hosts, *common)
        cold, _, _ = probe(folder, hosts, *common, "--cold")
        own = own_seconds(nested, made)
    beyond = seconds - own
    print(f"llama-server, {contexts}, {ARMS}, through sshd on loopback")
    print(
        f"  wall time beyond the server's own: {beyond:.2f} s, {beyond / own:.1%} of {own:.1f} s (aim: 3 % or 1 s)"
    )
    fewer = computed(cold) / computed(nested)
    print(
        f"  prompt tokens computed: nested {computed(nested)}, cold {computed(cold)}: {fewer:.1f} times fewer (aim: 3)"
    )


if __name__ == "__main__":
    main()
