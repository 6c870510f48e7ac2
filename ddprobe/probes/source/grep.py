"""Where in the installed engine source does a pattern occur?

Searches the source that the host really runs, not a copy of it: `find` lists the package's files, `grep -E` searches
them, and the files with hits are read to tell the function or class around each hit. Compiled files and
`__pycache__` are left out. The pattern is a POSIX extended regular expression: `[0-9]`, not `\\d`.

Without `--in`, all program text is searched: Python, C, C++, CUDA, Rust, TOML and chat templates. With it, every text
file that the glob matches: relative to the package, `*` crosses folders, a name without `/` means any folder, and a
folder means all that is in it.

At most 2000 hits are kept; more are an incomplete answer, and said to be. Ranges for `read` are proposed: the whole
function around a hit where it is short, else the lines around the hit.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from ddprobe.blocks import Block, Code, Heading, Paragraph
from ddprobe.errors import UsageError
from ddprobe.facts import SourceHit, SourcePackage, SourceSearch
from ddprobe.model import (
    Cite,
    CommandResult,
    Conversation,
    Evidence,
    Fact,
    Finding,
    Gap,
    Help,
    Host,
    Outcome,
    Probe,
)
from ddprobe.parsing import posix_ere, source_paths
from ddprobe.parsing.grep_output import GrepLine
from ddprobe.probes import _given, installed
from ddprobe.probes.source import _proposals, _search

MAX_CONTEXT = 50
MAX_TEXT = 2000
SHOWN_PROPOSALS = 5


@dataclass(frozen=True, kw_only=True)
class SourceGrep(Probe):
    """Searches the installed engine source."""

    pattern: Annotated[str, Help("POSIX extended regular expression, as `grep -E` takes it")]
    in_glob: Annotated[str, Help("which files, relative to the package: 'srt/speculative/*'")] = "*"
    context: Annotated[int, Help("lines to show before and after each hit")] = 0
    ignore_case: Annotated[bool, Help("take upper and lower case as the same")] = False
    word: Annotated[bool, Help("match whole words only")] = False
    limit: Annotated[int, Help("hits to show; the report keeps up to 2000")] = 200

    findings: ClassVar[dict[str, str]] = {
        "grep.nothing": "no line of the files searched matches the pattern",
        "grep.unnamed": "for some hits the function or class around them was not looked up",
    }
    outputs: ClassVar[dict[str, str]] = {
        "hits": "how many lines match, in the files that could be searched",
        "files": "the files with hits, relative to the package",
        "ranges": "what to read on, each FILE:RANGES: `places` of source.read",
        "within": "functions and classes around the hits",
        "version": "of the engine searched",
    }

    def __post_init__(self) -> None:
        """Raises `UsageError` for a search that cannot be asked, before any host is contacted."""
        posix_ere.check(self.pattern)
        source_paths.check_glob(self.in_glob)
        if not 0 <= self.context <= MAX_CONTEXT:
            raise UsageError(f"a context of {self.context} lines", f"ask for 0 to {MAX_CONTEXT}")
        if self.limit < 1:
            raise UsageError(f"a limit of {self.limit} hits", "show at least one")

    @classmethod
    def mistakes(cls, given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        yield from _given.wrong(given, "pattern", posix_ere.check)
        yield from _given.wrong(given, "in_glob", source_paths.check_glob)
        yield from _given.outside(given, "context", 0, MAX_CONTEXT)
        yield from _given.outside(given, "limit", 1, _search.MAX_HITS)

    @classmethod
    def output(cls, facts: Sequence[Fact], findings: Sequence[Finding]) -> Mapping[str, Any]:
        search = next((fact for fact in facts if isinstance(fact, SourceSearch)), None)
        # No hit in what was searched says nothing of files that were not.
        if search is None or not (search.hits or search.files_searched == search.files):
            return {}
        hits = [fact for fact in facts if isinstance(fact, SourceHit)]
        return {
            "hits": search.hits,
            "files": tuple(dict.fromkeys(hit.path for hit in hits)),
            "ranges": search.proposals,
            "within": tuple(dict.fromkeys(hit.within for hit in hits if hit.within)),
            "version": search.version or None,
        }

    def collect(self, host: Host) -> Conversation:
        package = (yield from installed.find(host)).path
        if not package:
            return
        files = _search.listed((yield _search.listing(package, self.in_glob)), package)
        if not files:
            yield _search.all_files(package, self.in_glob)
            return
        search = _search.found((yield _search.searches(files, self._options(), self.pattern)))
        hit_files = search.files()
        came = 0
        for start in range(0, len(hit_files), _search.SOURCES_AT_ONCE):
            wanted = _search.sources(hit_files, start)
            if not wanted or came > _search.SOURCES_BYTES:
                break
            came += sum(len(answer.stdout) for answer in (yield wanted))

    def _options(self) -> tuple[str, ...]:
        return (
            *(("-i",) if self.ignore_case else ()),
            *(("-w",) if self.word else ()),
            *(("-C", str(self.context)) if self.context else ()),
        )

    def interpret(self, evidence: Evidence) -> Iterator[Fact | Finding | Gap]:
        source = installed.understood(evidence)
        package = source.the()
        yield from source.facts()
        listing = evidence.command(_search.LISTING)
        files = _search.listed(listing, package.path)
        if unlisted := _search.unlisted(listing):
            yield Gap("files", f"some could not be listed: {unlisted}", (Cite(_search.LISTING),))
        if not files:
            yield self._no_files(package, _search.near(self.in_glob, package.path, evidence))
            return
        results = tuple(
            result
            for result in evidence.started_with(_search.SEARCH)
            if isinstance(result, CommandResult) and result.key != _search.LISTING
        )
        if not results:
            yield Gap(f"{len(files)} files", "were not searched")
            return
        search = _search.found(results)
        yield from search.gaps
        yield from self._judge(search, package, evidence, len(files))

    def _no_files(self, package: SourcePackage, near: str) -> Gap:
        return Gap(
            f"--in {self.in_glob}",
            f"no file of {installed.title(package)} at {package.path} is called so: nothing was searched; {near} "
            "(a glob is relative to the package: 'srt/speculative/*')",
            (Cite(_search.LISTING),),
        )

    def _judge(
        self, search: _search.Search, package: SourcePackage, evidence: Evidence, files: int
    ) -> Iterator[Fact | Finding | Gap]:
        hits = search.hits
        sources = _search.read(evidence)
        cites = tuple(Cite(r.key) for r in evidence.started_with(_search.SEARCH) if r.key != _search.LISTING)
        yield SourceSearch(
            pattern=self.pattern,
            glob=self.in_glob,
            package=package.path,
            version=package.version,
            host=evidence.host.name,
            files=files,
            files_searched=search.searched,
            files_hit=len(search.files()),
            hits=len(hits),
            cut=search.cut,
            proposals=_proposals.of(hits, sources, package.path),
            source=cites,
        )
        yield from self._hits(search, sources, package.path)
        if search.cut:
            yield Gap(
                f"hits of {self.pattern!r}",
                f"are more than fit: {min(len(hits), _search.MAX_HITS)} are kept; search for less, or narrow --in",
                cites,
            )
        if not hits and search.searched:
            yield self._nothing(search.searched, cites)
        unnamed = [hit for hit in hits[: _search.MAX_HITS] if hit.path not in sources]
        if unnamed:
            yield Finding(
                id="grep.unnamed",
                outcome=Outcome.INFO,
                subject=f"{len(unnamed)} of {len(hits)} hits",
                summary=f"the function or class around them was not looked up: {len(sources)} of "
                f"{len(search.files())} files with hits were read whole",
                cites=cites,
                advice="narrow the search with --in",
            )

    def _hits(
        self, search: _search.Search, sources: dict[str, _search.Source], package: str
    ) -> Iterator[SourceHit]:
        by_file: dict[str, dict[int, GrepLine]] = {}
        for line in search.lines:
            by_file.setdefault(line.path, {})[line.number] = line
        for hit in search.hits[: _search.MAX_HITS]:
            source = sources.get(hit.path)
            around = source.outline.around(hit.number) if source else None
            beside = by_file[hit.path]
            yield SourceHit(
                path=source_paths.relative(hit.path, package),
                line=hit.number,
                text=_bounded(hit.text),
                within=around.name if around else "",
                context=tuple(
                    (number, _bounded(beside[number].text))
                    for number in range(hit.number - self.context, hit.number + self.context + 1)
                    if number != hit.number and number in beside
                ),
            )

    def _nothing(self, searched: int, cites: tuple[Cite, ...]) -> Finding:
        other = [
            *(() if self.ignore_case else ("-i takes any case",)),
            *(("without -w, parts of words match too",) if self.word else ()),
            *(() if self.in_glob == "*" else ("without --in, the whole package is searched",)),
        ]
        return Finding(
            id="grep.nothing",
            outcome=Outcome.INFO,
            subject=self.pattern,
            summary=f"no line matches in the {searched} files searched (--in {shlex.quote(self.in_glob)})",
            cites=cites,
            advice="; ".join(other),
        )

    def show(self, facts: Sequence[Fact]) -> Iterator[Block]:
        search = next((fact for fact in facts if isinstance(fact, SourceSearch)), None)
        if search is None:
            return
        package = installed.of(facts)
        of = "" if search.files == search.files_searched else f" (there are {search.files})"
        within = "" if search.glob == "*" else f", --in {search.glob}"
        hits_in = f"{search.hits} {'hit' if search.hits == 1 else 'hits'} in {search.files_hit} of"
        yield Paragraph(
            f"{'at least ' * search.cut}{hits_in if search.hits else 'no hits in'} {search.files_searched} files "
            f"searched{of}{within}: {installed.title(package) if package else search.version} "
            f"at {search.package}"
        )
        if also := installed.others(facts):
            yield Paragraph(also, tone="dim")
        hits = [fact for fact in facts if isinstance(fact, SourceHit)]
        for run in _runs(hits[: self.limit]):
            yield _code(run)
        if len(hits) > self.limit:
            yield Paragraph(
                f"{len(hits) - self.limit} more hits are in the report; --limit shows more, --in narrows the search",
                tone="warn",
            )
        if search.proposals:
            yield Heading("To read on")
            for proposal in search.proposals[:SHOWN_PROPOSALS]:
                command = f"ddprobe read {shlex.quote(proposal)} {shlex.quote(search.host)}"
                yield Paragraph(command, tone="command")


def _bounded(text: str) -> str:
    text = text.removesuffix("\r")
    return (
        text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]} … (cut: the line has {len(text)} characters)"
    )


def _runs(hits: Sequence[SourceHit]) -> Iterator[list[SourceHit]]:
    """The hits in runs of one file and one enclosing function."""
    run: list[SourceHit] = []
    for hit in hits:
        if run and (hit.path, hit.within) != (run[-1].path, run[-1].within):
            yield run
            run = []
        run.append(hit)
    if run:
        yield run


def _code(run: list[SourceHit]) -> Code:
    lines = {number: text for hit in run for number, text in hit.context} | {
        hit.line: hit.text for hit in run
    }
    path, within = run[0].path, run[0].within
    return Code(
        path=path,
        lines=tuple(sorted(lines.items())),
        language=source_paths.language(path),
        title=f"{path} in {within}" if within else path,
        marked=tuple(hit.line for hit in run),
    )
