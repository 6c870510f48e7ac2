"""The script's text, and the cutting of answers out of any stream of bytes."""

from __future__ import annotations

import random
import shlex

import pytest

from ddprobe.model import Command, Glob
from ddprobe.sessions import framing
from ddprobe.sessions.framing import Frame, Garbled, Reader

MARKER = "ddprobe-0123456789abcdef0123456789abcdef"


def ask_line(command: Command, seconds: float = 25) -> str:
    """The line of a script that asks this."""
    return framing.script(MARKER, [(command, seconds)]).decode("utf-8", "surrogateescape").split("\n", 2)[2]


# --- the script --------------------------------------------------------------------------------------------


def test_a_question_is_one_line_of_quoted_words() -> None:
    line = ask_line(Command(key="a", argv=("grep", "-e", "it's $HOME", "/etc/hosts"), cap=1000))
    assert line.startswith("ask 0 1001 26 grep -e 'it'\"'\"'s $HOME' /etc/hosts\n")


@pytest.mark.parametrize(("seconds", "ticks"), [(1, 2), (0.2, 2), (1.5, 3), (25, 26)])
def test_a_deadline_is_never_early(seconds: float, ticks: int) -> None:
    assert ask_line(Command(key="a", argv=("true",), cap=1), seconds).startswith(f"ask 0 2 {ticks} true\n")


def test_the_whole_script_has_a_deadline_past_all_others() -> None:
    commands = [(Command(key="a", argv=("true",)), 25.0), (Command(key="b", argv=("true",)), 1.0)]
    assert b"{ begin 40\n" in framing.script(MARKER, commands)


def test_a_word_survives_quoting() -> None:
    words = ("", " ", "'", '"', "a\nb", "$(id)", "`id`", "\\", "*", "~", "-n", "é\udcff", ";", "#x")
    line = ask_line(Command(key="a", argv=("echo", *words))).rpartition("\nfinish;")[0]
    assert shlex.split(line)[4:] == ["echo", *words]


def test_only_a_pattern_is_left_for_the_shell() -> None:
    line = ask_line(Command(key="a", argv=("cat", Glob("/proc/[0-9]*/cmdline"), "/a*"), cap=1))
    assert line.startswith("ask 0 2 26 cat /proc/[0-9]*/cmdline '/a*'\n")


@pytest.mark.parametrize("pattern", ["/tmp/$(id)", "/a b", "relative*", "/a;b", "/a'b", "/~\n", "/{a,b}", ""])
def test_a_pattern_with_more_than_wildcards_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="pattern"):
        ask_line(Command(key="a", argv=("cat", Glob(pattern))))


def test_a_nul_cannot_travel_in_a_word() -> None:
    with pytest.raises(ValueError, match="NUL"):
        ask_line(Command(key="a", argv=("cat", "a\0b")))


def test_a_body_stands_in_the_script_and_in_no_argv() -> None:
    line = ask_line(Command(key="a", argv=("curl",), stdin=b"a\0b\\n'\xff", cap=1))
    assert line.startswith("printf %b 'a\\0000b\\\\n'\"'\"'\udcff' | ask 0 2 26 curl\n")


@pytest.mark.parametrize(
    "text",
    [
        framing.preamble(MARKER, "token"),
        framing.script(MARKER, [(Command(key="a", argv=("true",)), 1.0)]),
        framing.sweep_script(MARKER),
    ],
)
def test_the_marker_stands_nowhere_as_one_word(text: bytes) -> None:
    """Or a forced command that echoes its input would look like a shell."""
    assert MARKER.encode() not in text
    assert text.endswith(b"\n")


# --- the answers -------------------------------------------------------------------------------------------

STDOUT = (
    f"Welcome!\n{MARKER} ready setsid\n{MARKER} begin\n"
    f"one\n{MARKER} 0 0 10.00 10.25\n"
    f"no newline{MARKER} 1 137 10.25 12.50\n"
    f"{MARKER} 2 ? ? ?\n{MARKER} done\n"
).encode()
STDERR = f"a complaint\n{MARKER} begin\n{MARKER} 0\noops{MARKER} 1\n{MARKER} 2\n".encode()
FRAMES = [
    Frame(0, 0, b"one\n", b"", 0.25),
    Frame(1, 137, b"no newline", b"oops", 2.25),
    Frame(2, None, b"", b"", None),
]


def reader(ready: bool = False) -> Reader:
    return Reader(MARKER, (100, 100, 100), ready)


def test_answers_are_cut_out_whole() -> None:
    reading = reader()
    assert list(reading.feed(STDOUT, STDERR)) == FRAMES
    assert (reading.ready, reading.setsid, reading.done) == (True, True, True)
    assert reading.noise == b"Welcome!\na complaint\n"


