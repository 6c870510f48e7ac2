"""A playbook on 64 hosts, five of them broken, each in another way: one real sshd on many addresses of this machine."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.real import sshd as real

ROOT = Path(__file__).parent.parent.parent
CONNECT, COMMAND = 4.0, 3.0
"""Limits of the silent and of the stuck host, in seconds. The others have time: this machine does all their work too."""
PATIENCE = 150.0
SLACK = 10.0
pytestmark = pytest.mark.timeout(300)
BOOK = """\
name: fleet
about: Who is there?
steps:
  - id: first
    probe: host.reach
  - id: second
    probe: host.reach
    needs: first
"""
COMMAND_LINE = (sys.executable, "-m", "ddprobe", "run", "--json")
GOOD = [f"node{number:02}" for number in range(1, 60)]
PROGRAMS = ("cat", "date", "env", "grep", "head", "hostname", "id", "ls", "setsid", "sh", "sleep")


@dataclass(frozen=True)
class Fleet:
    """What the run left, and how long it took as a whole."""

    code: int
    report: dict[str, Any]
    seconds: float
    stderr: str

    def host(self, name: str) -> dict[str, Any]:
        (found,) = (host for host in self.report["hosts"] if host["name"] == name)
        return dict(found)

    def steps(self, name: str) -> list[dict[str, Any]]:
        return [step for step in self.report["steps"] if step["host"] == name]


@contextlib.contextmanager
def silent() -> Iterator[int]:
    """A port that takes connections and never says anything."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def hanging(folder: Path) -> str:
    """A shell on whose host `uname` hangs."""
    for name in PROGRAMS:
        (folder / name).symlink_to(f"/bin/{name}")
    program = folder / "uname"
    program.write_text("#!/bin/sh\nexec sleep 300\n")
    program.chmod(0o755)
    folder.chmod(0o755)
    return f"sed -u 's#^LC_ALL=C PATH=.*#LC_ALL=C PATH={folder}#' | sh -s"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    place = tmp_path_factory.mktemp("fleet")
    with contextlib.ExitStack() as stack:
        # A laptop of its own: the others' known_hosts stays as it is.
        laptop = stack.enter_context(real.laptop())
        addresses = {name: f"127.0.1.{number}" for number, name in enumerate((*GOOD, "stranger"), 1)}
        server = stack.enter_context(real.server(laptop, settings=["MaxStartups 200"], everywhere=True))
        locked = stack.enter_context(real.server(laptop, forced_command="/bin/false"))
        programs = stack.enter_context(real.folder())
        stuck = stack.enter_context(real.server(laptop, forced_command=hanging(programs)))
        mute = stack.enter_context(silent())
        know(laptop, server, {n: a for n, a in addresses.items() if n != "stranger"})
        # Under this address another key was seen before.
        know(laptop, locked, {"stranger": addresses["stranger"]}, server.port)
        user = {"user": server.user}
        broken = {"connect_timeout": PATIENCE, "command_timeout": COMMAND, **user}
        hosts: dict[str, dict[str, Any]] = {
            name: {"address": addresses[name], "port": server.port, "connect_timeout": PATIENCE, **user}
            | {"command_timeout": PATIENCE}
            for name in GOOD
        }
        hosts |= {
            "refused": {"address": "127.0.0.1", "port": 1, **broken},
            "silent": {"address": "127.0.0.1", "port": mute, **broken, "connect_timeout": CONNECT},
            "stranger": {"address": addresses["stranger"], "port": server.port, **broken},
            "locked": {"address": "127.0.0.1", "port": locked.port, **broken},
            "stuck": {"address": "127.0.0.1", "port": stuck.port, **broken},
        }
        (place / "hosts.yaml").write_text(yaml.safe_dump({"hosts": hosts}))
        (place / "fleet.yaml").write_text(BOOK)
        began = time.monotonic()
        done = subprocess.run(
            [*COMMAND_LINE, str(place / "fleet.yaml"), *hosts, "--hosts", str(place / "hosts.yaml")],
            env={**os.environ, "PYTHONPATH": str(ROOT), "DDPROBE_REPORTS": str(place / "reports")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=280,
        )
        yield Fleet(done.returncode, json.loads(done.stdout), time.monotonic() - began, done.stderr)


def know(laptop: real.Laptop, server: real.Server, addresses: dict[str, str], port: int = 0) -> None:
    """Write the server's key into known_hosts under these addresses."""
    public = (server.folder / "host_key.pub").read_text().rsplit(" ", 1)[0]
    with laptop.known_hosts.open("a") as file:
        for address in addresses.values():
            file.write(f"[{address}]:{port or server.port} {public}\n")


def test_every_good_host_is_looked_at_whole(fleet: Fleet) -> None:
    assert [host["name"] for host in fleet.report["hosts"]][:59] == GOOD
    for name in GOOD:
        assert fleet.host(name)["error"] == ""
        assert fleet.host(name)["survivors"] == 0
        assert [(s["id"], s["status"]) for s in fleet.steps(name)] == [
            ("first", "done"),
            ("second", "done"),
        ], name
    assert len(fleet.report["steps"]) == 128
    assert fleet.stderr == ""
    assert fleet.code == 3


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("refused", "Connection refused"),
        ("silent", "no answer within 4 s, before it named itself"),
        ("stranger", "host key"),
        ("locked", "logged in, but no POSIX shell answers"),
    ],
)
def test_a_broken_host_is_named_with_its_reason(fleet: Fleet, name: str, why: str) -> None:
    assert why in fleet.host(name)["error"]
    assert fleet.host(name)["error"].startswith(f"{name}: ")
    assert [s["status"] for s in fleet.steps(name)] == ["not_run", "not_run"]


def test_a_host_whose_command_hangs_costs_its_own_cells(fleet: Fleet) -> None:
    assert fleet.host("stuck")["survivors"] == 0
    for step in fleet.steps("stuck"):
        assert step["status"] == "incomplete"
        assert "uname: timed out after " in "; ".join(step["reasons"])


def test_it_takes_as_long_as_the_slowest_and_not_their_sum(fleet: Fleet) -> None:
    from ddprobe import reportjson

    report = reportjson.to_report(fleet.report)
    ends = {step.host: step.started + step.seconds - report.started for step in report.steps if step.started}
    slowest = max(ends[name] for name in GOOD)
    assert report.seconds < slowest + CONNECT + 2 * COMMAND + SLACK
    # One after another, the good ones alone would take longer than all of them did.
    spent = {step.host: 0.0 for step in report.steps}
    for host in report.hosts:
        spent[host.name] = host.connection.connect_seconds if host.connection else 0.0
    for step in report.steps:
        spent[step.host] += step.seconds
    assert report.seconds < sum(spent.values()) / 3
