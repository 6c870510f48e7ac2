"""How long a first look takes: the same twelve questions over one sshd, by ddprobe and by what people use today.

    python -m benchmarks.look [--rounds 9]

Every contender is a whole process, from start to exit, cold: connecting is part of it. Rounds are interleaved, and
what is printed are ratios of medians within this one run; absolute times are this machine's. Also timed: `ddprobe
--help` and `--version` against `fab --help` and bare Python. Aims (ratios): loopback ≤ 1.3 of ControlMaster, with
20 ms of round trip ≤ 0.6 of it, --help ≤ 1.0 of `fab --help`, --version ≤ 2 of bare Python.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import statistics
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.real import sshd as real

QUESTIONS = [
    "uname -s -r -m", "id -un", "hostname", "date +%s.%N", "cat /proc/loadavg", "cat /proc/meminfo",
    "cat /proc/version", "cat /proc/cpuinfo", "ls -1 /", "readlink -f /proc/self/ns/mnt", "cat /etc/os-release",
    "wc -l /etc/passwd",
]  # fmt: skip

DDPROBE = """
import sys, threading
from ddprobe.model import Command, Host
from ddprobe.redact import Redactor
from ddprobe.sessions import open_session
host = Host(name="gpu1", address="127.0.0.1", port=int(sys.argv[1]), user=sys.argv[2])
session = open_session(host, Redactor(), threading.Event())
questions = [Command(key=f"q{n}", argv=tuple(line.split())) for n, line in enumerate(sys.argv[3:])]
answers = session.ask(questions)
session.sweep()
session.close()
assert all(answer.whole for answer in answers), [answer.trouble for answer in answers]
"""

FABRIC = """
import sys
import fabric
address = dict(host="127.0.0.1", port=int(sys.argv[1]), user=sys.argv[2], connect_kwargs={"key_filename": sys.argv[3]})
with fabric.Connection(**address) as connection:
    for line in sys.argv[4:]:
        assert connection.run(line, hide=True, in_stream=False).ok
"""


def contenders(server: real.Server, port: int) -> dict[str, Sequence[str]]:
    """Name → argv of a whole process that asks the twelve questions."""
    away = f"-p {port} {server.user}@127.0.0.1"
    socket = server.folder / f"control-{port}"
    shared = f"-o ControlMaster=auto -o ControlPersist=30 -o ControlPath={shlex.quote(str(socket))}"

    def each(options: str) -> str:
        return "\n".join(f"ssh {options} {away} {shlex.quote(q)} >/dev/null || exit 9" for q in QUESTIONS)

    key = str(server.laptop.key)
    return {
        "ddprobe": (sys.executable, "-c", DDPROBE, str(port), server.user, *QUESTIONS),
        "ssh, 12 times": ("/bin/sh", "-c", each("")),
        "ssh with ControlMaster": (
            "/bin/sh",
            "-c",
            f"{each(shared)}\nssh {shared} -O exit {away} 2>/dev/null",
        ),
        "fabric Connection.run": (sys.executable, "-c", FABRIC, str(port), server.user, key, *QUESTIONS),
    }


def measure(commands: Mapping[str, Sequence[str]], rounds: int) -> dict[str, float]:
    """Median seconds of each command as a whole process, rounds interleaved, one unmeasured round first."""
    times: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, argv in commands.items():
            started = time.perf_counter()
            subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            if number:
                times[name].append(time.perf_counter() - started)
    return {name: statistics.median(series) for name, series in times.items()}


def show(title: str, medians: Mapping[str, float], subject: str, peer: str, aim: float) -> None:
    """Print medians and their ratios to the peer."""
    sys.stdout.write(f"\n{title}\n")
    for name, median in medians.items():
        ratio = median / medians[peer]
        mark = "" if name != subject else f"   aim ≤ {aim}: {'met' if ratio <= aim else 'MISSED'}"
        sys.stdout.write(f"  {name:24} {1000 * median:8.0f} ms   {ratio:5.2f} of {peer}{mark}\n")
    sys.stdout.flush()


@contextlib.contextmanager
def delayed(port: int, milliseconds: int) -> Iterator[int]:
    """A port that leads to `port` with that round trip added."""
    relay = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.relay", str(port), str(milliseconds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert relay.stdin is not None
    assert relay.stdout is not None
    try:
        yield int(relay.stdout.readline())
    finally:
        relay.stdin.close()
        relay.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument(
        "--rounds", type=int, default=9, help="measured rounds of each contender (default: 9)"
    )
    rounds = parser.parse_args().rounds
    with contextlib.ExitStack() as stack:
        laptop = stack.enter_context(real.laptop())
        if os.geteuid() == 0:
            who = stack.enter_context(real.account("/bin/dash"))
            sys.stdout.write("The host's login shell is dash, which reads no rc file for commands.\n")
        else:
            who = None
            sys.stdout.write("Not root: the host's login shell is yours, with whatever its rc files cost.\n")
        server = stack.enter_context(real.server(laptop, who=who))
        known = laptop.known_hosts.read_text()
        sys.stdout.write(
            f"{len(QUESTIONS)} questions, {rounds} rounds, medians of whole processes, connecting included.\n"
        )
        medians = measure(contenders(server, server.port), rounds)
        show("Loopback", medians, "ddprobe", "ssh with ControlMaster", 1.3)
        far = stack.enter_context(delayed(server.port, 20))
        laptop.known_hosts.write_text(known + known.replace(f":{server.port} ", f":{far} "))
        medians = measure(contenders(server, far), rounds)
        show("20 ms of round trip added", medians, "ddprobe", "ssh with ControlMaster", 0.6)

    scripts = Path(sysconfig.get_path("scripts"))
    start = {
        "ddprobe --version": (str(scripts / "ddprobe"), "--version"),
        "python -c pass": (sys.executable, "-c", "pass"),
        "ddprobe --help": (str(scripts / "ddprobe"), "--help"),
        "fab --help": (str(scripts / "fab"), "--help"),
    }
    medians = measure(start, 2 * rounds)
    pick = ("ddprobe --version", "python -c pass")
    show("Start-up", {name: medians[name] for name in pick}, *pick, aim=2.0)
    pick = ("ddprobe --help", "fab --help")
    show("Help", {name: medians[name] for name in pick}, *pick, aim=1.0)


if __name__ == "__main__":
    main()
