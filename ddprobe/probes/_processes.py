"""Discovery, first half: which processes are inference servers, and what Linux says of each.

Nothing is run but `grep`, `head`, `ls` and `cat` on /proc, so it works without ps, ss, lsof or Python on the host,
and costs two round trips however many servers there are.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, replace

from ddprobe import engines
from ddprobe.engines.base import Engine, python_run
from ddprobe.errors import Unanswered
from ddprobe.facts import ServerProcess
from ddprobe.model import MIB, Cite, Command, Evidence, Glob, Host
from ddprobe.parsing import proc
from ddprobe.probes._ports import Ports
from ddprobe.redact.spans import NOT_KEPT

MAX_MAINS = 64
MAX_RANKS = 128
CMDLINE_CAP = 256 * 1024
_NOT_KEPT = NOT_KEPT.decode()
_LISTENING = ("grep", "-s", "-H", "-e", f" {proc.LISTEN} ")
_ADDRESSES = ("grep", "-s", "-H", "-B", "1", "-e", "/32 host LOCAL")
_LIBRARIES = ("grep", "-a", "-s", "-H", "-o", "-m", "400", "-E", "-e", "/[^ ]*/(site|dist)-packages/")


def first(host: Host) -> tuple[Command, ...]:
    """Which processes may be servers, and who we are to them."""
    chosen = [engines.TABLE[host.engine]] if host.engine in engines.TABLE else engines.TABLE.values()
    # Each needle is written so that it does not match its own text: our own grep is not a candidate.
    needles = "|".join(engine.needle for engine in chosen)
    ranks = "|".join(engine.rank_needle for engine in chosen if engine.rank_needle)
    everyone = Glob("/proc/[0-9]*/cmdline")
    asked = [
        Command(key=key, argv=("grep", "-a", "-l", "-s", "-E", "-e", needle, everyone), exits=(0, 1, 2))
        for key, needle in (("candidates", needles), ("workers", ranks))
        if needle
    ]
    mounts = ("grep", "-s", "-e", " /proc proc ", "/proc/mounts")
    return (*asked, Command(key="proc-mount", argv=mounts, exits=(0, 1, 2)))


@dataclass(frozen=True, slots=True)
class Candidates:
    """Process ids worth a closer look, and how many were left out."""

    mains: tuple[int, ...]
    ranks: tuple[int, ...]
    dropped: int = 0


def candidates(evidence: Evidence) -> Candidates:
    """The candidates of the first answers. Raises `Unanswered` when the process table could not be searched."""
    mains = proc.pids(evidence.text("candidates"))
    ranks = tuple(
        pid
        for pid in (proc.pids(evidence.text("workers")) if evidence.has("workers") else ())
        if pid not in mains
    )
    if (
        not mains
        and not ranks
        and evidence.has("proc-mount")
        and evidence.command("proc-mount").exit_code == 2
    ):
        # grep's own word for a file it cannot read: with no /proc, no process is found either.
        raise Unanswered("proc-mount", "/proc cannot be read there, so which processes run is unknown")
    dropped = max(0, len(mains) - MAX_MAINS) + max(0, len(ranks) - MAX_RANKS)
    return Candidates(mains[:MAX_MAINS], ranks[:MAX_RANKS], dropped)


def second(found: Candidates) -> tuple[Command, ...]:
    """What each candidate is, all of one kind in one question."""
    if not found.mains and not found.ranks:
        return ()
    mains, everyone = found.mains, found.mains + found.ranks

    def paths(pids: tuple[int, ...], *names: str) -> tuple[str, ...]:
        return tuple(f"/proc/{pid}/{name}" for pid in pids for name in names)

    asked = [
        *who(found),
        _many("status", "grep", "-a", "-s", "-H", "-E", "-e", "^(PPid|Uid):", *paths(everyone, "status")),
    ]
    if found.ranks:
        # /dev/null first, so that `head` (`ls` too) names the files even where there is only one.
        asked.append(_many("titles", "head", "-c", "512", "/dev/null", *paths(found.ranks, "cmdline")))
    if mains:
        folders = tuple(f"/proc/{pid}" for pid in mains)
        links = paths(mains, "exe", "cwd", "root", "ns/mnt", "ns/net")
        asked += [
            _many("links", "ls", "-l", "-d", "/proc/self/ns/mnt", "/proc/self/ns/net", *links, *folders),
            _many("cgroup", "grep", "-a", "-s", "-H", "-e", "", *paths(mains, "cgroup")),
            _many("listeners", *_LISTENING, *paths(mains, "net/tcp", "net/tcp6")),
            _many("addresses", *_ADDRESSES, "/proc/self/net/fib_trie", *paths(mains, "net/fib_trie")),
            _many("fd", "ls", "-l", "/dev/null", *paths(mains, "fd")),
            _many("libraries", *_LIBRARIES, *paths(mains, "maps")),
        ]
        # An environment travels alone: redaction then knows it for one, and keeps only the names on its list.
        asked += [Command(key=f"environ-{pid}", argv=("cat", f"/proc/{pid}/environ")) for pid in mains]
    return tuple(asked)


def who(found: Candidates) -> tuple[Command, ...]:
    """The command lines of the candidates: each alone, so that redaction sees where one ends."""
    return tuple(
        Command(key=f"cmdline-{pid}", argv=("cat", f"/proc/{pid}/cmdline"), cap=CMDLINE_CAP)
        for pid in found.mains
    )


def names(evidence: Evidence) -> tuple[str, ...]:
    """`SGLang pid 4711` for each server, from the candidates' command lines alone."""
    found = candidates(evidence)
    running = [(pid, _argv(evidence, pid)) for pid in reversed(found.mains)]
    # A fork of a server has its argv and a higher process id.
    first = {argv: (pid, engine) for pid, argv in running if (engine := engines.recognise(argv))}
    return tuple(
        f"{engine.title} pid {pid}" for pid, engine in sorted(first.values(), key=lambda each: each[0])
    )


