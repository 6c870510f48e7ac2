"""The script that asks one `/bin/sh -s` several questions, and the cutting of what comes back into answers. Pure.

A shell is started once a session and asked again and again over its stdin: a script each time, as one compound
command, so that the shell has read all of it before anything runs. In a script each command
- has stdin from /dev/null or a literal body, LC_ALL=C, a fixed PATH prefix, a session (process group) of its own and
  DDPROBE_RUN=<token>.<shell>.<number> in its environment, by which whatever escapes its group is found and ended;
- writes through `head -c` on both streams, so the host never sends more than was asked for;
- is followed by a line on each stream that begins with a marker of 128 random bits: the marker stands nowhere in the
  script as one word, so a forced command that only echoes its input cannot imitate an answer. What stands before a
  script's `begin` line is noise.

One guard a script keeps the time and holds the line to the laptop: it is told what runs, gets a tick each second, and
learns of end-of-file on stdin. At the deadline or at end-of-file it ends the command's group (TERM, then KILL) and
all that carries its mark. One guard and one ticker a script, in place of two helpers a command, keep twelve
questions at a few forks each; the price is that a deadline is kept to the second, never early.
The search for marks has a time and a cap too: a process that hangs in the kernel can hang whoever reads its environ.
The script's own sleeps are ended by KILL (a TERM that meets one between fork and exec is lost with its shell's
handler), that of a search with its shell as one group: a trap that ends it can come too early.
While a script runs its guard owns stdin; it has let go before the `done` line leaves, and only then may the next
script be sent. But for one word: a line on stdin stops the command under way, or the one about to start, as its
deadline would. It may be sent once the `begin` line has come (before that, the shell could take it for a part of what
it reads ahead), and it is `:`, which does nothing should it come too late and find the shell itself.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ddprobe.model import KIB, Command, Glob

STDERR_CAP = 64 * KIB
PATH_PREFIX = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SLACK = 64 * KIB
"""What may come beyond a cap before the road is cut: the host's own cap has failed then."""
NEEDED = ("head", "sleep")
"""Programs without which no question can be asked: they keep the cap and the time."""
NOISE_CAP = 1024 * KIB
"""What a login shell may print before ours answers."""
MARKER_BYTES = 16
STOP = b":\n"
"""Stops what a script runs; for the only command of one, whose answer then comes as always."""

_PATTERN = re.compile(r"/[A-Za-z0-9_./*?\[\]+@,=:-]*\Z")
_LINE_CAP = 256

# File descriptors: 7 and 8 are the channel's stdout and stderr, 9 its stdin; 5 leads to the guard.
# Within `ask`: 3 and 4 lead to the two heads, 6 carries the exit code past them, 7 is the command's stdin.
_PREAMBLE = r"""
exec 7>&1 8>&2 9<&0 >/dev/null 2>&1
unset ENV BASH_ENV CDPATH GREP_OPTIONS
LC_ALL=C PATH=@PATH@:$PATH
export LC_ALL PATH
T=@TOKEN@
if command -v setsid; then S=setsid; else S=env; fi
L=
for u in @NEEDED@ grep; do command -v $u || L="$L $u"; done
[ -r /proc/self/environ ] || L="$L /proc"
ask() {
  n=$1 o=$2 d=$3
  shift 3
  u=
  read -r u _ </proc/uptime
  r=$({ { {
    DDPROBE_RUN=$T.$$.$n $S "$@" <&7 >&4 2>&3 3>&- 4>&- 5>&- 6>&- 7<&- 8>&- 9<&- &
    p=$!
    echo "s $p $d $n" >&5
    wait $p
    echo $? >&6
    kill -s KILL -- -$p
    echo w >&5
  } 3>&1 7<&0 | head -c @ERR@ >&8; } 4>&1 | head -c $o >&7; } 6>&1)
  echo e >&5
  v=
  read -r v _ </proc/uptime
  echo "$M $n ${r:-?} ${u:-?} ${v:-?}" >&7
  echo "$M $n" >&8
}
ours() {
  {
    grep -lsz "^DDPROBE_RUN=$T[.]$1" /proc/[0-9]*/environ &
    g=$!
    $S sh -c 'sleep 2; kill -s KILL "$0"' $g >/dev/null &
    l=$!
    wait $g
    kill -s KILL $l
    kill -s KILL -- -$l
  } | head -c 65536
}
sweep() {
  for f in $(ours "$1"); do
    f=${f#/proc/}
    kill -s KILL "${f%/*}" && z=$((z + 1))
  done
}
tick() {
  trap 'kill -s KILL $!; exit' TERM
  while :; do sleep 1 & wait $!; echo t; done
}
watch() {
  while read -r _; do echo h; done <&9
  echo x
}
end() {
  [ -z "$p" ] || kill -s $1 -- -$p || kill -s $1 $p
}
stop() {
  g=$((g + 1))
  case $g in
  1) end TERM ;;
  2 | 3) end KILL; sweep "$o" ;;
  esac
}
halt() {
  d=0
  [ -n "$x" ] || [ $g -gt 0 ] || stop
}
quit() {
  x=1 g=0 o="$$[.]"
  [ -z "$m" ] || kill -s KILL $m
  stop
}
guard() {
  exec 7>&- 8>&- 9<&-
  m= k= a= p= d= o= x= h= g=0
  while read -r w i j n; do
    case $w in
    m) m=$i k=$j ;;
    a) a=$i ;;
    s)
      p=$i
      [ -n "$x" ] || { d=$j o="$$[.]$n\$" g=0; }
      [ -z "$h" ] || halt ;;
    h)
      h=1
      [ -z "$d" ] || halt ;;
    w) p= ;;
    e) d= ;;
    x) [ -n "$x" ] || quit ;;
    q) break ;;
    t)
      a=$((a - 1))
      if [ -n "$x" ]; then
        stop
        [ $g -lt 3 ] || break
      elif [ $a -le 0 ]; then
        quit
      elif [ -n "$d" ]; then
        d=$((d - 1))
        [ $d -gt 0 ] || stop
      fi ;;
    esac
  done
  kill $k
}
begin() {
  exec 5>&1 </dev/null
  m=
  read -r m _ </proc/self/stat
  tick 5>&- 7>&- 8>&- 9<&- &
  k=$!
  watch 5>&- 7>&- 8>&- &
  c=$!
  echo "m $m $k"
  echo "a $1"
  echo "$M begin" >&7
  echo "$M begin" >&8
}
finish() {
  kill $k
  kill -s KILL $c
  wait $c
  echo q
}
"""