@pytest.mark.parametrize("seed", range(20))
def test_answers_come_in_any_pieces(seed: int) -> None:
    chance = random.Random(seed)
    reading = reader()
    frames: list[Frame] = []
    stdout, stderr = STDOUT, STDERR
    while stdout or stderr:
        size = chance.choice([0, 1, 2, 5, 17, 60])
        if chance.random() < 0.5:
            piece, stdout = stdout[:size], stdout[size:]
            frames += reading.feed(piece, b"")
        else:
            piece, stderr = stderr[:size], stderr[size:]
            frames += reading.feed(b"", piece)
    assert frames == FRAMES
    assert reading.done
    assert reading.noise in (b"Welcome!\na complaint\n", b"a complaint\nWelcome!\n")


def test_an_answer_waits_for_both_streams() -> None:
    reading = reader(ready=True)
    assert list(reading.feed(f"a{MARKER} 0 0 1 2\n".encode(), b"")) == []
    assert list(reading.feed(b"", f"b{MARKER} 0\n".encode())) == [Frame(0, 0, b"a", b"b", 1.0)]


def test_a_script_that_ended_early() -> None:
    reading = reader(ready=True)
    list(reading.feed(f"{MARKER} 0 0 1 2\n{MARKER} done\n".encode(), b""))
    assert reading.broken_off
    late = reader()
    list(late.feed(STDOUT, b""))
    assert (late.done, late.broken_off) == (True, False)


@pytest.mark.parametrize(
    ("stdout", "stderr", "partial"),
    [
        ("", "", (b"", b"")),
        (f"noise{MARKER} begin\nab\nc", f"{MARKER} begin\noops", (b"ab\nc", b"oops")),
        (f"{MARKER} begin\nabc{MARKER[:7]}", f"{MARKER} begin\n", (b"abc", b"")),
        (f"{MARKER} begin\nabc{MARKER} 0 0", f"{MARKER} begin\nx{MARKER}", (b"abc", b"x")),
        (f"{MARKER} begin\nabc{MARKER} 0 0 1 2\n", f"{MARKER} begin\nlate", (b"abc", b"late")),
        (f"{MARKER} begin\na{MARKER} 0 0 1 2\nb", f"{MARKER} begin\n{MARKER} 0\n", (b"b", b"")),
        ("said before it obeys", "", (b"", b"")),
    ],
)
def test_what_has_come_of_an_answer_that_is_not_whole(
    stdout: str, stderr: str, partial: tuple[bytes, bytes]
) -> None:
    reading = reader(ready=True)
    list(reading.feed(stdout.encode(), stderr.encode()))
    assert reading.partial == partial
    assert reading.begun is ("begin" in stdout)


def test_the_word_that_stops_is_none_to_a_shell() -> None:
    """It may find the shell in place of the guard, whole or its second half."""
    assert framing.STOP == b":\n"


def test_what_looks_like_a_marker_stays_in_the_answer() -> None:
    data = (MARKER[:-1] + "\n" + MARKER[::-1]).encode()
    reading = reader(ready=True)
    answer = list(reading.feed(data + f"{MARKER} 0 0 1 2\n".encode(), f"{MARKER} 0\n".encode()))
    assert answer[0].stdout == data


def test_what_a_restricted_shell_says_is_kept() -> None:
    reading = reader()
    assert list(reading.feed(b"This account is\n", b"not available.\n")) == []
    assert not reading.ready
    assert reading.unready == b"This account is\nnot available.\n"


@pytest.mark.parametrize(
    "line", ["5 0 1 2", "-1 0 1 2", "0 0", "", "x y z", "0 0 1 2 3", "ready", "\xb2 0 1 2", "y" * 300]
)
def test_a_line_that_ours_never_prints(line: str) -> None:
    with pytest.raises(Garbled):
        list(reader(ready=True).feed(f"{MARKER} {line}\n".encode(), b""))


def test_more_than_the_cap_is_not_kept() -> None:
    reading = reader(ready=True)
    list(reading.feed(bytes(100 + framing.SLACK), b""))
    with pytest.raises(Garbled):
        list(reading.feed(b"x", b""))


def test_more_than_the_cap_on_stderr_is_not_kept() -> None:
    with pytest.raises(Garbled):
        list(reader(ready=True).feed(b"", bytes(framing.STDERR_CAP + framing.SLACK + 1)))


def test_the_count_of_what_was_swept() -> None:
    reading = Reader(MARKER, ready=True)
    list(reading.feed(f"{MARKER} swept 3\n{MARKER} done\n".encode(), b""))
    assert (reading.swept, reading.done) == (3, True)


def test_printable() -> None:
    assert framing.printable(b"\x1b[31mred\x1b[0m\n\ttwo \x07\xff lines\x1b]0;x") == "red two � lines ]0;x"
