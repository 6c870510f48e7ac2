"""Running totals over SGLang's decode lines: by server, by tokens per request, by running requests. Never the lines."""

from __future__ import annotations

import operator
from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import TypeVar

from ddprobe import statistics
from ddprobe.facts import DecodeBin
from ddprobe.parsing import accept_rates, acceptance, decode_log, sizes

OFF = -1
"""The era of lines without any acceptance figure."""
UNREADABLE = -2
"""And of lines that state one which is no number, or cannot be."""
COUNTED = 32768
"""Different lines (by what is counted of them) that are held before they are added up."""
KNOWN = 32768
"""Different texts whose era is remembered."""
SPEEDS = 1024
"""Throughputs of one bin that are kept for their median: each, then every second, every fourth, …"""
FEW = 256
"""A bin with fewer has every line's throughput looked at …"""
SAMPLED = 16
"""… and later about so many lines of each block have."""
THIRD = 2
"""Throughputs that the first and the last third of a bin need."""
MOST_ERAS = 6
MOST_BINS = 64
"""Bins of a series; with more, those of the fewest lines are left out."""

Place = tuple[int, int]
"""Bits of the tokens per request, bits of the running requests; 0 where that is not known."""
Key = tuple[int, int, int, int]
"""Era, place, and whether the step ran from a CUDA graph: steps of the two kinds are never thrown together."""
GRAPH = {None: 0, False: 1, True: 2}
Thing = TypeVar("Thing")


@dataclass(slots=True)
class Era:
    """Lines whose accept rates one formula explains: one server, or one release of it."""

    fitting: frozenset[accept_rates.Candidate] | None
    """None: its lines state no rate."""
    longest: float = 0.0

    def takes(self, fitting: frozenset[accept_rates.Candidate] | None) -> bool:
        """Whether a line with these candidates may be of this era."""
        if self.fitting and fitting:
            return bool(self.fitting & fitting)
        return self.fitting == fitting

    @property
    def formula(self) -> accept_rates.Formula | None:
        return accept_rates.named(self.fitting, self.longest) if self.fitting else None


@dataclass(frozen=True, slots=True)
class Told:
    """What a line tells of its acceptance, read once for all lines that tell the same."""

    era: int
    commit: float | None
    rate: float | None
    graph: bool | None


@dataclass(slots=True)
class Sums:
    """What one bin's lines come to."""

    lines: int = 0
    commits: int = 0
    commit: float = 0.0
    low: float = float("inf")
    high: float = 0.0
    rates: int = 0
    rate: float = 0.0
    graphs: int = 0
    graph: int = 0
    speeds: array[float] = field(default_factory=lambda: array("d"))
    stride: int = 1
    seen: int = 0
    """Lines whose throughput was looked at."""
    weighed: int = 0
    """Lines whose running requests were, and …"""
    requests: int = 0
    """… these, added up."""
    tokens: int = 0
    """Those lines' tokens per running request, added up."""

    def weigh(self, requests: int, tokens: int) -> None:
        """Takes one line's running requests, and its tokens in use for each of them."""
        self.weighed += 1
        self.requests += requests
        self.tokens += tokens

    def speed(self, value: float) -> None:
        """Takes one line's throughput per request."""
        if self.seen % self.stride == 0:
            self.speeds.append(value)
            if len(self.speeds) >= SPEEDS:
                self.speeds = self.speeds[::2]
                self.stride *= 2
        self.seen += 1

    def add(self, told: Told, count: int) -> None:
        """Takes so many lines that tell the same of their acceptance."""
        self.lines += count
        if told.commit is not None:
            self.commits += count
            self.commit += count * told.commit
            self.low, self.high = min(self.low, told.commit), max(self.high, told.commit)
        if told.rate is not None:
            self.rates += count
            self.rate += count * told.rate
        if told.graph is not None:
            self.graphs += count
            self.graph += count * told.graph


class _Numbered(dict[Thing, int]):
    """Things in the order in which they first came; small numbers are counted much faster than texts."""

    def __missing__(self, thing: Thing) -> int:
        self[thing] = number = len(self)
        return number


class _Requests(dict[str, int]):
    """Whole numbers by how they are written: of few different ones, looked up faster than read again."""

    def __missing__(self, text: str) -> int:
        number = int(text)
        if len(self) < KNOWN:
            self[text] = number
        return number


