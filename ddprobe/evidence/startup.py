"""Start-up facts and warnings in a server's log: each kind once, with its first line, its values, and how many say it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ddprobe.evidence.document import Document, Found
from ddprobe.facts import LogEvent
from ddprobe.model import Cite
from ddprobe.parsing import log_lines, startup_lines

MOST_OF_A_KIND = 6
"""Different events of one kind that are kept (lengths, exceptions, tensors); the rest is counted with the last of them."""
LONGEST = 500
_SERVER_DECODES = ("Decode batch", "SpecDecoding metrics", "draft acceptance", "Avg generation throughput")
_ANSWERED = re.compile(r'"POST /\S* HTTP/1\.1" 200\b')
SERVES = 16
"""Signs of serving before a log is taken for that of a server that is up, though the line that says so is missing (it is
cut, or filtered): more than what a warm-up writes. A decode line is one of them, an answered request …"""
ANSWER = 8
"""… as many as this."""
_GOES_ON = frozenset(
    {"weights_begin", "draft_loading", "draft_runner", "draft_ready", "app_started", "ready"}
)
"""Who says so after an exception did not die of it."""
_INTERNAL = frozenset({"weights_begin", "app_started"})
_SAYS_NOTHING_ALONE = frozenset({"launched", "requests_reset", "dtype_cast", "batch"})
_DRAFT_TENSOR = re.compile(
    r"(?:^|[._])(?:mtp|nextn|draft|eagle|dflash|dspark|medusa|midlayer|d2t|t2d|eh_proj|enorm|hnorm|shared_head|hidden_norm)(?:[._\d]|$)"
    r"|^(?:model\.)?fc\.(?:weight|bias)$"
)


def recognise(document: Document, sample: str) -> Found | None:
    """A log with at least one line that says something of a start or an end."""
    if sample.lstrip()[:1] in ("{", "[") and not _log_like(sample):
        return None
    watch = _Watch(document.key)
    for number, line in enumerate(document.lines(), 1):
        watch.line(number, line)
    events = watch.events()
    telling = [event for event in events if event.kind not in _SAYS_NOTHING_ALONE]
    if not telling:
        return None
    kinds = dict.fromkeys(event.kind.replace("_", " ") for event in telling)
    return Found(f"start-up log ({', '.join(list(kinds)[:6])}{', …' if len(kinds) > 6 else ''})", events)


def _log_like(sample: str) -> bool:
    """A log may begin with `[2026-…` or a JSON line around each of its lines."""
    head = sample.lstrip()
    return head.startswith('{"log":') or bool(re.match(r"\[(?:\d|rank|W\d|I\d|gpu)", head))


@dataclass
class _Kept:
    kind: str
    text: str
    line: int
    values: dict[str, str]
    count: int = 1


@dataclass
class _Watch:
    """What was seen so far; its size does not grow with the log."""

    run: str
    kept: dict[tuple[str, str], _Kept] = field(default_factory=dict)
    last_of_kind: dict[str, list[_Kept]] = field(default_factory=dict)
    loads: dict[str, int] = field(default_factory=dict)
    drafting: bool = False
    launched: bool = False
    up: bool = False
    sglang: bool = False
    signs: int = 0
    """Of serving, since the launch."""
    went_on: int = 0
    """The last line that says how far a start has come."""
    in_traceback: bool = False

    def line(self, number: int, line: str) -> None:
        """Takes in one line."""
        if self.in_traceback or "Traceback" in line or "rror" in line or "xception" in line:
            self._dying(number, line)
        elif not self.up:
            self._serving(line)
        said = startup_lines.read(line)
        if said is None:
            return
        self._phase(said, line)
        if said.kind in _GOES_ON:
            self.went_on = number
        if said.kind == "app_started" and not self.sglang:
            # SGLang still has to decode a first request by then.
            self.up, said = True, startup_lines.Said("ready")
        if said.kind in _INTERNAL:
            return
        if said.kind in ("weights_skipped", "weights_uninitialised", "weights_unused"):
            said = startup_lines.Said(said.kind, (*said.values, ("draft", self._of_draft(said))))
        if said.kind in ("context", "batch"):
            # The target's come before the line that says that the drafter is loaded.
            said = startup_lines.Said(said.kind, (*said.values, ("draft", "yes" if self.drafting else "no")))
        self._keep(number, line, said)

    def _serving(self, line: str) -> None:
        """Whether so much is decoded and answered that the server must be up."""
        decodes = any(word in line for word in _SERVER_DECODES)
        self.signs += decodes or (ANSWER if _ANSWERED.search(line) else 0)
        self.up = self.signs > SERVES or (decodes and not self.launched)

    def _phase(self, said: startup_lines.Said, line: str) -> None:
        if said.kind == "launched":
            # A restart within one log begins anew; vLLM says its arguments twice.
            self.up = self.up and "LLM engine" in line
            self.launched = True
            self.drafting, self.loads, self.signs = False, {}, 0
            self.sglang = "server_args=" in line
        elif said.kind == "ready":
            self.up = True
        elif said.kind == "draft_loading":
            self.drafting = True
        elif said.kind == "weights_begin":
            rank = startup_lines.rank(line)
            self.loads[rank] = min(self.loads.get(rank, 0) + 1, 9)
            self.drafting = self.loads[rank] > 1

    def _of_draft(self, said: startup_lines.Said) -> str:
        """Whether weights are the drafter's, by when they were loaded or what they are called."""
        named = dict(said.values)
        names = re.findall(r"[\w.]+", named.get("tensor", "") + " " + named.get("tensors", ""))
        return "yes" if self.drafting or any(_DRAFT_TENSOR.search(name) for name in names) else "unknown"

    def _dying(self, number: int, line: str) -> None:
        """Follows a traceback to the exception at its end."""
        text = startup_lines.bare(log_lines.unwrapped(line))
        if startup_lines.TRACEBACK in text:
            self.in_traceback = True
            return
        found = startup_lines.exception(text)
        if found is None:
            return
        name, message = found
        said = f"{name}: {message}" if message else name
        self.in_traceback = False
        values = [("exception", name), ("message", message[:LONGEST]), ("phase", self._at(said))]
        if startup_lines.is_secondary(said):
            values.append(("secondary", "yes"))
        if "out of memory" in said.lower() or name == "OutOfMemoryError":
            self._keep(number, text, startup_lines.Said("out_of_memory"))
        self._keep(number, text, startup_lines.Said("crash", tuple(values)))

    def _at(self, said: str) -> str:
        """When it happens: at `start`, while `serving`, or `unknown` where the log does not hold the start."""
        if self.up or (not self.launched and "EngineDeadError" in said):
            return "serving"
        return "start" if self.launched or startup_lines.only_at_start(said) else "unknown"

    def _keep(self, number: int, line: str, said: startup_lines.Said) -> None:
        values = dict(said.values)
        if said.kind == "died":
            values["phase"] = self._at(line)
        identity = "" if said.kind in ("ready", "launched") else repr(sorted(values.items()))
        same = self.kept.get((said.kind, identity))
        others = self.last_of_kind.setdefault(said.kind, [])
        if same is None and len(others) >= MOST_OF_A_KIND:
            same = others[-1]
        if same is not None:
            same.count += 1
            if said.kind in ("ready", "launched"):
                same.values["last"] = str(number)
            return
        text = startup_lines.bare(log_lines.unwrapped(line)).strip()[:LONGEST]
        if said.kind in ("ready", "launched"):
            values["last"] = str(number)
        new = _Kept(said.kind, text, number, values)
        self.kept[(said.kind, identity)] = new
        others.append(new)

    def _launched_after(self, kept: _Kept) -> bool:
        """Whether the server was started again after that line: then what follows is of another process."""
        return any(int(one.values["last"]) > kept.line for one in self.last_of_kind.get("launched", ()))

    def events(self) -> tuple[LogEvent, ...]:
        """Everything kept, in the order of its first lines."""
        ordered = sorted(self.kept.values(), key=lambda kept: kept.line)
        died = {kept.values["phase"] for kept in ordered if kept.kind == "died"}
        for kept in ordered:
            if kept.kind == "crash" and kept.values["phase"] == "serving" and "serving" not in died:
                kept.kind = "request_error"
            elif (
                kept.kind == "crash"
                and not died
                and kept.line < self.went_on
                and not self._launched_after(kept)
            ):
                kept.kind = "handled_error"
        return tuple(
            LogEvent(
                kind=kept.kind,
                text=kept.text,
                line=kept.line,
                count=kept.count,
                values=tuple(kept.values.items()),
                run=self.run,
                source=(Cite(self.run, f"line {kept.line}"),),
            )
            for kept in ordered
        )
