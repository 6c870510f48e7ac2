"""An old report judged again by this version of ddprobe: from its evidence where that is whole, else from its facts.

What rests on a file that is missing, or is not what was written, is unknown, and that is said.
"""

from ddprobe.rejudging.comparing import CHANGED, compared
from ddprobe.rejudging.damage import MOST_TOLD, damaged
from ddprobe.rejudging.files import files_of, judge_files, paths_of, placed
from ddprobe.rejudging.report import rejudge
from ddprobe.rejudging.ruling import ruled
from ddprobe.store import DAMAGED

__all__ = [
    "CHANGED",
    "DAMAGED",
    "MOST_TOLD",
    "compared",
    "damaged",
    "files_of",
    "judge_files",
    "paths_of",
    "placed",
    "rejudge",
    "ruled",
]