class Tally:
    """All decode lines of one document, as far as they have passed."""

    def __init__(self) -> None:
        self.eras: list[Era] = []
        self._bins: dict[Key, Sums] = {}
        self._known: dict[str, Told] = {}
        self._texts = _Numbered[str]()
        """What lines tell of acceptance."""
        self._places = _Numbered[Place]()
        self._counts: Counter[tuple[int, int]] = Counter()
        """Lines, by the number of what they tell and that of their place."""
        self._enough: set[int] = set()
        """Places, by number, that need no more throughputs."""
        self._requests = _Requests()
        self._after_idle = False
        """Since the last decode line a prefill began on a server that ran nothing."""

    def block(self, block: str) -> tuple[int, int]:
        """Takes every decode line of a block; how many there were, and how many prefill lines."""
        prefills = list(decode_log.prefills(block))
        idle = [at for at, quiet in prefills if quiet]
        total, skip = self._after(block, idle)
        if total:
            rows = decode_log.COMMON.findall(block)
            if len(rows) == total:
                self._common(rows, skip)
            else:
                total = self._each(block, skip)
        if len(self._counts) > COUNTED:
            self._add_up()
        return total, len(prefills)

    def _common(self, rows: list[tuple[str, str, str, str]], skip: set[int]) -> None:
        """Takes lines of the common shape. A gigabyte goes through here, so a line at a time is too slow: by columns."""
        running, tokens, told, speeds = zip(*rows, strict=True)
        requests = list(map(self._requests.__getitem__, running))
        contexts = map(int.bit_length, map(operator.floordiv, map(int, tokens), requests))
        where = zip(contexts, map(int.bit_length, requests), strict=True)
        places = list(map(self._places.__getitem__, where))
        self._counts.update(zip(map(self._texts.__getitem__, told), places, strict=True))
        # For medians a sample does: every line of a bin that has few yet, else some lines of each block.
        known = list(self._places)
        self._enough |= {at for at in set(places) - self._enough if not self._few(known[at])}
        few = set(places) - self._enough
        step = max(1, len(rows) // SAMPLED)
        for at in range(0, len(rows), 1 if few else step):
            if at % step == 0 or places[at] in few:
                sums = self._sums(self._told(told[at]), known[places[at]])
                sums.weigh(requests[at], int(tokens[at]) // requests[at])
                if at not in skip:
                    sums.speed(float(speeds[at]) / requests[at])

    def _few(self, place: Place) -> bool:
        """Whether the bins of that place have few throughputs yet."""
        return all(
            sums.seen < FEW
            for era in range(max(1, len(self.eras)))
            for graph in GRAPH.values()
            if (sums := self._bins.get((era, *place, graph))) is not None
        )

    def _after(self, block: str, idle: list[int]) -> tuple[int, set[int]]:
        """How many decode lines the block has, and which of them come first after idle time."""
        first = {0} if self._after_idle else set()
        total, seen = 0, 0
        for at in idle:
            total += block.count(decode_log.MARK, seen, at)
            seen = at
            first.add(total)
        total += block.count(decode_log.MARK, seen)
        self._after_idle = total in first  # and the line comes in a later block
        return total, first

    def _each(self, block: str, skip: set[int]) -> int:
        """Takes decode lines of any shape, one by one."""
        lines = 0
        for row, (_, text) in enumerate(decode_log.lines_with(block, decode_log.MARK)):
            line = decode_log.decode_line(text)
            if line is None or (line.running is None and line.throughput is None):
                continue
            lines += 1
            told = ", ".join(
                f"{name}: {value[:32]}"
                for name, value in line.fields.items()
                if name in ("accept len", "accept rate") or name.endswith(" graph")
            )
            requests = min(line.running or 0, 2**17)
            context = min((line.tokens or 0) // requests if requests else 0, 2**30)
            place = (context.bit_length(), requests.bit_length())
            self._counts[self._texts[told], self._places[place]] += 1
            if requests:
                sums = self._sums(self._told(told), place)
                sums.weigh(requests, context)
                if line.throughput is not None and row not in skip:
                    sums.speed(line.throughput / requests)
        return lines

    def _sums(self, told: Told, place: Place) -> Sums:
        key = (told.era, *place, GRAPH[told.graph])
        sums = self._bins.get(key)
        if sums is None:
            sums = self._bins[key] = Sums()
        return sums

    def _add_up(self) -> None:
        texts, places = list(self._texts), list(self._places)
        for (text, place), count in self._counts.items():
            told = self._told(texts[text])
            self._sums(told, places[place]).add(told, count)
        self._counts.clear()
        self._texts.clear()

    def _told(self, text: str) -> Told:
        found = self._known.get(text)
        if found is not None:
            return found
        line = decode_log.told(text)
        if line is None:
            return Told(OFF, None, None, None)
        if len(self._known) > KNOWN:
            self._known.clear()
        commit = acceptance.length(line.commit)
        # By every formula a rate is at most the length.
        if commit is None or (line.rate is not None and line.rate > commit):
            told = "accept len" in line.fields
            self._known[text] = Told(UNREADABLE if told else OFF, None, None, line.graph)
        else:
            self._known[text] = Told(self._fitting(commit, line), commit, line.rate, line.graph)
        return self._known[text]

    def _fitting(self, commit: float, line: decode_log.DecodeLine) -> int:
        shortest = commit - line.slack("accept len")
        fitting = None
        if line.rate is not None:
            pair = accept_rates.Pair(commit, line.rate, line.slack("accept len"), line.slack("accept rate"))
            fitting = accept_rates.candidates(pair)
            if len(self.eras) >= MOST_ERAS:
                fitting = next(
                    (fitting for era in self.eras if era.fitting and era.fitting & fitting), frozenset()
                )
        # The latest first: what fits two servers is more likely of the one that runs now.
        for number in reversed(range(len(self.eras))):
            era = self.eras[number]
            if era.takes(fitting):
                era.fitting = era.fitting & fitting if era.fitting and fitting else era.fitting
                era.longest = max(era.longest, shortest)
                return number
        self.eras.append(Era(fitting, shortest))
        return len(self.eras) - 1

    # --- what it comes to -------------------------------------------------------------------------------

    def servers(self) -> list[tuple[int, dict[Key, Sums]]]:
        """The bins of every era, and those of lines without acceptance as `OFF` and `UNREADABLE`."""
        self._add_up()
        found: dict[int, dict[Key, Sums]] = {}
        for key, sums in sorted(self._bins.items()):
            if sums.lines:
                found.setdefault(key[0], {})[key] = sums
        return sorted(found.items())


def correct_rate(
    commit: float | None, stated: float | None, formula: accept_rates.Formula | None
) -> float | None:
    """The share of drafts that were right, from mean accept length and mean stated rate; None: it does not follow."""
    if commit is None or formula is None or stated is None:
        return None
    if formula.k is not None:
        return (commit - 1) / formula.k
    return formula.correct_rate(accept_rates.Pair(commit, stated))


def bins(sums: dict[Key, Sums], formula: accept_rates.Formula | None) -> tuple[DecodeBin, ...]:
    """The bins whose context is known, by running requests, then by context."""
    placed = [(key, each) for key, each in sums.items() if key[1] and key[2]]
    if len(placed) > MOST_BINS:
        placed = sorted(placed, key=lambda item: -item[1].lines)[:MOST_BINS]
    placed.sort(key=lambda item: (item[0][2], item[0][1], item[0][0], item[0][3]))
    return tuple(_bin(key, each, formula) for key, each in placed)


def _bin(key: Key, sums: Sums, formula: accept_rates.Formula | None) -> DecodeBin:
    commit = sums.commit / sums.commits if sums.commits else None
    third = len(sums.speeds) // 3
    return DecodeBin(
        low=1 << (key[1] - 1),
        high=1 << key[1],
        running=1 << (key[2] - 1),
        lines=sums.lines,
        commit_mean=commit,
        commit_low=sums.low if sums.commits else None,
        commit_high=sums.high if sums.commits else None,
        rate_mean=correct_rate(commit, sums.rate / sums.rates if sums.rates else None, formula),
        tok_s=statistics.median(sums.speeds),
        graph_share=sums.graph / sums.graphs if sums.graphs else None,
        tok_s_first=statistics.median(sums.speeds[:third]) if third >= THIRD else None,
        tok_s_last=statistics.median(sums.speeds[-third:]) if third >= THIRD else None,
        tokens=sums.tokens / sums.weighed if sums.weighed else None,
    )


def pooled(sums: dict[Key, Sums]) -> tuple[float | None, float | None]:
    """Mean accept length and rate of all lines, each counting by its running requests: so many steps are behind it."""
    # Where no line's running requests were looked at, the middle of the bin stands for them.
    weighed = [
        (each.requests / each.weighed if each.weighed else max(1.0, 0.75 * (1 << key[2]) - 0.5), each)
        for key, each in sums.items()
    ]
    commits = sum(weight * each.commits for weight, each in weighed)
    rates = sum(weight * each.rates for weight, each in weighed)
    commit = sum(weight * each.commit for weight, each in weighed)
    rate = sum(weight * each.rate for weight, each in weighed)
    return (commit / commits if commits else None), (rate / rates if rates else None)


def trend(series: tuple[DecodeBin, ...]) -> str:
    """In a sentence: how commit and throughput change with context at a fixed number of running requests."""
    alike: dict[tuple[int, float | None], list[DecodeBin]] = {}
    for each in series:
        alike.setdefault((each.running, each.graph_share), []).append(each)
    rows = [row for row in alike.values() if len({each.low for each in row}) > 1]
    if not rows:
        return ""
    row = max(rows, key=lambda row: (sum(each.lines for each in row), -row[0].running))
    first, last = row[0], row[-1]
    said = []
    if first.commit_mean is not None and last.commit_mean is not None:
        said.append(f"commit {first.commit_mean:.2f} → {last.commit_mean:.2f}")
    elif first.rate_mean is not None and last.rate_mean is not None:
        said.append(f"right drafts {first.rate_mean:.0%} → {last.rate_mean:.0%}")
    if first.tok_s is not None and last.tok_s is not None:
        said.append(f"{first.tok_s:.1f} → {last.tok_s:.1f} tokens per second and request")
    if not said:
        return ""
    running = first.running
    among = "1 running request" if running == 1 else f"{running} to {2 * running - 1} running requests"
    return (
        f"with {among}, from {sizes.short(first.low)} to {sizes.short(last.low)} tokens of context and more: "
        + ", ".join(said)
    )
