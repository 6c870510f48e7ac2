"""What a commit probe costs beside the server's own work, and what its nested plan saves.

    python -m benchmarks.commit [--contexts 1k,4k,8k,16k]

A real llama-server (set up by `tests/run`) is probed through a real sshd on loopback, once as planned and once with
every prompt computed whole (`--cold`). Printed: the probe's wall time beyond that of the same requests sent straight to
a fresh server (aim: at most 3 % or 1 s), and the prompt tokens computed, by the server's own count of cached ones, cold
against nested (aim: at least 3 times fewer). The same count for the founding contexts comes from the lab's simulated
server.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.parse
from pathlib import Path
from typing import Any

import yaml

from ddprobe import runner
from ddprobe.facts import CommitRequest
from ddprobe.lab.scenarios import scenario
from ddprobe.model import Step
from ddprobe.probes.draft.commit import DraftCommit
from tests.lab_session import LabSession
from tests.real import sshd as real
from tests.real.servers.llamacpp import BAD_DRAFTER, serving
from tests.silent import SilentWriter

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


def replayed(folder: Path, base: str) -> float:
    """Seconds that the same requests take one after another straight from here, each body as it was sent."""
    address = urllib.parse.urlsplit(base).netloc
    sent = sorted(folder.glob("evidence/*/*/*.request"))
    started = time.monotonic()
    for file in sent:
        asked = json.loads(file.with_suffix(".json").read_text(encoding="utf-8"))["asked"]
        connection = http.client.HTTPConnection(address, timeout=120)
        connection.request("POST", asked["path"], file.read_bytes(), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status
        connection.close()
    return time.monotonic() - started


def in_the_lab(cold: bool) -> int:
    """Prompt tokens that the lab's simulated server computes for the founding contexts, by its own count."""
    step = Step("commit", DraftCommit(cold=cold, seed=1))
    machine = scenario("healthy").build()
    session = LabSession(machine)
    collected = runner.collect(step, session.host, session, SilentWriter(), lambda _host, _now: None)
    record, _ = runner.judge(step, collected.evidence, collected.broken, lambda _host, _step, key: key)
    sent = [f for f in record.facts if isinstance(f, CommitRequest) and f.purpose == "point"]
    return sum((each.prompt_tokens or 0) - (each.cached_tokens or 0) for each in sent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--contexts", default="1k,4k,8k,16k")
    contexts = parser.parse_args().contexts
    with tempfile.TemporaryDirectory() as place, real.laptop() as laptop, real.server(laptop) as server:
        folder = Path(place)
        entry = {"address": "127.0.0.1", "port": server.port, "user": server.user}
        words = ("--contexts", contexts, "--arms", ARMS, "--seed", "1")
        reports, seconds = {}, {}
        for name, more in (("nested", ()), ("cold", ("--cold",))):
            with serving(*BAD_DRAFTER) as llama:
                hosts = folder / "hosts.yaml"
                known = {**entry, "url": llama.base, "engine": "llamacpp"}
                hosts.write_text(yaml.safe_dump({"hosts": {"gpu1": known}}))
                reports[name], made, seconds[name] = probe(folder, hosts, *words, *more)
            if name == "nested":
                with serving(*BAD_DRAFTER) as fresh:
                    server_alone = replayed(made, fresh.base)
    beyond = seconds["nested"] - server_alone
    fewer = computed(reports["cold"]) / computed(reports["nested"])
    print(f"llama-server, {contexts}, {ARMS}, through sshd on loopback")
    print(
        f"  the probe takes {beyond:.2f} s ({beyond / server_alone:.1%}) more than the same requests sent straight to a "
        f"fresh server ({server_alone:.1f} s); aim: 3 % or 1 s"
    )
    print(
        f"  prompt tokens computed: nested {computed(reports['nested'])}, cold {computed(reports['cold'])}: "
        f"{fewer:.1f} times fewer; aim: 3"
    )
    nested, cold = in_the_lab(cold=False), in_the_lab(cold=True)
    print("the lab's simulated server, 1k,16k,64k,128k, default arms (nothing here was measured on hardware)")
    print(f"  prompt tokens computed: nested {nested}, cold {cold}: {cold / nested:.1f} times fewer; aim: 3")


if __name__ == "__main__":
    main()
