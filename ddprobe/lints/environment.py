"""Does the server's environment forge or hide what is measured?"""

from __future__ import annotations

from ddprobe.facts import ServerProcess
from ddprobe.lints.lint import Judgement, fail, fine, lint, note, unknown, warn
from ddprobe.lints.positions import OVERRIDE, truthy
from ddprobe.lints.served import Served
from ddprobe.model import Cite

SIMULATE = "SGLANG_SIMULATE_ACC_LEN"


def _runs_sglang(served: Served) -> bool:
    return served.engine == "sglang" and served.process is not None


def _sees(served: Served) -> bool:
    return _runs_sglang(served) and bool(served.process and served.process.environment_seen)


def _value(served: Served, name: str) -> str | None:
    return dict(served.process.environment).get(name) if served.process else None


def _cite(process: ServerProcess | None, name: str) -> tuple[Cite, ...]:
    sources = process.source if process is not None else ()
    return tuple(Cite(source.artefact, name) for source in sources if "environ-" in source.artefact)[:1]


@lint(
    "EN01",
    "acceptance is not simulated",
    source="sglang 0.5.23 srt/environ.py:527-532, srt/speculative/dflash_utils.py:851-890; sglang#32595",
    subject="environment",
    applies=_sees,
)
def simulated(served: Served) -> Judgement:
    value, cites = _value(served, SIMULATE), _cite(served.process, SIMULATE)
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
    applies=_sees,
)
def longer_context(served: Served) -> Judgement:
    value, cites = _value(served, OVERRIDE), _cite(served.process, OVERRIDE)
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
    applies=_runs_sglang,
)
def visible(served: Served) -> Judgement:
    process = served.process
    user = process.user if process is not None and process.user else "the server's user"
    if _sees(served):
        return fine("the environment was read", _cite(process, ""))
    return note(
        f"the environment cannot be seen, so {SIMULATE} and {OVERRIDE} cannot be ruled out",
        "connect as root" if user == "root" else f"connect as {user} or root",
        _cite(process, ""),
    )


LINTS = (simulated, longer_context, visible)
