"""Playbooks for tests, and a lab that several names lead to."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ddprobe import lab
from ddprobe.model import Host

CHAIN = """\
name: chain
about: Where does the installed engine count what it commits, and does it answer?
vars:
  pattern: {type: text, default: commit_lens, help: what to search for}
  many: {type: number, default: 1, help: hits that are enough}
steps:
  - id: server
    probe: engine.server
  - id: find
    probe: source.grep
    with: {pattern: "${vars.pattern}"}
  - id: read
    probe: source.read
    when: {step: find, field: hits, at_least: "${vars.many}"}
    with: {places: "${steps.find.ranges}"}
expect:
  - about: the server answers
    step: server
    status: done
"""

MEASURED = """\
name: measured
about: Is the drafter broken at long context?
vars:
  contexts: {type: sizes, default: "1k,2k", help: lengths}
  steps: {type: int, default: 64, help: verify steps}
hypotheses: [text_hard, drafter_long_context]
steps:
  - id: server
    probe: engine.server
  - id: config
    probe: draft.config
  - id: find
    probe: source.grep
    with: {pattern: commit_lens, limit: 5}
  - id: read
    probe: source.read
    with: {places: "${steps.find.ranges}"}
  - id: commit
    probe: draft.commit
    needs: server
    with: {contexts: "${vars.contexts}", arms: repeat, steps: "${vars.steps}"}
  - id: after
    probe: engine.server
    needs: commit
expect:
  - about: nothing is simulated
    step: commit
    status: done
"""


@dataclass(frozen=True, slots=True)
class Field:
    """A lab host under several names, and a folder to keep things in."""

    host: Host
    folder: Path

    def book(self, text: str, name: str = "book.yaml") -> str:
        """The playbook's file."""
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    def hosts(self, *names: str, dead: Sequence[str] = ()) -> str:
        """A hosts file: each name is the lab; at the dead ones nobody listens."""
        lines = ["hosts:"]
        for name in (*names, *dead):
            at = dataclasses.replace(self.host, port=1 if name in dead else self.host.port)
            lines += [f"  {name}:", "    tags: [ddprobe-lab]"]
            lines += [
                f"    {key}: {getattr(at, key)}"
                for key in ("address", "user", "port", "identity_file", "known_hosts", "jump")
            ]
        path = self.folder / "hosts.yaml"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return str(path)


@contextlib.contextmanager
def field(folder: Path, scenario: str = "healthy") -> Iterator[Field]:
    """A lab that is up, and the folder."""
    with lab.running(scenario) as host:
        yield Field(host, folder)