def _argv(evidence: Evidence, pid: int) -> tuple[str, ...]:
    """A candidate's argv; empty when it is gone. Raises `Unanswered` when it was not read whole."""
    answer = evidence.command(f"cmdline-{pid}")
    return () if answer.exit_code == 1 else proc.words(answer.text)


def _many(key: str, *argv: str) -> Command:
    """A question about several files at once: some may be gone or not ours to read, which is no failure."""
    return Command(key=key, argv=argv, exits=(0, 1, 2), cap=4 * MIB)


@dataclass(frozen=True, slots=True)
class Running:
    """A server process, with what is needed further on but is no fact of its own."""

    server: ServerProcess
    engine: Engine
    libraries: tuple[str, ...] = ()
    """Folders `…/site-packages` it has shared objects loaded from."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Processes:
    """What runs."""

    running: tuple[Running, ...] = ()
    strays: tuple[tuple[int, int], ...] = ()
    """Workers that belong to no server found, each with its parent."""
    notes: tuple[str, ...] = ()


def read(evidence: Evidence) -> Processes:
    """The servers among the candidates. Raises `Unanswered` when the process table could not be read."""
    found = candidates(evidence)
    notes = _blind_spots(evidence)
    if found.dropped:
        notes.append(
            f"{found.dropped} further processes name an engine and were not looked at (at most {MAX_MAINS} "
            f"servers and {MAX_RANKS} workers are)"
        )
    if not found.mains and not found.ranks:
        return Processes(notes=tuple(notes))
    table = _Table(evidence, found)
    running = tuple(table.running(pid) for pid in found.mains if table.is_server(pid))
    owned = {rank for run in running for rank in run.server.ranks}
    strays = tuple(
        (pid, table.status[pid].parent)
        for pid in found.ranks
        if not found.dropped and pid not in owned and pid in table.status and table.is_rank(pid)
    )
    return Processes(running, strays, tuple(notes + table.notes))


def _blind_spots(evidence: Evidence) -> list[str]:
    try:
        mounted = evidence.text("proc-mount")
    except Unanswered:
        return []
    if re.search(r"hidepid=(1|2|noaccess|invisible)\b", mounted):
        return [
            "/proc is mounted with hidepid: unless this user is root, another user's server cannot be seen"
        ]
    return []


class _Table:
    """The second answers, read once and looked up by process."""

    def __init__(self, evidence: Evidence, found: Candidates) -> None:
        self.evidence = evidence
        self.found = found
        self.notes: list[str] = []
        self.argv = {pid: self._argv(pid) for pid in found.mains}
        titles = tuple(f"/proc/{pid}/cmdline" for pid in found.ranks)
        told = proc.sections(evidence.text("titles") if titles else "", titles)
        self.argv |= {pid: proc.words(told.get(f"/proc/{pid}/cmdline", "")) for pid in found.ranks}
        self.status = proc.statuses(evidence.text("status"))
        links = self._text("links", "who owns the servers, and where they run") if found.mains else ""
        self.links, self.owners = proc.links(links), proc.owners(links)
        self.cgroups = proc.by_pid(self._text("cgroup", "which of them run in a container"))
        self.ports = Ports(
            listeners=proc.by_pid(self._text("listeners", "which ports they listen on")),
            addresses=proc.by_pid(self._text("addresses", "which addresses their containers have")),
            sockets=proc.sockets(self._text("fd", "which sockets they hold")),
            links=self.links,
        )
        self.libraries = proc.by_pid(self._text("libraries", "where their libraries are loaded from"))
        self.engine = {pid: engines.recognise(self.argv[pid]) for pid in found.mains}

    def _argv(self, pid: int) -> tuple[str, ...]:
        try:
            return _argv(self.evidence, pid)
        except Unanswered as error:
            self.notes.append(
                f"whether pid {pid} is a server is unknown: its command line was not read ({error.reason})"
            )
            return ()

    def _text(self, key: str, unknown: str) -> str:
        if not self.found.mains:
            return ""
        try:
            return self.evidence.text(key)
        except Unanswered as error:
            self.notes.append(f"unknown: {unknown} ({error.key}: {error.reason})")
            return ""

    def is_server(self, pid: int) -> bool:
        """True for the first process of a server; a fork of it with the same argv is none."""
        engine = self.engine.get(pid)
        return engine is not None and not any(self.engine.get(above) is engine for above in self._above(pid))

    def is_rank(self, pid: int) -> bool:
        title = " ".join(self.argv.get(pid, ()))
        return any(engine.is_rank(title) for engine in engines.TABLE.values())

    def _above(self, pid: int) -> list[int]:
        """The ancestors among the candidates, nearest first."""
        found: list[int] = []
        while (
            (status := self.status.get(pid)) and status.parent in self.status and status.parent not in found
        ):
            pid = status.parent
            found.append(pid)
        return found

    def running(self, pid: int) -> Running:
        engine = self.engine[pid]
        assert engine is not None
        ranks = tuple(
            rank
            for rank in self.found.ranks
            if engine.is_rank(" ".join(self.argv[rank])) and pid in self._above(rank)
        )
        notes: list[str] = []
        environment = self._environment(pid, engine, notes)
        cwd = self.links.get(f"/proc/{pid}/cwd", "")
        server = ServerProcess(
            engine=engine.name,
            pid=pid,
            argv=self.argv[pid],
            ranks=ranks,
            user=self.owners.get(pid, ""),
            cwd=cwd,
            executable=self.links.get(f"/proc/{pid}/exe", ""),
            root=self._root(pid),
            container=proc.container(self.cgroups.get(pid, ())),
            environment=environment or (),
            environment_seen=environment is not None,
            python=self._python(pid, cwd),
            source=tuple(
                Cite(key, f"pid {pid}")
                for key in (f"cmdline-{pid}", "status", "links", "cgroup", f"environ-{pid}")
            ),
        )
        if f"/proc/{pid}/cwd" not in self.links:
            notes.append(
                f"pid {pid} is {server.user or 'another user'}'s: its folder, sockets and libraries cannot be seen"
            )
        if server.root and not server.container:
            server = replace(server, container="mount namespace of its own")
        uid = self.status[pid].uid if pid in self.status else -1
        server = self.ports.added(server, engine, uid, notes)
        return Running(server, engine, tuple(dict.fromkeys(self.libraries.get(pid, ()))), tuple(notes))

    def _root(self, pid: int) -> str:
        """`/proc/PID/root` when the process sees other files than we do, else nothing."""
        ours, theirs = self.links.get("/proc/self/ns/mnt"), self.links.get(f"/proc/{pid}/ns/mnt")
        if theirs is None:
            apart = bool(proc.container(self.cgroups.get(pid, ())))
        else:
            apart = ours != theirs or self.links.get(f"/proc/{pid}/root", "/") != "/"
        return f"/proc/{pid}/root" if apart else ""

    def _python(self, pid: int, cwd: str) -> str:
        """The interpreter as it was started: a virtual environment's own, where its target would be the system's."""
        word = self.argv[pid][0]
        if python_run(self.argv[pid]) is None:
            return ""
        if "/" in word and (word.startswith("/") or cwd):
            return posixpath.normpath(posixpath.join(cwd or "/", word))
        return ""

    def _environment(self, pid: int, engine: Engine, notes: list[str]) -> tuple[tuple[str, str], ...] | None:
        try:
            told = proc.environment(self.evidence.text(f"environ-{pid}"))
            return tuple((name, value) for name, value in told if value != _NOT_KEPT)
        except Unanswered as error:
            notes.append(
                f"the environment of pid {pid} cannot be seen ({error.reason}): {engine.environment_matters} "
                "cannot be ruled out"
            )
            return None
