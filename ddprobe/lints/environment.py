"""Does the server's environment forge or hide what is measured?"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ddprobe.facts import ServerProcess
from ddprobe.lints.lint import Judgement, fail, fine, lint, need, note, unknown, warn
from ddprobe.lints.positions import OVERRIDE, truthy
from ddprobe.lints.served import Served
from ddprobe.model import Cite

SIMULATE = "SGLANG_SIMULATE_ACC_LEN"


STAGED = re.compile(r"(SPECULATIVE|SPEC|DRAFT)_(\w*_)?(MODEL|CONFIG|PATH|METHOD)(_PATH|_ID)?\Z")
"""Names of variables that containers read a drafter from: `OPTION_SPECULATIVE_DRAFT_MODEL`, `SM_VLLM_SPECULATIVE_CONFIG`."""


def _runs_sglang(served: Served) -> bool:
    return served.engine == "sglang" and served.process is not None


def _running(served: Served) -> bool:
    return _runs_sglang(served) and bool(_process(served).pid)


def _tells(name: str) -> Callable[[Served], bool]:
    """The environment was seen, or this variable of it: of a part of it, an absent variable says nothing."""
    return lambda served: _sees(served) or (_runs_sglang(served) and _value(served, name) is not None)


def _sees(served: Served) -> bool:
    return _runs_sglang(served) and _process(served).environment_seen


def _value(served: Served, name: str) -> str | None:
    return dict(served.process.environment).get(name) if served.process else None


def _cite(served: Served, name: str) -> tuple[Cite, ...]:
    """Where the environment was read: the process's, or whatever was collected of it."""
    process = _process(served)
    read = (source.artefact for source in process.source if not process.pid or "environ-" in source.artefact)
    return tuple(Cite(artefact, name) for artefact in read)[:1]


def _process(served: Served) -> ServerProcess:
    return need(served.process, "the server's process")


def _synthetic(served: Served) -> str:
    """The argument that makes acceptance up, as `name=value`; empty without one."""
    config = served.arg("speculative_config")
    if served.engine == "vllm" and isinstance(config, Mapping):
        if config.get("rejection_sample_method") == "synthetic":
            return "rejection_sample_method=synthetic"
        return next((f"{n}={v}" for n, v in config.items() if str(n).startswith("synthetic_") and v), "")
    if served.engine != "llamacpp" or served.given is None:
        return ""
    return next((f"{n}={v}" for n, v in served.given.values if "synth" in n and v not in (None, False)), "")


@lint(
    "EN01",
    "acceptance is not simulated",
    source="sglang 0.5.23 srt/environ.py:527-532, srt/speculative/dflash_utils.py:851-890; sglang#32595; "
    "vllm 0.32 config/speculative.py (synthetic); llama.cpp#27711",
    subject="environment",
    applies=lambda served: _tells(SIMULATE)(served) or _synthetic(served) != "",
    aliases=("L39",),
)
def simulated(served: Served) -> Judgement:
    made_up = _synthetic(served)
    if made_up:
        name, _, switch = made_up.partition("=")
        return fail(
            f"{made_up}: acceptance is made up by a switch, not measured",
            f"drop {name} and restart; nothing measured with it counts",
            served.arg_cite("speculative_config" if served.engine == "vllm" else name.replace("-", "_")),
            switch=switch,
        )
    value, cites = _value(served, SIMULATE), _cite(served, SIMULATE)
    if value is None:
        return fine(f"{SIMULATE} is not set", cites)
    try:
        length = float(value)
    except ValueError:
        return unknown(
            f"{SIMULATE} is set to something that is no number ({value[:40]!r})", "unset it", cites
        )
    if length > 0:
        mode = _value(served, "SGLANG_SIMULATE_ACC_TOKEN_MODE") or "fixed"
        return fail(
            f"{SIMULATE}={value}: every accept length is forged to about {length:g} (limit 0), token mode {mode}",
            f"unset {SIMULATE} and restart; nothing measured with it counts",
            cites,
            simulated=length,
        )
    return fine(f"{SIMULATE}={value} is off", cites)


@lint(
    "EN02",
    "no override hides a drafter that is too short",
    source="sglang 0.5.23 srt/configs/model_config.py:1291-1324",
    subject="environment",
    applies=_tells(OVERRIDE),
)
def longer_context(served: Served) -> Judgement:
    value, cites = _value(served, OVERRIDE), _cite(served, OVERRIDE)
    if value is not None and truthy(value):
        return warn(
            f"{OVERRIDE}={value}: a drafter shorter than the context served is stretched in silence (see DC35)",
            f"unset {OVERRIDE}",
            cites,
        )
    return fine(f"{OVERRIDE} is not on", cites)


@lint(
    "EN03",
    "the server's environment can be seen",
    source="/proc/<pid>/environ is readable by the server's own user and root",
    subject="environment",
    applies=_running,
)
def visible(served: Served) -> Judgement:
    user = _process(served).user or "the server's user"
    if _sees(served):
        return fine("the environment was read", _cite(served, ""))
    return note(
        f"the environment cannot be seen, so {SIMULATE} and {OVERRIDE} cannot be ruled out",
        "connect as root" if user == "root" else f"connect as {user} or root",
        _cite(served, ""),
    )


def _staged(served: Served) -> tuple[tuple[str, str], ...]:
    variables = served.process.environment if served.process is not None else ()
    return tuple((name, value) for name, value in variables if STAGED.search(name) and value.strip())


@lint(
    "EN04",
    "a drafter that a variable names is used",
    source="aws/sagemaker-python-sdk#6143: a container that reads another variable leaves the drafter on disk",
    subject="environment",
    applies=lambda served: bool(_staged(served)) and served.arguments_known,
    aliases=("L31",),
)
def staged(served: Served) -> Judgement:
    name, value = _staged(served)[0]
    cites = _cite(served, name)
    if served.algorithm:
        return fine(f"{name} is set, and the server speculates with {served.algorithm}", cites)
    return fail(
        f"{name} names a drafter ({value[:120]}), and the server speculates with none: it does not read this variable",
        "set the variable that this version of the container reads, or pass the engine's own flag",
        cites,
        served.arg_cite("speculative_config"),
    )


LINTS = (simulated, longer_context, visible, staged)
