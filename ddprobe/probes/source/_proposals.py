"""What to read after a search: arguments for `read`, whole functions where they are short."""

from __future__ import annotations

from collections.abc import Sequence

from ddprobe.parsing import line_ranges, source_paths
from ddprobe.parsing.grep_output import GrepLine
from ddprobe.parsing.line_ranges import LineRange
from ddprobe.probes.source._search import Source

SMALL_FUNCTION = 60
AROUND = 10
MAX_PROPOSALS = 12
RANGES_A_FILE = 8


def of(hits: Sequence[GrepLine], sources: dict[str, Source], package: str) -> tuple[str, ...]:
    """Arguments for `read`, files with most hits first."""
    by_file: dict[str, list[int]] = {}
    for hit in hits:
        by_file.setdefault(hit.path, []).append(hit.number)
    most = sorted(by_file, key=lambda path: (-len(by_file[path]), path))[:MAX_PROPOSALS]
    return tuple(
        f"{source_paths.relative(path, package)}:{line_ranges.spell(_ranges(by_file[path], sources.get(path)))}"
        for path in most
    )


def _ranges(numbers: Sequence[int], source: Source | None) -> tuple[LineRange, ...]:
    """What to read around these lines of one file: short functions whole, else some lines on either side."""
    wanted = []
    for number in numbers:
        around = source.outline.around(number) if source else None
        if around is not None and around.kind != "class" and around.last - around.first < SMALL_FUNCTION:
            wanted.append(LineRange(around.first, around.last))
        else:
            last = number + AROUND if source is None else min(number + AROUND, source.total)
            wanted.append(LineRange(max(1, number - AROUND), max(number, last)))
    merged = line_ranges.merge(tuple(wanted), near=3)
    most = sorted(merged, key=lambda r: -sum(r.first <= number <= r.last for number in numbers))[
        :RANGES_A_FILE
    ]
    return tuple(sorted(most, key=lambda r: r.first))
