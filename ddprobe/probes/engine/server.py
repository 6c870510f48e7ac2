"""Which inference servers run, and how is each?

Looks for SGLang, vLLM and llama.cpp servers in the process table, several on one host and in containers included:
version, arguments, environment that matters, ports. A server that listens is then asked over the connection what it
says of itself: its arguments with defaults filled in, its model, its load. No request makes it generate anything;
SGLang's `/health` does, so it is not asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ddprobe import engines
from ddprobe.blocks import Block
from ddprobe.engines.base import Engine, document, items, mapping
from ddprobe.facts import ServerArgs, ServerProcess
from ddprobe.model import (
    Cite,
    Conversation,
    Evidence,
    Fact,
    Finding,
    Gap,
    Host,
    HttpRequest,
    HttpResult,
    Outcome,
    Probe,
)
from ddprobe.probes import _outputs
from ddprobe.probes.discovery import Discovery, discover, understand
from ddprobe.probes.engine import _server_view

_WHO = "url-models"


@dataclass(frozen=True, kw_only=True)
class EngineServer(Probe):
    """Finds the running inference servers and asks each what it says of itself."""

    findings: ClassVar[dict[str, str]] = {
        "server.none": "no inference server runs on the host",
        "server.unreachable": "a server's process runs, and nothing answers where it should listen",
        "server.loading": "a server is not ready yet: it loads its model, or listens on no port so far",
        "server.unhealthy": "a server answers, and says that it cannot take requests",
        "server.hung": "a server took a request and did not answer it in time",
        "server.key": "a server wants an API key, or another one",
        "server.replaced": "the installed package is another version than the one the server started from",
        "server.strays": "workers run that belong to no server found",
        "server.unseen": "something could not be seen, and what that leaves unknown",
    }
    outputs: ClassVar[dict[str, str]] = _outputs.SERVER

    @classmethod
    def output(cls, facts: Sequence[Fact], findings: Sequence[Finding]) -> Mapping[str, Any]:
        return _outputs.of_server(facts, findings)

    def collect(self, host: Host) -> Conversation:
        discovery = yield from discover(host)
        seen: tuple[HttpResult, ...] = ()
        if who := _who(host, discovery):
            seen = ((yield who),)
        asked = tuple(
            (target, target.engine.requests(target.server.base, target.prefix, target.engine.paths))
            for target in _targets(host, discovery, seen)
            if target.server.base
        )
        if not asked:
            return
        answers = yield tuple(request for _, requests in asked for request in requests)
        absent = {answer.question for answer in answers if answer.status == 404}
        older = tuple(
            again
            for target, requests in asked
            for again in target.engine.requests(
                target.server.base,
                target.prefix,
                tuple(target.engine.older.get(each.path, "") for each in requests if each in absent),
            )
            if again.path
        )
        if older:
            yield older

    def interpret(self, evidence: Evidence) -> Iterator[Fact | Finding | Gap]:
        host = evidence.host
        discovery = understand(evidence)
        yield from discovery.servers
        yield from discovery.arguments
        yield from discovery.found
        for note in discovery.notes:
            yield Finding(id="server.unseen", outcome=Outcome.UNKNOWN, subject=host.name, summary=note)
        if discovery.strays:
            yield _strays(host, discovery)
        seen = tuple(r for r in evidence.started_with(_WHO) if isinstance(r, HttpResult))
        targets = _targets(host, discovery, seen)
        if not targets and not seen and discovery.blind:
            yield Gap(
                "servers", f"none can be seen, but not all could be looked at: {'; '.join(discovery.blind)}"
            )
        elif not targets and not seen:
            yield Finding(
                id="server.none",
                outcome=Outcome.WARN,
                subject=host.name,
                summary="no SGLang, vLLM or llama.cpp server runs here: no command line of any process visible to "
                "this user starts one",
                cites=(Cite("candidates"),),
            )
        if seen and not targets:
            yield from _not_recognised(seen[0])
        for target in targets:
            yield from _judge(target, evidence)

    def show(self, facts: Sequence[Fact]) -> Iterator[Block]:
        yield from _server_view.blocks(facts)


# --- whom to ask -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Target:
    """A server to ask, and how its answers' keys begin. Without a process (pid 0) it is only the inventory's url."""

    server: ServerProcess
    engine: Engine

    @property
    def prefix(self) -> str:
        return f"{self.server.pid}-" if self.server.pid else "url-"

    @property
    def subject(self) -> str:
        return self.server.name if self.server.pid else self.server.base


def _who(host: Host, discovery: Discovery) -> HttpRequest | None:
    """Asks the inventory's url what it is, where no process tells."""
    if not host.url or host.engine in engines.TABLE or _served(host, discovery):
        return None
    base = host.url.rstrip("/")
    return HttpRequest(key=_WHO, method="GET", path="/v1/models", base=base, timeout=engines.HTTP_TIMEOUT)


def _served(host: Host, discovery: Discovery) -> bool:
    """True when one of the processes is the one at the inventory's url."""
    return any(server.base == (host.url or "").rstrip("/") for server in discovery.servers)


def _targets(host: Host, discovery: Discovery, seen: tuple[HttpResult, ...]) -> tuple[_Target, ...]:
    found = [_Target(server, engines.TABLE[server.engine]) for server in discovery.servers]
    if host.url and not _served(host, discovery):
        models = items(mapping(document({"/v1/models": seen[0]}, "/v1/models")).get("data")) if seen else []
        name = host.engine or next((str(model.get("owned_by")) for model in models), "")
        if name in engines.TABLE:
            server = ServerProcess(engine=name, pid=0, argv=(), base=host.url.rstrip("/"))
            found.append(_Target(server, engines.TABLE[name]))
    return tuple(found)


