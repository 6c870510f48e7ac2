"""The lab's programs against the real ones: the same script to /bin/sh and to the lab gives the same answers."""

from __future__ import annotations

import os
import pwd
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from ddprobe import readonly
from ddprobe.lab.ere import BadPattern, compile_pattern
from ddprobe.lab.machine import Machine
from ddprobe.lab.shell import PROGRAMS, Shell
from ddprobe.lab.tree import File, Folder, Link, Tree, TreeError
from ddprobe.model import Command, Glob, Word
from ddprobe.sessions import framing

MARKER = "ddprobe-0123456789abcdef0123456789abcdef"
TOKEN = "fedcba9876543210fedcba9876543210"

# Every question, with @ for the folder that both sides look at. A leading * marks a pattern to expand.
QUESTIONS = """
cat @/words
cat @/words @/missing @/no-newline
cat @/sub
cat @/sub/../words
cat @/words/below
cat @/words/
cat @/with space
cat @/it's
cat @/empty
cat @/link @/link-to-sub/deep.py
cat @/broken
cat @/loop
cat *@/sub/*.py
cat *@/nothing/*.py
head -n 2 @/words
head -n 0 @/words
head -c 5 @/words
head -c 3 @/words @/empty @/missing @/sub @/no-newline
head -n 1 @/missing
tail -n 2 @/words
tail -n +3 @/words
tail -c 4 @/words
tail -c +4 @/words
tail -n 1 @/no-newline @/words @/missing
tail -n 1 @/sub
wc -l @/words
wc -c @/words
wc -l -c @/words
wc -l @/words @/no-newline @/empty
wc -l @/sub
wc -l @/words @/missing
wc -c @/missing
sed -n 2,3p;3q @/words
sed -n 2,2p;2q @/no-newline
sed -n 3,9p;9q @/no-newline
sed -n 90,99p;99q @/words
sed -n 4,2p;6q @/words
sed -n 1,4p;2q @/words
sed -n 1,2p;2q @/missing
sed -n 1,2p;2q @/sub
sed -n 1,2p;2q @/empty
grep -e one @/words
grep -n -e o @/words
grep -n -H -e o @/words
grep -c -e o @/words @/no-newline @/missing
grep -l -e e @/words @/no-newline @/empty @/binary
grep -e nowhere @/words
grep -s -e one @/missing
grep -e one @/missing @/words
grep -h -e e @/words @/no-newline
grep -i -e ONE @/words
grep -w -e on @/words
grep -w -n -e one @/words
grep -F -e o.e @/words
grep -o -e o.e @/words
grep -o -E -n -e on|one @/words
grep -m 1 -n -e o @/words
grep -m 1 -A 2 -n -e o @/words
grep -A 1 -n -e one @/words
grep -B 1 -e three @/words
grep -C 1 -n -H -e two -e five @/words
grep -A 0 -e one -e three @/words
grep -n -C 1 -e e @/no-newline @/words
grep -e one -e two @/words
grep -E -e (one|two)$ @/words
grep -E -n -e ^[[:alpha:]]{3}$ @/words
grep -e e @/binary
grep -I -e e @/binary
grep -a -e e @/binary
grep -c -e e @/binary
grep -I -l -e . @/binary @/words @/empty
grep -e e @/sub
grep -E -e (open @/words
grep -E -e [open @/words
grep -n -E -e def|class *@/sub/d*
find @ -name *.py
find @ -type f
find @ -type d
find @ -type l
find @ -maxdepth 1
find @ -mindepth 2
find @ -path */deep/* -type f
find @ ( -name deep -o -name .hidden ) -prune -o -type f -print
find @ -not -name *.py -type f
find @ -size 0
find @ -size +1k
find @ -size -20c -type f
find @ -name d[!x]ep.py -o -name w?rds
find -L @/link-to-sub -type f
find -L @/broken
find -L @/up -maxdepth 3
find @/missing
find @/words
find @/sub/ -type f
find @ -xdev -type f -name [a-c]*
ls @
ls -1 @/sub
ls -A @
ls -a @/sub
ls -d @ @/words
ls @/words @/sub @/missing
ls @/link-to-sub
ls -d @/link-to-sub
ls @/broken
ls -L @/broken
ls @/loop
ls -l @/words @/link @/big
ls -l -d @/link-to-sub
ls -l -n @/words
ls -l -L @/link
ls -1 *@/*.py *@/w*
readlink @/link
readlink @/words
readlink -f @/link-to-sub/deep.py
readlink -f @/broken
readlink -f @/missing
readlink -f @/missing/below
readlink -f @/loop @/words
stat -c %n|%s|%F|%a|%U @/words @/empty @/link
stat -L -c %F|%s @/link @/link-to-sub @/broken
stat -c %F %a %A %h %Y %u @/words
stat -c %N @/link
stat -c %n @/missing @/words/below @/with space
echo a b
echo it's $HOME
true
uname -s
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("world").resolve()
    files: dict[str, bytes] = {
        "words": b"one\ntwo\nthree\nfour\nfive\nsix\n\nstone\non\n",
        "no-newline": b"e1\ne2\ne3",
        "empty": b"",
        "binary": b"here\0there\nand there\n",
        "with space": b"spaced\n",
        "it's": b"quoted\n",
        "big": b"x" * 5000,
        ".hidden/inside.py": b"pass\n",
        "sub/deep.py": b"class A:\n    def b(self):\n        pass\n",
        "sub/.dot.py": b"def hidden(): pass\n",
        "sub/deep/er.py": b"def c(): pass\n",
        "top.py": b"\n",
    }
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o640)
    links = {"link": "words", "link-to-sub": "sub", "broken": "nowhere", "loop": "loop", "up": "."}
    for name, target in links.items():
        (root / name).symlink_to(target)
    return root


@pytest.fixture(scope="module")
def machine(folder: Path) -> Machine:
    """The same folder as a made-up tree."""
    tree = Tree(uid=os.getuid())
    for path in (*reversed(folder.parents), folder, *folder.rglob("*")):
        status = path.lstat()
        mode, uid, modified = status.st_mode & 0o7777, status.st_uid, int(status.st_mtime)
        if path.is_symlink():
            target = str(path.readlink())
            tree.add(str(path), Link(target=target, uid=uid, modified=modified))
        elif path.is_dir():
            tree.add(str(path), Folder(mode=mode, uid=uid, modified=modified))
        else:
            tree.add(str(path), File(content=path.read_bytes(), mode=mode, uid=uid, modified=modified))
    name = pwd.getpwuid(os.getuid()).pw_name
    return Machine(hostname="lab", user=name, uid=os.getuid(), tree=tree)


def words(line: str, folder: Path) -> tuple[Word, ...]:
    found: list[Word] = []
    # A blank within a name belongs to it; so does one within stat's format.
    for word in re.findall(r"@/with space|%F %a.*%u|%F \S+|\S+", line):
        text = word.replace("@", str(folder))
        found.append(Glob(text[1:]) if text.startswith("*/") and "@" in word else text)
    return tuple(found)


def commands(folder: Path) -> list[Command]:
    return [
        Command(key=str(number), argv=words(line, folder))
        for number, line in enumerate(QUESTIONS.strip().split("\n"))
    ]


def scripts(asked: Sequence[Command]) -> bytes:
    return framing.preamble(MARKER, TOKEN) + framing.script(MARKER, [(command, 30.0) for command in asked])


@pytest.fixture(scope="module")
def real(folder: Path) -> list[framing.Frame]:
    asked = commands(folder)
    with subprocess.Popen(
        ["/bin/sh", "-s"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "TZ": "UTC"},
    ) as shell:  # fmt: skip
        assert shell.stdin
        assert shell.stdout
        assert shell.stderr
        # stdin stays open: at its end the script would end what still runs.
        shell.stdin.write(scripts(asked))
        shell.stdin.flush()
        stdout = b""
        while not stdout.endswith(f"{MARKER} done\n".encode()):
            stdout += os.read(shell.stdout.fileno(), 65536)
        shell.stdin.close()
        stderr = shell.stderr.read()
    return frames(asked, stdout, stderr)


@pytest.fixture(scope="module")
def made_up(folder: Path, machine: Machine) -> list[framing.Frame]:
    asked = commands(folder)
    pieces = list(Shell(machine).feed(scripts(asked)))
    return frames(asked, b"".join(out for out, _ in pieces), b"".join(err for _, err in pieces))


def frames(asked: Sequence[Command], stdout: bytes, stderr: bytes) -> list[framing.Frame]:
    reader = framing.Reader(MARKER, tuple(command.cap for command in asked))
    found = list(reader.feed(stdout, stderr))
    assert reader.done
    assert len(found) == len(asked)
    return found


def comparable(line: str, data: bytes) -> list[str]:
    """What must agree: a folder's order on disk, its size and the group's name are the file system's affair."""
    lines = data.decode().split("\n")
    if line.startswith("find"):
        return sorted(lines)
    if line.startswith("ls -l"):
        return [re.sub(r"^(\S+ +\d+ +\S+) +\S+", r"\1", text) for text in lines]
    return lines


