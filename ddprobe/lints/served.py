"""What lints judge: one server with its arguments, its drafter and its target, put together from the facts of a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ddprobe.facts import (
    Acceptance,
    CommitPoint,
    DecodeSeries,
    Discovered,
    Gpu,
    GpuSample,
    LogEvent,
    ModelConfig,
    Reach,
    ServerArgs,
    ServerProcess,
    ServerState,
    SourceHit,
    SourcePackage,
)
from ddprobe.facts.hosts import SPEAKS_OF_IT
from ddprobe.lints.launches import launches, owner, place
from ddprobe.model import Cite, Fact
from ddprobe.parsing.version import release

CUT = "the part that is missing"
NEWEST_READ = "0.5.23"
"""The newest SGLang whose source these lints were read in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A server, or a drafter and target named by hand (then without name, arguments and process)."""

    name: str = ""
    engine: str = ""
    version: str = ""
    process: ServerProcess | None = None
    given: ServerArgs | None = None
    """The command line; None where it is not all that the server was given."""
    elsewhere: str = ""
    """Where further arguments stand, if nothing else tells them: a file, or the part of a text that is missing."""
    resolved: ServerArgs | None = None
    """As the server itself says; of a text that is cut off, what stands there."""
    drafter: ModelConfig | None = None
    target: ModelConfig | None = None
    gpus: tuple[str, ...] = ()
    source_lines: tuple[SourceHit, ...] = ()
    """Lines of the engine's source that were looked up."""
    drafted: Fact | None = None
    """What shows that it drafts, whatever its arguments say; None where nothing does, or several servers might be meant."""
    slots: tuple[LogEvent, ...] = ()
    """What its log says of the context that a request may have; empty where several servers might be meant."""
    points: tuple[CommitPoint, ...] = ()
    """What was measured; empty where several servers might be meant."""
    logs: tuple[DecodeSeries, ...] = ()
    """What its decode log says; empty where several servers might be meant."""

    # --- arguments -------------------------------------------------------------------------------------

    @property
    def arguments_known(self) -> bool:
        """Whether one that is told nowhere was not given."""
        return self.given is not None or (self.resolved is not None and not self.resolved.cut)

    def untold(self, name: str) -> bool:
        """Whether an argument may have been given, in the part of them that is missing."""
        known = [dict(args.values) for args in (self.given, self.resolved) if args is not None]
        return not self.arguments_known and not any(name in values for values in known)

    @property
    def says_off(self) -> bool:
        """The server itself says that it does not speculate."""
        if self.resolved is None or self.algorithm:
            return False
        told = dict(self.resolved.values)
        return not self.resolved.cut or any(name in told for name in SPEAKS_OF_IT)

    def arg(self, name: str) -> Any:
        """An argument in force: as the server resolved it, else as it was given."""
        value = self.resolved.get(name) if self.resolved else None
        return value if value is not None else self.given.get(name) if self.given else None

    def number(self, name: str) -> int | None:
        """An argument in force if it is a whole number."""
        value = self.arg(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    @property
    def drafter_length(self) -> int | None:
        """The context length that vLLM's speculative config gives the drafter."""
        config = self.arg("speculative_config")
        value = config.get("max_model_len") if isinstance(config, Mapping) else None
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def switched_on(self, name: str) -> bool:
        return self.arg(name) is True

    def chosen(self, name: str) -> Any:
        """An argument as the person gave it: from the command line when that is known."""
        return (self.given or self.resolved or _NOTHING).get(name)

    def arg_cite(self, name: str) -> tuple[Cite, ...]:
        """Where the argument in force can be checked; the arguments as a whole where it was not given."""
        if self.resolved is not None and self.resolved.get(name) is not None:
            return _cites(self.resolved, f"$.{name}")
        args = self.given if self.given is not None else self.resolved
        at = f"--{name.replace('_', '-')}" if self.given is not None else f"$.{name}"
        return _cites(args, at if args is not None and args.get(name) is not None else "")

    # --- what it does ----------------------------------------------------------------------------------

    @property
    def algorithm(self) -> str:
        """`DFLASH`, `EAGLE3`, …; empty when the server does not speculate, or when no arguments are known."""
        value = self.arg("speculative_algorithm")
        if isinstance(value, str) and value.lower() not in ("", "none", "null"):
            return value.upper()
        return "DRAFT" if self.engine != "sglang" and self.arg("speculative_draft_model_path") else ""

    @property
    def family(self) -> str:
        """`dflash`, `dspark`, `eagle` or `other`; empty when nothing speculates. Without arguments, by the drafter."""
        name = self.algorithm
        if not name:
            if self.arguments_known or self.drafter is None:
                return ""
            name = " ".join(self.drafter.architectures).upper()
            if self.drafter.target_layer_ids is not None and not any(
                word in name for word in ("DSPARK", "EAGLE")
            ):
                return "dflash"
        for word, family in (
            ("DSPARK", "dspark"), ("DFLASH", "dflash"), ("DDTREE", "dflash"), ("MUSEGLIMMER", "dflash"), ("EAGLE", "eagle"),
            ("NEXTN", "eagle"),
        ):  # fmt: skip
            if word in name:
                return family
        return "other"

    @property
    def drafts_with_own_layers(self) -> bool:
        """The target drafts with next-token (MTP) layers of its own checkpoint."""
        if not self.algorithm or self.drafter is not None:
            return False
        path = self.arg("speculative_draft_model_path")
        if path and path != self.arg("model_path"):
            return False
        if self.engine == "sglang":
            return self.algorithm in ("EAGLE", "NEXTN")
        return "MTP" in self.algorithm or "NEXTN" in self.algorithm

    @property
    def on_sglang(self) -> bool:
        """True for SGLang, and where no server is known: the drafter is then judged as SGLang would read it."""
        return self.engine in ("", "sglang")

    @property
    def of(self) -> str:
        return f" of {self.name}" if self.name else ""

    # --- lengths ---------------------------------------------------------------------------------------

    def context(self) -> tuple[int | None, str, tuple[Cite, ...]]:
        """The context length served, in words where it comes from, and where that can be checked."""
        told = {dict(event.values).get("length", "") for event in self.slots}
        slot = told.pop() if len(told) == 1 else ""
        if slot.isdecimal() and len(slot) < 16:
            # llama.cpp caps what was asked for, and shares it among its slots.
            return int(slot), f"the context of a slot, {slot}", self.slots[0].source
        given = self.number("context_length")
        if given is not None and given > 0:
            return given, f"the server's context_length {given}", self.arg_cite("context_length")
        if self.target is not None and self.target.context_length is not None:
            length = self.target.context_length
            return length, f"the target's own length {length}", config_cite(self.target, "context_length")
        return None, "", ()

    def ceiling(self) -> int | None:
        """Most tokens that a step can commit, as the arguments have it."""
        drafts = self.number("num_speculative_tokens")
        if drafts is None and self.engine == "sglang" and self.algorithm:
            if self.family == "eagle":
                # Of a tree only one path is accepted: it is as long as the drafter takes steps.
                drafts = self.number("speculative_num_steps")
            elif self.family == "dspark" and self.number("speculative_num_draft_tokens") is None:
                drafts = self.gamma()
            block = self.block_size()
            return drafts + 1 if drafts else block if block and block > 1 else None
        return drafts + 1 if drafts else None

    def gamma(self) -> int | None:
        """Tokens that a DSpark drafter proposes, as asked for, else as trained."""
        asked = self.number("speculative_dspark_block_size")
        return asked if asked is not None or self.drafter is None else self.drafter.dspark_gamma

    def block_size(self) -> int | None:
        """Tokens in a block as the server was asked for them, else as the drafter was trained; None when neither says."""
        asked = self.asked_block_size() if self.engine == "sglang" else None
        return asked if asked is not None or self.drafter is None else self.drafter.block_size

    def asked_block_size(self) -> int | None:
        """Tokens in a block as SGLang was asked for them. The nodes of a draft tree are no block: only its depth is."""
        tokens, budget = self.number("speculative_num_draft_tokens"), self.tree_budget
        if tokens is None or (budget is not None and tokens > budget):
            return self.number("speculative_dflash_block_size")
        return tokens

    @property
    def tree_budget(self) -> int | None:
        """Draft nodes of a DDTree beside its root; forks name the argument as they like."""
        args = [args for args in (self.resolved, self.given) if args is not None]
        return next(
            (
                value
                for each in args
                for name, value in each.values
                if "ddtree" in name.lower() and "budget" in name.lower() and type(value) is int and value > 0
            ),
            None,
        )

    def target_layers(self) -> int | None:
        """Layers that a tap may name: a looped target counts each pass."""
        if self.target is None or self.target.num_hidden_layers is None:
            return None
        return self.target.num_hidden_layers * (self.target.num_loops or 1)


_NOTHING = ServerArgs(engine="", origin="")


def config_cite(config: ModelConfig | None, *fields: str) -> tuple[Cite, ...]:
    """Where these fields of a configuration can be checked."""
    if config is None or not config.source:
        return ()
    return tuple(Cite(config.source[0].artefact, config.place(field)) for field in fields)


def beside_cite(config: ModelConfig | None, about: str) -> tuple[Cite, ...]:
    """The artefact read beside config.json that says something: `header`, `files`, `$.added_tokens_decoder`."""
    sources = config.source if config is not None else ()
    return tuple(source for source in sources if source.at.startswith(about))


def _cites(fact: Fact | None, at: str) -> tuple[Cite, ...]:
    return (Cite(fact.source[0].artefact, at or fact.source[0].at),) if fact and fact.source else ()


def put_together(facts: Sequence[Fact]) -> tuple[Served, ...]:
    """Every server among the facts, and drafters and targets that belong to none."""
    processes = _processes(facts)
    cards = [fact for fact in facts if isinstance(fact, GpuSample | Gpu)]
    gpus = tuple(
        dict.fromkeys(
            [fact.value for fact in facts if isinstance(fact, Discovered) and fact.what == "gpu"]
            + [gpu for fact in facts if isinstance(fact, Reach) for gpu in fact.gpus]
            + [card.kind if isinstance(card, Gpu) else card.name for card in cards if card.name]
        )
    )
    collected = [fact for fact in facts if isinstance(fact, ServerArgs) and not fact.server]
    starts = launches(collected) if not any(process.pid for process in processes) else ()
    if len(starts) > 1:
        found = _of_starts(starts, facts, gpus)
    else:
        found = [_of_process(process, processes, facts, gpus) for process in processes]
    if len(starts) > 1 or not processes:
        args = [fact for fact in facts if isinstance(fact, ServerArgs)]
        if len(starts) == 1:
            found.append(_of_args("", starts[0], facts, gpus))
        for name in dict.fromkeys(arg.server for arg in args if arg.server):
            mine = [arg for arg in args if arg.server == name]
            found.append(_of_args(name, mine, facts, gpus))
    if not any(served.name == "" for served in found) and len(starts) < 2:
        drafter, target = _config(facts, "drafter", ""), _config(facts, "target", "")
        if drafter is not None or target is not None:
            found.append(
                Served(drafter=drafter, target=target, version=_installed(facts, "sglang"), gpus=gpus)
            )
    lines = tuple(fact for fact in facts if isinstance(fact, SourceHit))
    if len(found) != 1:
        return tuple(replace(served, source_lines=lines) for served in found)
    points = tuple(fact for fact in facts if isinstance(fact, CommitPoint))
    drafted = next(filter(_shows_drafts, facts), None)
    slots = tuple(fact for fact in facts if isinstance(fact, LogEvent) and fact.kind == "slot_context")
    logs = tuple(fact for fact in facts if isinstance(fact, DecodeSeries))
    (one,) = found
    return (replace(one, source_lines=lines, slots=slots, points=points, drafted=drafted, logs=logs),)


def _shows_drafts(fact: Fact) -> bool:
    """Whether something was drafted: counted in steps, or more than one token came out of one."""
    if isinstance(fact, CommitPoint):
        return bool(fact.drafted_steps)
    return isinstance(fact, Acceptance) and bool(fact.steps or fact.rate)


def _of_starts(
    starts: Sequence[Sequence[ServerArgs]], facts: Sequence[Fact], gpus: tuple[str, ...]
) -> list[Served]:
    """Each start under a name, with the variables that are its own, and only with a drafter its config.

    Variables of nobody knows which start come last, engine by engine.
    """
    collected = [fact for fact in facts if isinstance(fact, ServerProcess)]
    owners = [owner(process, starts) for process in collected]
    found = []
    for number, start in enumerate(starts):
        mine = [process for process, at in zip(collected, owners, strict=True) if at == number]
        served = _of_args("", start, facts, gpus)
        found.append(
            replace(
                served,
                name=place(start),
                process=_one(mine) if mine else None,
                drafter=served.drafter if served.algorithm else None,
            )
        )
    strays = [process for process, at in zip(collected, owners, strict=True) if at < 0]
    for engine in dict.fromkeys(process.engine for process in strays):
        same = [process for process in strays if process.engine == engine]
        found.append(Served(name="one of the starts", engine=engine, process=_one(same), gpus=gpus))
    return found


def _of_args(name: str, mine: Sequence[ServerArgs], facts: Sequence[Fact], gpus: tuple[str, ...]) -> Served:
    return Served(
        name=name,
        engine=mine[0].engine,
        version=next((arg.version for arg in mine if arg.version), "")
        or ("" if name else _installed(facts, mine[0].engine)),
        given=_whole(mine),
        elsewhere=_elsewhere(mine),
        resolved=next((arg for arg in mine if arg.resolved), None),
        drafter=_config(facts, "drafter", name),
        target=_config(facts, "target", name),
        gpus=gpus,
    )


def _processes(facts: Sequence[Fact]) -> list[ServerProcess]:
    """The processes; what was collected here and there of one that is not known, as one."""
    found = [fact for fact in facts if isinstance(fact, ServerProcess)]
    parts = [process for process in found if not process.pid]
    return found if len(parts) < 2 else [*(process for process in found if process.pid), _one(parts)]


def _one(parts: Sequence[ServerProcess]) -> ServerProcess:
    """What was collected of one process, put together."""
    if len(parts) == 1:
        return parts[0]
    return replace(
        parts[0],
        engine=next((part.engine for part in parts if part.engine), ""),
        argv=next((part.argv for part in parts if part.argv), ()),
        environment=tuple(sorted({pair[0]: pair for part in parts for pair in part.environment}.values())),
        environment_seen=any(part.environment_seen for part in parts),
        source=tuple(cite for part in parts for cite in part.source),
    )


def _of_process(
    process: ServerProcess, processes: list[ServerProcess], facts: Sequence[Fact], gpus: tuple[str, ...]
) -> Served:
    def belongs(fact: ServerArgs | ServerState) -> bool:
        if fact.server:
            return fact.server == process.name
        if any(source.at == f"pid {process.pid}" for source in fact.source):
            return True
        return len(processes) == 1

    args = [fact for fact in facts if isinstance(fact, ServerArgs) and belongs(fact)]
    states = [fact for fact in facts if isinstance(fact, ServerState) and belongs(fact)]
    resolved = next((arg for arg in args if arg.resolved), None)
    told = [resolved.version if resolved else "", process.version]
    told += [state.version for state in states] + [arg.version for arg in args]
    engine = process.engine or next((arg.engine for arg in args), "")
    told += [] if process.pid else [_installed(facts, engine)]
    return Served(
        name=process.name,
        engine=engine,
        version=next((version for version in told if version), ""),
        process=process,
        given=_whole(args),
        elsewhere=_elsewhere(args),
        resolved=resolved,
        drafter=_config(facts, "drafter", process.name),
        target=_config(facts, "target", process.name),
        gpus=gpus,
    )


def _whole(args: Sequence[ServerArgs]) -> ServerArgs | None:
    """The command line, if an argument that is not on it was not given."""
    return next((arg for arg in args if not arg.resolved and not arg.elsewhere and not arg.cut), None)


def _elsewhere(args: Sequence[ServerArgs]) -> str:
    if any(arg.resolved and not arg.cut for arg in args):
        return ""
    return next((arg.elsewhere or CUT * arg.cut for arg in args), "")


def _config(facts: Sequence[Fact], role: str, server: str) -> ModelConfig | None:
    return next(
        (f for f in facts if isinstance(f, ModelConfig) and f.role == role and f.server == server), None
    )


def _installed(facts: Sequence[Fact], engine: str) -> str:
    """The version of the only such engine installed; empty when there are several or none."""
    versions = {f.version for f in facts if isinstance(f, SourcePackage) and f.engine == engine}
    return versions.pop() if len(versions) == 1 else ""


def newer_than_read(version: str) -> bool:
    """True when a version is newer than the source that these lints were read in."""
    numbers, newest = release(version), release(NEWEST_READ)
    return numbers is not None and newest is not None and numbers > newest