def preamble(marker: str, token: str) -> bytes:
    """What a fresh shell is told first. It answers with a `ready` line."""
    text = (
        _PREAMBLE.replace("@PATH@", PATH_PREFIX)
        .replace("@NEEDED@", " ".join(NEEDED))
        .replace("@TOKEN@", shlex.quote(token))
        .replace("@ERR@", str(STDERR_CAP + 1))
    )
    return f'{text}{_marker(marker)}\necho "$M ready $S$L" >&7\n'.encode()


def script(marker: str, commands: Sequence[tuple[Command, float]]) -> bytes:
    """Asks each command in turn, each with its seconds. Answers carry its place in the sequence."""
    total = sum(_ticks(seconds) + 4 for _, seconds in commands) + 4
    lines = [f"{{ {_marker(marker)}", f"{{ begin {total}"]
    lines += [_ask(number, command, seconds) for number, (command, seconds) in enumerate(commands)]
    lines += ["finish; } | guard", 'echo "$M done" >&7; }', ""]
    return "\n".join(lines).encode("utf-8", "surrogateescape")


def sweep_script(marker: str) -> bytes:
    """Ends whatever carries the token, and counts it: a `swept` line.

    The guard of a script that was broken off gets its time first: only what outlived it counts.
    """
    return (
        f"{{ {_marker(marker)}; z=0; i=3\n"
        'while [ $i -gt 0 ] && [ -n "$(ours)" ]; do sleep 1; i=$((i - 1)); done\n'
        'sweep; echo "$M swept $z" >&7; echo "$M done" >&7; }\n'
    ).encode()


def _marker(marker: str) -> str:
    half = len(marker) // 2
    return f"M='{marker[:half]}''{marker[half:]}'"