@pytest.mark.parametrize(
    ("number", "line"), list(enumerate(QUESTIONS.strip().split("\n"))), ids=lambda value: str(value)
)
def test_as_the_real_program(
    number: int, line: str, real: list[framing.Frame], made_up: list[framing.Frame]
) -> None:
    theirs, ours = real[number], made_up[number]
    assert comparable(line, ours.stdout) == comparable(line, theirs.stdout)
    assert comparable(line, ours.stderr) == comparable(line, theirs.stderr)
    assert ours.exit_code == theirs.exit_code


def test_every_program_of_the_policy_is_known() -> None:
    assert set(PROGRAMS) | {"find"} == set(readonly.PROGRAMS)


LINES = (
    "", "a", "ab", "aab", "abc", "a+b", "a|b", "a{2}", "(a)", "a b", "A1", "_x", "foo.bar", "^a", "a$", "[x]",
    "x-y", "]", "\\d", "tab\there", "aXbXc", "word", "sword", "words", "commit_lens = accept_len + 1",
)  # fmt: skip
EXTENDED = (
    "a", "^a", "b$", "a.c", "a*b", "a+b", "a?b", "a{2}", "a{2,}b", "a{1,2}b", "a|b$", "(a|b)c", "(ab)*c",
    "[abc]x?", "[^a]", "[]x]", "[^]a]", "[a-c]b", "[[:digit:]]", "[[:upper:][:digit:]]+", "[[:space:]]",
    r"\<word\>", r"\bword", r"word\B", r"\w+\.\w", r"\W", r"\s", r"a\+b", r"a\|b", r"\(a\)", r"a\{2", r"\$",
    r"\^a", "(a)(b)?", "()", "a||b", "[x-]y", r"[\]", "commit_lens|accept", r"(a)\1", "x-y", "^$", "^(a|ab)$",
)  # fmt: skip
BASIC = (
    "a", r"a\+b", "a+b", r"a\|b", "a|b", r"\(a\)b", "(a)", r"a\{2\}", "a{2}", "*", "^*a", "a*b", "^a$", "a^b", "a$b",
    r"\(^a\)", "[[:alpha:]]_", r"\(a\)\1", r"x\?y",
)  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "pattern"), [("extended", p) for p in EXTENDED] + [("basic", p) for p in BASIC]
)
@pytest.mark.parametrize("switches", ["", "iw"])
def test_patterns_select_what_grep_selects(kind: str, pattern: str, switches: str) -> None:
    text = "".join(f"{line}\n" for line in LINES)
    argv = [
        "grep",
        "-E" if kind == "extended" else "-G",
        *(f"-{letter}" for letter in switches),
        "-e",
        pattern,
    ]
    done = subprocess.run(
        argv, input=text.encode(), capture_output=True, env={"LC_ALL": "C", "PATH": os.environ["PATH"]}
    )
    ours = compile_pattern(pattern, kind=kind, ignore_case="i" in switches, words="w" in switches)
    assert [line for line in LINES if ours.search(line.encode())] == done.stdout.decode().split("\n")[:-1]


