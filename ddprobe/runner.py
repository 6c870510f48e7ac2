"""The life of a run, by one name: collect, interpret, judge, for every step on every host. Its parts are in `running`."""

from ddprobe.running.conversation import Collected, collect
from ddprobe.running.fleet import NOT_KEPT, Book, run, with_trouble
from ddprobe.running.hostrun import Opener
from ddprobe.running.judging import conclude, declared, judge, judge_again, path_in, with_hypotheses
from ddprobe.running.masking import clean_log, masked_report

__all__ = [
    "NOT_KEPT",
    "Book",
    "Collected",
    "Opener",
    "clean_log",
    "collect",
    "conclude",
    "declared",
    "judge",
    "judge_again",
    "masked_report",
    "path_in",
    "run",
    "with_hypotheses",
    "with_trouble",
]
