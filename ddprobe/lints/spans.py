"""Figures from several sources whose spans differ: do they agree all the same, and if not, why need they not?"""

from __future__ import annotations

from ddprobe.evidence.pooled import together
from ddprobe.facts import Acceptance
from ddprobe.lints.identities import agree
from ddprobe.lints.lint import Judgement, fine, note
from ddprobe.lints.measured import Measured, cites
from ddprobe.lints.metrics import metric
from ddprobe.parsing import acceptance

_ONE_OF_MANY = (", lowest of", ", highest of")
_CUT = "; output tokens over steps lose what the last step of each request was cut by"


@metric(
    "MC14",
    "figures of different spans are not held against each other",
    source="SGLang's /server_info and every /metrics count since the start or a reset, and SGLang's only at log ticks; a log "
    "since its first line; a request for itself",
    applies=lambda measured: measured.setup is None and len(_figures(measured)) > 1,
)
def spans(measured: Measured) -> Judgement:
    figures = _figures(measured)
    # Counted, and with the most steps behind it: the least a matter of chance or of a definition.
    best = max(figures, key=lambda figure: (figure.definition != acceptance.OF_TOKENS, figure.steps or 0))
    apart = [figure for figure in figures if figure is not best and not agree(best, figure)]
    listed = ", ".join(map(_told, (best, *(figure for figure in figures if figure is not best))))
    if not apart:
        return fine(f"{len(figures)} sources agree: {listed}", cites(figures))
    cut = _CUT if acceptance.OF_TOKENS in {figure.definition for figure in figures} else ""
    return note(
        f"tokens per step, by source: {listed}. They are of different spans, or weigh requests differently, and need not "
        f"agree{cut}",
        "compare what is of one span: /metrics before and after your requests, the requests' own counts, the log of that "
        "time; a snapshot taken before the traffic says nothing of it",
        cites((best, *apart)),
        counted=best.commit,
        other=apart[0].commit,
    )


def _told(figure: Acceptance) -> str:
    steps = f", {figure.steps} steps" if figure.steps else ""
    return f"{figure.origin} {figure.commit or 0:.2f} ({figure.window}{steps})"


def _figures(measured: Measured) -> tuple[Acceptance, ...]:
    """One figure of each source; none where all are of one run and span, which is another lint's matter."""
    found: dict[str, Acceptance] = {}
    for stated in (*measured.stated, *together(measured.requests)):
        of_a_part = (
            stated.text or stated.context_tokens or any(mark in stated.window for mark in _ONE_OF_MANY)
        )
        if stated.commit is None or not stated.window or of_a_part:
            continue
        known = found.get(stated.origin)
        if known is None or (stated.steps or 0) > (known.steps or 0):
            found[stated.origin] = stated
    figures = tuple(found.values())
    return figures if len({(figure.run, figure.window) for figure in figures}) > 1 else ()


LINTS = (spans,)