# --- what its answers mean ---------------------------------------------------------------------------------


def _judge(target: _Target, evidence: Evidence) -> Iterator[Fact | Finding | Gap]:
    """Facts from what one server answered; findings and gaps from what it did not."""
    server, engine = target.server, target.engine
    if not server.base:
        yield from _not_listening(target)
        return
    answers = {
        result.question.path: result
        for result in evidence.started_with(target.prefix)
        if isinstance(result, HttpResult) and result.question.base == server.base
    }
    state = engine.state(server.base, answers)
    told = engine.resolved(answers)
    cites = tuple(Cite(result.key) for result in answers.values() if result.whole)
    name = server.name if server.pid else server.base
    if cites:
        yield replace(state, server=name, source=cites)
    if told is not None:
        cite = next(Cite(r.key) for path, r in answers.items() if path in engine.argument_paths and r.whole)
        yield replace(told, server=name, source=(cite,))
        yield from _replaced(server, told)
    essential = next(
        (
            answers[p]
            for p in (engine.essential, engine.older.get(engine.essential, ""))
            if p in answers and answers[p].status != 404
        ),
        None,
    )
    if essential is None or not essential.whole:
        yield from _silent(target, evidence.host, essential or next(iter(answers.values()), None))
        return
    if state.healthy is False:
        yield _finding("server.unhealthy", target, "says that it cannot take requests", _cite(essential))
    for path, result in answers.items():
        if path != engine.essential and (result.failure or result.timed_out or result.truncated):
            yield Gap(f"{target.subject} {path}", result.trouble, _cite(result))


def _silent(target: _Target, host: Host, result: HttpResult | None) -> Iterator[Finding | Gap]:
    """Why a server did not say what it is."""
    base = target.server.base
    if result is None:
        yield Gap(target.subject, f"was not asked at {base}")
        return
    cite = _cite(result)
    if result.status in (401, 403):
        name = host.api_key_env
        said = f"refused the key of api_key_env ({name})" if name else "wants an API key, and none was given"
        advice = (
            "" if name else "name the variable that holds the key here: `api_key_env: NAME` in the hosts file"
        )
        yield _finding("server.key", target, f"{said} (HTTP {result.status} at {base})", cite, advice)
        yield Gap(target.subject, f"what it says of itself is unknown: HTTP {result.status}", cite)
    elif result.status == 503:
        yield _finding("server.loading", target, f"is not ready: HTTP 503 at {base}", cite)
    elif result.timed_out:
        summary = f"took the request for {result.question.path} at {base} and did not answer within {result.seconds:.0f} s"
        yield _finding("server.hung", target, summary, cite, "see its log for a stalled scheduler")
        yield Gap(target.subject, f"what it says of itself is unknown: {result.trouble}", cite)
    elif result.failure:
        yield _finding("server.unreachable", target, f"does not answer at {base}: {result.failure}", cite)
        yield Gap(target.subject, f"what it says of itself is unknown: {result.failure}", cite)
    elif result.status == 404:
        yield Gap(
            target.subject,
            f"what answers at {base} has no {result.question.path}: is it another program?",
            cite,
        )
    else:
        yield Gap(f"{target.subject} {result.question.path}", result.trouble, cite)


def _not_listening(target: _Target) -> Iterator[Finding | Gap]:
    server, engine = target.server, target.engine
    if server.listens:
        yield Gap(
            target.subject, f"listens on {', '.join(server.listens)}, which cannot be asked from the host"
        )
        return
    port = engine.given(server.argv, server.environment).get("port", engine.default_port)
    yield _finding(
        "server.loading",
        target,
        f"runs, and listens on no TCP port so far (port {port} is expected): it still loads, or is stuck starting",
        (Cite("listeners"),),
        "its log says what it is waiting for",
    )


def _replaced(server: ServerProcess, told: ServerArgs) -> Iterator[Finding]:
    """The folder may hold another version by now than the one in the server's memory."""
    if server.version and told.version and server.version.split("+")[0] != told.version.split("+")[0]:
        yield Finding(
            id="server.replaced",
            outcome=Outcome.WARN,
            subject=server.name,
            summary=f"runs version {told.version}, while {server.package} holds {server.version}: the source that "
            "`grep` and `read` show is not what runs",
            cites=told.source,
            advice="restart the server, or give the right folder as `package` in the hosts file",
        )


def _strays(host: Host, discovery: Discovery) -> Finding:
    shown = ", ".join(f"{pid} (parent {parent})" for pid, parent in discovery.strays[:8])
    more = f" and {len(discovery.strays) - 8} more" if len(discovery.strays) > 8 else ""
    return Finding(
        id="server.strays",
        outcome=Outcome.WARN,
        subject=host.name,
        summary=f"{len(discovery.strays)} workers belong to no server found: pid {shown}{more}. They are left over "
        "from a server that died, or belong to an offline engine, and hold GPU memory",
        cites=(Cite("workers"), Cite("status")),
    )


def _not_recognised(result: HttpResult) -> Iterator[Gap]:
    why = result.trouble or "is none of the engines known by `owned_by` in its /v1/models"
    yield Gap(str(result.question.base), why, _cite(result))


def _finding(id: str, target: _Target, what: str, cites: tuple[Cite, ...], advice: str = "") -> Finding:
    return Finding(
        id=id,
        outcome=Outcome.WARN,
        subject=target.subject,
        summary=f"{target.engine.title} {what}",
        cites=cites,
        advice=advice,
    )


def _cite(result: HttpResult) -> tuple[Cite, ...]:
    return (Cite(result.key),)