def _ticks(seconds: float) -> int:
    """Ticks until a deadline: the first may come at once, so one more than the seconds, rounded up."""
    return max(1, -int(-seconds // 1)) + 1


def _ask(number: int, command: Command, seconds: float) -> str:
    words = " ".join(_word(word) for word in command.argv)
    ask = f"ask {number} {command.cap + 1} {_ticks(seconds)} {words}"
    return f"printf %b {shlex.quote(_escaped(command.stdin))} | {ask}" if command.stdin else ask


def _word(word: str | Glob) -> str:
    text = str(word)
    if "\0" in text:
        raise ValueError("a NUL byte cannot travel in a word")
    if isinstance(word, str):
        return shlex.quote(text)
    if not _PATTERN.match(text):
        raise ValueError(f"{text!r} is not a plain absolute path pattern")
    return text


def _escaped(body: bytes) -> str:
    """A body as printf's %b reads it: a shell's word can hold no NUL."""
    text = body.replace(b"\\", b"\\\\").replace(b"\0", b"\\0000")
    return text.decode("utf-8", "surrogateescape")


def printable(data: bytes) -> str:
    """Bytes of a host as one line that a terminal cannot be led astray by."""
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", data[:4096].decode("utf-8", "replace"))
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


@dataclass(frozen=True, slots=True)
class Frame:
    """One command's answer as it came."""

    number: int
    exit_code: int | None
    stdout: bytes
    stderr: bytes
    seconds: float | None
    """By the host's own clock; None where it has no /proc/uptime."""


class Garbled(Exception):
    """What came cannot be an answer: more than the host's own cap lets through, or a line that ours never prints."""


class Cutter:
    """Cuts one stream at the marker's lines, as the bytes come."""

    def __init__(self, marker: str) -> None:
        self.marker = marker.encode()
        self.pending = bytearray()
        self._searched = 0

    @property
    def unfinished(self) -> bytes:
        """What has come of the piece under way, without the beginning of a marker's line."""
        data = bytes(self.pending)
        if (at := data.find(self.marker)) >= 0:
            return data[:at]
        start = max(0, len(data) - len(self.marker) + 1)
        cut = next((at for at in range(start, len(data)) if self.marker.startswith(data[at:])), len(data))
        return data[:cut]

    def feed(self, data: bytes, limit: int) -> Iterator[tuple[bytes, tuple[str, ...]]]:
        """Each finished piece: the bytes before a marker's line, and the line's words. Raises `Garbled` past `limit`."""
        self.pending += data
        while True:
            at = self.pending.find(self.marker, self._searched)
            if at < 0:
                self._searched = max(0, len(self.pending) - len(self.marker) + 1)
                if len(self.pending) > limit + SLACK:
                    raise Garbled
                return
            self._searched = at
            end = self.pending.find(b"\n", at, at + _LINE_CAP)
            if end < 0:
                if len(self.pending) > at + _LINE_CAP:
                    raise Garbled
                return
            words = bytes(self.pending[at + len(self.marker) : end]).decode("ascii", "replace").split()
            piece = bytes(self.pending[:at])
            del self.pending[: end + 1]
            self._searched = 0
            yield piece, tuple(words)


@dataclass(slots=True)
class Reader:
    """What has come back from one script so far."""

    marker: str
    caps: tuple[int, ...] = ()
    """stdout's cap of each command."""
    ready: bool = False
    """The shell has answered at all. A shell asked before is."""
    begun: bool = False
    """The script runs: its guard listens."""
    setsid: bool = True
    lacks: tuple[str, ...] = ()
    """What the host has not, of what keeps the promises made to it."""
    noise: bytes = b""
    """What belongs to no question: what a login shell printed before ours answered."""
    done: bool = False
    swept: int = 0
    _out: Cutter = field(init=False)
    _err: Cutter = field(init=False)
    _frames: dict[int, Frame] = field(init=False, default_factory=dict)
    _stderr: dict[int, bytes] = field(init=False, default_factory=dict)
    _next: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._out, self._err = Cutter(self.marker), Cutter(self.marker)

    @property
    def unready(self) -> bytes:
        """What came while nothing of ours has answered."""
        return bytes(self._out.pending + self._err.pending)

    @property
    def broken_off(self) -> bool:
        """The script has ended without asking everything. (stderr may lag behind stdout.)"""
        return self.done and self._next + len(self._frames) < len(self.caps)

    @property
    def partial(self) -> tuple[bytes, bytes]:
        """Both streams of the answer that is not whole yet, as far as they have come."""
        frame = self._frames.get(self._next)
        stdout = frame.stdout if frame else self._out.unfinished if self.begun else b""
        return stdout, self._stderr.get(self._next) or (self._err.unfinished if self.begun else b"")

    def feed(self, stdout: bytes, stderr: bytes) -> Iterator[Frame]:
        """The answers that these bytes complete, in order. Raises `Garbled`."""
        for piece, words in self._out.feed(stdout, self._limit()):
            self._line(piece, words)
        for piece, words in self._err.feed(stderr, STDERR_CAP if self.ready else NOISE_CAP):
            if words == ("begin",):
                self.noise += piece
            else:
                self._stderr[self._number(words[0] if words else "")] = piece
        while self._next in self._frames and self._next in self._stderr:
            frame = self._frames.pop(self._next)
            stderr = self._stderr.pop(self._next)
            self._next += 1
            yield Frame(frame.number, frame.exit_code, frame.stdout, stderr, frame.seconds)

    def _limit(self) -> int:
        started = self._next + len(self._frames)
        return self.caps[started] if self.ready and started < len(self.caps) else NOISE_CAP

    def _line(self, piece: bytes, words: tuple[str, ...]) -> None:
        match words:
            case ("ready", setsid, *lacks):
                self.ready, self.setsid, self.lacks = True, setsid == "setsid", tuple(lacks)
                self.noise += piece
            case ("begin",):
                self.begun = True
                self.noise += piece
            case ("done",):
                self.done = True
            case ("swept", count) if count.isdecimal():
                self.swept = int(count)
            case (number, code, began, ended):
                place = self._number(number)
                exit_code = int(code) if code.isdecimal() else None
                self._frames[place] = Frame(place, exit_code, piece, b"", _elapsed(began, ended))
            case _:
                raise Garbled

    def _number(self, word: str) -> int:
        if not word.isdecimal() or not self._next <= int(word) < len(self.caps):
            raise Garbled
        return int(word)


def _elapsed(began: str, ended: str) -> float | None:
    try:
        return round(float(ended) - float(began), 2)
    except ValueError:
        return None
