"""Which server a commit probe measures, and what is known of it before anything is sent."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ddprobe import engines
from ddprobe.engines.base import Engine, document, items, mapping
from ddprobe.engines.generation import Generation, Serving
from ddprobe.errors import Unanswered
from ddprobe.facts import ModelConfig, ServerArgs, ServerProcess
from ddprobe.model import (
    Asked,
    Cite,
    Command,
    Conversation,
    Evidence,
    Fact,
    Gap,
    Host,
    HttpRequest,
    HttpResult,
    Result,
)
from ddprobe.probes._processes import CMDLINE_CAP
from ddprobe.probes.discovery import understand
from ddprobe.probes.draft._plausible import sane
from ddprobe.probes.draft.config import DraftConfig

PREFIX = "state"
AFTER = "state-after"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The server to measure, and what it said of itself."""

    engine: Engine
    base: str
    server: ServerProcess | None
    serving: Serving
    arguments: tuple[ServerArgs, ...] = ()
    configs: tuple[ModelConfig, ...] = ()
    answers: tuple[HttpResult, ...] = ()
    known: tuple[Fact, ...] = ()
    """What discovery and the configurations gave."""
    doubts: tuple[str, ...] = ()
    """What it said of itself and cannot be."""
    prefix: str = ""
    """Before the key of every question to it, where one conversation is with two servers."""

    @property
    def generation(self) -> Generation:
        return self.engine.generation

    @property
    def name(self) -> str:
        return self.server.name if self.server is not None else ""

    @property
    def cites(self) -> tuple[Cite, ...]:
        return tuple(Cite(answer.key) for answer in self.answers if answer.whole)

    def config(self, role: str) -> ModelConfig | None:
        """This server's drafter or target configuration."""
        found = [config for config in self.configs if config.role == role]
        mine = [config for config in found if config.server in ("", self.name)]
        return next(iter(mine or found), None)


class NoTarget(Exception):
    """There is no server to measure; the gap says why, `known` what was found meanwhile."""

    def __init__(self, gap: Gap, known: Sequence[Fact] = ()) -> None:
        super().__init__(gap.reason)
        self.gap = gap
        self.known = tuple(known)


def find(host: Host) -> Generator[Asked, Any, Target]:
    """Find the server, read its models' configurations, and ask it how it is. Raises `NoTarget`."""
    known, processes = yield from _look(host)
    return (yield from ask(host, known, processes))


def ask(
    host: Host, known: tuple[Fact, ...], processes: tuple[ServerProcess, ...], prefix: str = ""
) -> Generator[Asked, Any, Target]:
    """Ask one of these servers, or the one at the host's url, how it is. Raises `NoTarget`."""
    engine, base, server = yield from _choose(host, processes, known, prefix)
    generation = engine.generation
    wanted = (*generation.paths, *([generation.counters_path] if generation.counters_path else []))
    paths = tuple(dict.fromkeys(wanted))
    answers = yield engine.requests(base, f"{prefix}{PREFIX}-", paths)
    missing = tuple(a.question.path for a in answers if a.status == 404 and a.question.path in engine.older)
    if missing:
        answers += yield engine.requests(
            base, f"{prefix}{PREFIX}-", tuple(engine.older[path] for path in dict.fromkeys(missing))
        )
    _alive(engine, base, answers, host, known)
    name = server.name if server is not None else ""
    arguments = tuple(f for f in known if isinstance(f, ServerArgs) and f.server in ("", name))
    said = generation.serving({answer.question.path: answer for answer in answers}, arguments)
    serving, doubts = sane(said)
    return Target(
        engine=engine,
        base=base,
        server=server,
        serving=serving,
        arguments=arguments,
        configs=tuple(fact for fact in known if isinstance(fact, ModelConfig)),
        answers=tuple(answers),
        known=known,
        doubts=doubts,
        prefix=prefix,
    )


def _look(host: Host) -> Generator[Asked, Any, tuple[tuple[Fact, ...], tuple[ServerProcess, ...]]]:
    """What runs, and the configurations of its models. Without a process table, the inventory's url is enough."""
    config = DraftConfig()
    answers: list[Result] = []
    try:
        yield from _recorded(config.collect(host), answers)
    except Unanswered:
        if not host.url:
            raise
        return (), ()
    evidence = Evidence(host, tuple(answers))
    try:
        facts = tuple(item for item in config.interpret(evidence) if isinstance(item, Fact))
        return facts, understand(evidence).servers
    except Unanswered:
        if not host.url:
            raise
        return (), ()


def _recorded(conversation: Conversation, answers: list[Result]) -> Conversation:
    """The same conversation, its answers kept."""
    try:
        asked = next(conversation)
        while True:
            got = yield asked
            answers += got if isinstance(asked, tuple) else [got]
            asked = conversation.send(got)
    except StopIteration:
        return


