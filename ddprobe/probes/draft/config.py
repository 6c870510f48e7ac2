"""What do the drafter's, the target's and the server's settings say, and do they agree?

Finds the running servers, the folders of their drafter and target on the host (absolute, relative to the server's own
folder, or in the Hugging Face cache that its environment names), and reads both config.json files, the target's
tokenizer_config.json and the header of the drafter's weights. A server that listens is asked for its arguments with
defaults filled in. Shows all of it side by side; the lints say what does not fit together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from ddprobe import engines
from ddprobe.blocks import Block
from ddprobe.errors import Unanswered
from ddprobe.facts import Discovered, ServerArgs, ServerProcess
from ddprobe.model import (
    Cite,
    Conversation,
    Evidence,
    Fact,
    Finding,
    Gap,
    Help,
    Host,
    HttpRequest,
    HttpResult,
    Outcome,
    Probe,
    Question,
    Result,
)
from ddprobe.parsing import nvidia_proc
from ddprobe.probes import _outputs
from ddprobe.probes.discovery import Discovery, discover, understand
from ddprobe.probes.draft import _files, _locate, _table
from ddprobe.probes.draft._wanted import Wanted, wanted

_WRONG_TYPE = ", not "


@dataclass(frozen=True, kw_only=True)
class DraftConfig(Probe):
    """Compares drafter, target and server arguments, and lints them."""

    drafter: Annotated[
        str, Help("the drafter: a folder on the host or a hub id; empty: as the server says")
    ] = ""
    target: Annotated[
        str, Help("the target: a folder on the host or a hub id; empty: as the server says")
    ] = ""

    findings: ClassVar[dict[str, str]] = {
        "config-json": "a config.json that only a tolerant reader takes, or that says something twice or in a wrong type",
    }
    outputs: ClassVar[dict[str, str]] = _outputs.CONFIG

    @classmethod
    def output(cls, facts: Sequence[Fact], findings: Sequence[Finding]) -> Mapping[str, Any]:
        return _outputs.of_config(facts)

    def collect(self, host: Host) -> Conversation:
        try:
            found = yield from discover(host)
        except Unanswered:
            if not self._by_hand(host):
                raise
            found = Discovery()
        answers: list[Result] = []
        answers += yield (*_requests(found, host), nvidia_proc.GPUS)
        if older := _older(found, host, Evidence(host, tuple(answers))):
            answers += yield older
        wants = self._wants(found, Evidence(host, tuple(answers)))
        for stage in (_users, _lookups, _newest, _first, _second, _third):
            known = Evidence(host, tuple(answers))
            # Two models may lie in one cache, or be one: the same question is asked once.
            questions = {q.key: q for q in stage(wants, known) if not known.has(q.key)}
            if questions:
                answers += yield tuple(questions.values())

    def interpret(self, evidence: Evidence) -> Iterator[Fact | Finding | Gap]:
        try:
            found = understand(evidence)
        except Unanswered as error:
            if not self._by_hand(evidence.host):
                raise
            found = Discovery()
            yield Gap("servers", error.reason, (Cite(error.key),) if evidence.has(error.key) else ())
        yield from found.servers
        yield from found.packages
        yield from found.found
        yield from (_found("note", note, "discovery") for note in found.notes)
        arguments = _arguments(found, evidence)
        yield from arguments
        yield from _unheard(found, evidence)
        yield from _gpus(evidence)
        wants = self._wants(found, evidence)
        if not wants and not found.servers and not arguments:
            yield Gap(
                "drafter and target",
                f"no inference server {'can be seen' if found.blind else 'runs'} here, and neither --drafter nor --target "
                "names a model",
            )
        for want in wants:
            yield from _model(
                want, evidence, tuple(a for a in arguments if a.server in (want.servers or ("",)))
            )

    def show(self, facts: Sequence[Fact]) -> Iterator[Block]:
        yield from _table.blocks(facts)

    def _by_hand(self, host: Host) -> bool:
        return bool(self.drafter or self.target or host.drafter or host.target)

    def _wants(self, found: Discovery, evidence: Evidence) -> tuple[Wanted, ...]:
        given = {"drafter": self.drafter, "target": self.target}
        return wanted(given, evidence.host, found, _arguments(found, evidence))


# --- the server's own words --------------------------------------------------------------------------------


def _listening(found: Discovery, host: Host) -> tuple[tuple[ServerProcess | None, str, str, str], ...]:
    """Whom to ask for its arguments: the process, its engine, its base and how the keys of its answers begin."""
    mine = tuple(
        (server, server.engine, server.base, f"{server.pid}-")
        for server in found.servers
        if server.base and engines.TABLE[server.engine].argument_paths
    )
    if not found.servers and host.url and (host.engine or "sglang") == "sglang":
        return ((None, "sglang", host.url.rstrip("/"), "url-"),)
    return mine


def _requests(found: Discovery, host: Host) -> tuple[HttpRequest, ...]:
    return tuple(
        request
        for _, engine, base, prefix in _listening(found, host)
        for request in engines.TABLE[engine].requests(base, prefix, engines.TABLE[engine].argument_paths[:1])
    )


def _older(found: Discovery, host: Host, evidence: Evidence) -> tuple[HttpRequest, ...]:
    """The same question as older releases know it, where the newer is not known."""
    return tuple(
        request
        for _, engine, base, prefix in _listening(found, host)
        for path in engines.TABLE[engine].argument_paths[:1]
        if any(r.status == 404 for r in _heard(evidence, prefix)) and path in engines.TABLE[engine].older
        for request in engines.TABLE[engine].requests(base, prefix, (engines.TABLE[engine].older[path],))
    )


def _heard(evidence: Evidence, prefix: str) -> tuple[HttpResult, ...]:
    return tuple(r for r in evidence.started_with(prefix) if isinstance(r, HttpResult))


def _arguments(found: Discovery, evidence: Evidence) -> tuple[ServerArgs, ...]:
    """Each server's command line, and its arguments as it resolved them."""
    arguments = list(found.arguments)
    for server, engine, _, prefix in _listening(found, evidence.host):
        heard = {result.question.path: result for result in _heard(evidence, prefix)}
        resolved = engines.TABLE[engine].resolved(heard)
        if resolved is not None:
            path = next(path for path, result in heard.items() if result.whole)
            name = server.name if server is not None else ""
            arguments.append(replace(resolved, server=name, source=(Cite(heard[path].key, "$"),)))
    return tuple(arguments)