@pytest.mark.parametrize("pattern", ["(a", "[a", "[[:nope:]]", "a{2,1}", "a\\", "[b-a]"])
def test_a_broken_pattern_says_so(pattern: str) -> None:
    with pytest.raises(BadPattern):
        compile_pattern(pattern, kind="extended", ignore_case=False, words=False)


class TestRights:
    """What the one who looks may not see: a real file system would show everything to root."""

    @pytest.fixture
    def tree(self) -> Tree:
        tree = Tree(uid=1000)
        tree.add("/secret", Folder(mode=0o700))
        tree.add("/secret/file", File(content=b"x"))
        tree.add("/file", File(content=b"x", mode=0o600))
        tree.add("/mine", File(content=b"mine", mode=0o400, uid=1000))
        tree.add("/hidden", Link(target="/mine", mode=0o700))
        return tree

    def ask(self, tree: Tree, *argv: str) -> framing.Frame:
        machine = Machine(hostname="lab", user="lab", uid=1000, tree=tree)
        command = Command(key="q", argv=argv)
        pieces = list(Shell(machine).feed(framing.script(MARKER, [(command, 5)])))
        reader = framing.Reader(MARKER, (command.cap,), ready=True)
        (frame,) = reader.feed(b"".join(out for out, _ in pieces), b"".join(err for _, err in pieces))
        return frame

    @pytest.mark.parametrize("path", ["/secret/file", "/file", "/hidden"])
    def test_denied(self, tree: Tree, path: str) -> None:
        frame = self.ask(tree, "cat", path)
        assert (frame.exit_code, frame.stderr.decode()) == (1, f"cat: {path}: Permission denied\n")

    def test_own(self, tree: Tree) -> None:
        assert self.ask(tree, "cat", "/mine").stdout == b"mine"

    def test_a_folder_that_may_not_be_listed(self, tree: Tree) -> None:
        assert (
            self.ask(tree, "ls", "/secret").stderr
            == b"ls: cannot open directory '/secret': Permission denied\n"
        )
        frame = self.ask(tree, "find", "/secret")
        assert (frame.stdout, frame.stderr) == (b"/secret\n", b"find: '/secret': Permission denied\n")

    def test_a_link_that_may_not_be_read(self, tree: Tree) -> None:
        frame = self.ask(tree, "ls", "-l", "/hidden")
        assert frame.exit_code == 2
        assert frame.stderr == b"ls: cannot read symbolic link '/hidden': Permission denied\n"

    def test_reading_raises_with_the_kernels_words(self, tree: Tree) -> None:
        with pytest.raises(TreeError, match="Permission denied"):
            tree.read("/file")