def _choose(
    host: Host, processes: tuple[ServerProcess, ...], known: tuple[Fact, ...], prefix: str
) -> Generator[Asked, Any, tuple[Engine, str, ServerProcess | None]]:
    url = (host.url or "").rstrip("/")
    servers = [server for server in processes if host.engine in (None, "", server.engine)]
    if url:
        at_url = next((server for server in servers if server.base == url), None)
        if at_url is not None:
            return engines.TABLE[at_url.engine], url, at_url
        engine = engines.TABLE.get(host.engine or "")
        if engine is None:
            engine, why = yield from _recognise(url, prefix)
            if engine is None:
                raise NoTarget(Gap(url, why), known)
        return engine, url, None
    if not servers:
        what = engines.TABLE[host.engine].title if host.engine in engines.TABLE else "inference"
        raise NoTarget(
            Gap(
                host.name,
                f"no {what} server can be seen here; name where it listens with --url http://127.0.0.1:PORT",
            ),
            known,
        )
    if len(servers) > 1:
        shown = ", ".join(f"{server.name} at {server.base or 'no port'}" for server in servers[:6])
        raise NoTarget(
            Gap(
                host.name,
                f"{len(servers)} servers run here ({shown}): name one with --url http://127.0.0.1:PORT",
            ),
            known,
        )
    (server,) = servers
    if not server.base:
        raise NoTarget(
            Gap(server.name, "listens on no port that can be asked from the host: does it still load?"), known
        )
    return engines.TABLE[server.engine], server.base, server


def _recognise(url: str, prefix: str) -> Generator[Asked, Any, tuple[Engine | None, str]]:
    """The engine at a url that no process tells, by what its /v1/models says of its owner; else why it is not known."""
    answer = yield HttpRequest(
        key=f"{prefix}url-models", method="GET", path="/v1/models", base=url, timeout=engines.HTTP_TIMEOUT
    )
    if answer.status is None:
        return None, answer.trouble
    owners = [model.get("owned_by") for model in items(mapping(document({"": answer}, "")).get("data"))]
    engine = next((engines.TABLE[str(owner)] for owner in owners if owner in engines.TABLE), None)
    return engine, "what answers there is none of the engines known; name it with --engine"


def _alive(
    engine: Engine, base: str, answers: Iterable[HttpResult], host: Host, known: tuple[Fact, ...]
) -> None:
    """Raise `NoTarget` unless the server answered at all."""
    results = tuple(answers)
    if any(
        result.whole for result in results if result.question.path not in ("/health", "/ready", "/metrics")
    ):
        return
    worst = next((r for r in results if r.question.path == engine.essential), None) or next(
        iter(results), None
    )
    reason = worst.trouble if worst is not None else "was not asked"
    if worst is not None and worst.status in (401, 403):
        name = host.api_key_env
        reason = (
            f"{engine.title} refused the key of api_key_env ({name}): HTTP {worst.status}"
            if name
            else f"{engine.title} wants an API key (HTTP {worst.status}): name the variable that holds it here, "
            "`api_key_env: NAME` in the hosts file"
        )
    elif worst is not None and worst.status == 503:
        reason = f"{engine.title} is not ready (HTTP 503): it still loads its model"
    raise NoTarget(Gap(base, reason, (Cite(worst.key),) if worst is not None else ()), known)


_SAME = (
    "model",
    "version",
    "speculating",
    "method",
    "draft_tokens",
    "context_limit",
    "kv_tokens",
    "vocabulary",
)
"""What a server says of itself and does not change while it runs."""


def replacement(target: Target, answers: Sequence[HttpResult]) -> Generator[Asked, Any, str]:
    """Why this is no longer the server that was found at first; empty while nothing speaks for that."""
    now, _ = sane(
        target.generation.serving({answer.question.path: answer for answer in answers}, target.arguments)
    )
    before = {answer.question.path for answer in target.answers if answer.whole}
    told = {answer.question.path for answer in answers if answer.whole}
    # Where less is said than before, other places may answer for it: that would be a difference of sources.
    names = _SAME if before <= told else ()
    pairs = [(name, getattr(target.serving, name), getattr(now, name)) for name in names]
    # What is not said, before or now, is no difference.
    changed = [
        f"{name.replace('_', ' ')} {was} before, {then} now"
        for name, was, then in pairs
        if was not in (None, "") and then not in (None, "") and was != then
    ]
    if changed:
        return f"another server answers now ({'; '.join(changed)}): it was replaced meanwhile"
    if target.server is None:
        return ""
    answer = yield Command(
        key=f"{target.prefix}{AFTER}-process",
        argv=("cat", f"/proc/{target.server.pid}/cmdline"),
        exits=(0, 1),
        cap=CMDLINE_CAP,
    )
    if answer.whole and not answer.stdout:
        return f"its process ({target.server.pid}) has ended: the server died, or was started again meanwhile"
    return "" if answer.whole else f"whether it still runs is unknown: {answer.trouble}"


def with_settings(host: Host, url: str, engine: str) -> Host:
    """The host, its url and engine overruled by what was typed."""
    return replace(host, url=url.rstrip("/") or host.url, engine=engine or host.engine)