def _unheard(found: Discovery, evidence: Evidence) -> Iterator[Fact]:
    """Says where the server's own words are missing, so that the command line stands for them."""
    told = {args.server for args in _arguments(found, evidence) if args.resolved}
    for server, _, base, prefix in _listening(found, evidence.host):
        name = server.name if server is not None else ""
        results = _heard(evidence, prefix)
        if name not in told and results:
            why = results[-1].trouble or "its answer cannot be read"
            if results[-1].status in (401, 403) and not evidence.host.api_key_env:
                why += " (it wants a key: name the variable that holds it, `api_key_env: NAME`, in the hosts file)"
            yield _found(
                "arguments",
                "the command line alone",
                f"{base}{results[-1].question.path} did not answer: {why}",
                results[-1].key,
            )


def _gpus(evidence: Evidence) -> Iterator[Fact]:
    if not evidence.has("gpus"):
        return
    models = nvidia_proc.models(evidence.command("gpus").stdout.decode("utf-8", "replace"))
    for model in dict.fromkeys(models):
        yield _found("gpu", f"{models.count(model)} × {model}", "/proc/driver/nvidia", "gpus")


def _found(what: str, value: str, origin: str, key: str = "") -> Discovered:
    return Discovered(what=what, value=value, origin=origin, source=(Cite(key),) if key else ())


# --- the models --------------------------------------------------------------------------------------------


def _model(
    want: Wanted, evidence: Evidence, arguments: tuple[ServerArgs, ...]
) -> Iterator[Fact | Finding | Gap]:
    """A model's configuration for each server that uses it, or the gap it leaves."""
    try:
        place = _locate.place(want, evidence)
        known = _files.understand(want, place, evidence, arguments)
    except Unanswered as error:
        whose = f" of {', '.join(want.servers)}" if any(want.servers) else ""
        yield Gap(f"{want.role}{whose}", error.reason, _asked(want, evidence))
        return
    origin = f"{want.origin}: {want.reference}; {place.how}"
    yield _found(want.role, place.folder, origin, place.key or f"{want.key}-config")
    yield from _files.each_server(known.config, want)
    yield from (_found("not read", what, want.role) for what in known.unread)
    if known.config.notes:
        doubtful = not known.strict or any(_WRONG_TYPE in note for note in known.config.notes)
        yield Finding(
            id="config-json",
            outcome=Outcome.WARN if doubtful else Outcome.INFO,
            subject=want.role,
            summary=f"the {want.role}'s config.json: {'; '.join(known.config.notes)}"
            + ("" if known.strict else ". transformers reads strict JSON and refuses it"),
            cites=(Cite(f"{want.key}-config", "$"),),
            advice="correct the file, or fetch it again" if doubtful else "",
        )


def _asked(want: Wanted, evidence: Evidence) -> tuple[Cite, ...]:
    return tuple(Cite(result.key) for result in evidence.started_with(f"{want.key}-"))[-3:]


Wants = tuple[Wanted, ...]
Questions = tuple[Question, ...]


def _users(wants: Wants, _evidence: Evidence) -> Questions:
    return _locate.users(wants) if any(not want.reference.startswith("/") for want in wants) else ()


def _lookups(wants: Wants, evidence: Evidence) -> Questions:
    return tuple(question for want in wants for question in _locate.lookups(want, evidence))


def _newest(wants: Wants, evidence: Evidence) -> Questions:
    hub = (want for want in wants if not want.reference.startswith("/"))
    return tuple(question for want in hub for question in _locate.newest(want, evidence))


def _first(wants: Wants, evidence: Evidence) -> Questions:
    return tuple(q for want, place in _placed(wants, evidence) for q in _files.first(want, place))


def _second(wants: Wants, evidence: Evidence) -> Questions:
    return tuple(q for want, place in _placed(wants, evidence) for q in _files.second(want, place, evidence))


def _third(wants: Wants, evidence: Evidence) -> Questions:
    return tuple(q for want, place in _placed(wants, evidence) for q in _files.third(want, place, evidence))


def _placed(wants: Wants, evidence: Evidence) -> Iterator[tuple[Wanted, _locate.Place]]:
    for want in wants:
        try:
            yield want, _locate.place(want, evidence)
        except Unanswered:
            continue
