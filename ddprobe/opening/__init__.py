"""Opens what is to be analysed: files, folders, archives, stdin and old reports, within bounds.

Nothing is trusted: archives unpack into a private folder that is removed afterwards, so much and no more; links that
lead out of a folder are not followed; what is no regular file is not read. What a file is called decides nothing.
"""

from ddprobe.opening.contents import Content
from ddprobe.opening.found import Closed, OldReport, Opened, Progress, Taken, is_report, shown
from ddprobe.opening.paths import STDIN, Opener, check

__all__ = [
    "STDIN",
    "Closed",
    "Content",
    "OldReport",
    "Opened",
    "Opener",
    "Progress",
    "Taken",
    "check",
    "is_report",
    "shown",
]
