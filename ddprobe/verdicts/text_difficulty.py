"""Is the text hard, rather than the drafter broken?"""

from __future__ import annotations

from ddprobe.model import Verdict
from ddprobe.verdicts import standing, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.excluded import excluded
from ddprobe.verdicts.ladder import mean
from ddprobe.verdicts.reach import reach
from ddprobe.verdicts.ruling import Ruling, weakest


def judge(case: Case) -> Ruling | None:
    """Easy and far text are drafted well at every length, and prose is hard at the shortest and at the longest alike.

    No other pattern supports it. Easy text that never leaves the drafter's window proves nothing of long contexts.
    """
    prose, found = standing.control(case), reach(case)
    if not prose.whole or prose.ends is None or not prose.kept or prose.ladder is None or prose.easy is None:
        return None
    if not (standing.easy_works(case) and found.works and found.far is not None):
        return None
    short, long = prose.ends
    if not (prose.hard(short) and prose.hard(long)):
        return None
    most = standing.ceiling(case)
    easy = prose.easy.at(long.context_tokens)
    assert easy is not None
    far = found.far.points[-1]
    known = case.setup is not None and case.setup.drafter == "model"
    return Ruling(
        Verdict(
            name="text_difficulty",
            confidence=weakest("high" if known else "low", standing.certainty(case)),
            reasons=(
                f"{words.commits([short, long], most)}: hard at both lengths, and no harder at the longer one",
                f"{words.commits([easy], most)}: the same drafter, the same length, easy text",
                f"{words.commits([far], most)}: what stands far back is drafted as well",
            ),
            cites=words.cites(short, long, easy, far),
            ruled_out=excluded(case),
            missing=(
                *standing.controls_missing(case),
                *(
                    ()
                    if known
                    else ("what kind of drafter it is: looking up repeated text passes easy arms trivially",)
                ),
            ),
            next=(
                "measure your own text at two lengths: ddprobe commit-probe --arms prose --text FILE",
                "a shorter draft costs less where most of it is rejected; another drafter may know this kind of text",
            ),
        ),
        explains=mean(easy) / mean(long),
    )
