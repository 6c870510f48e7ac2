"""The programs that show what a folder holds and what an entry is: `ls`, `readlink`, `stat`."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass

from ddprobe.lab.machine import Machine
from ddprobe.lab.programs import Arguments, Output, quoted
from ddprobe.lab.tree import MISSING, File, Folder, Link, Node, TreeError

HALF_A_YEAR = 15778476


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a listing."""

    name: str
    at: str
    """The entry's own path."""
    path: str
    """As a sentence about it names it."""


def ls(machine: Machine, given: Arguments, out: Output) -> None:
    long = given.has("-l") or given.has("-n")
    plain: list[Row] = []
    folders: list[str] = []
    for path in sorted(given.operands):
        try:
            at = _named(machine, path, given, long)
        except TreeError as error:
            out.complain(f"cannot access {quoted(path)}: {error}", 2)
            continue
        if isinstance(machine.tree.nodes[at], Folder) and not given.has("-d"):
            folders.append(path)
        else:
            plain.append(Row(path, at, path))
    _print(machine, given, out, plain, trouble=2)
    for number, path in enumerate(folders):
        if len(given.operands) > 1:
            out.say(("\n" if plain or number else "") + f"{path}:")
        _folder(machine, given, out, path)


def _named(machine: Machine, path: str, given: Arguments, long: bool) -> str:
    """The entry that an operand stands for: a link to a folder is that folder, any other link is itself."""
    if given.has("-L"):
        return machine.tree.resolve(path)
    at = machine.tree.resolve(path, follow=False)
    if not long and not given.has("-d"):
        try:
            behind = machine.tree.resolve(path)
        except TreeError as error:
            if str(error) != MISSING:
                raise
            return at
        return behind if isinstance(machine.tree.nodes[behind], Folder) else at
    return at


def _folder(machine: Machine, given: Arguments, out: Output, path: str) -> None:
    try:
        at = machine.tree.resolve(path)
        names = machine.tree.names(at)
    except TreeError as error:
        out.complain(f"cannot open directory {quoted(path)}: {error}", 2)
        return
    if given.has("-a"):
        names = [".", "..", *names]
    elif not given.has("-A"):
        names = [name for name in names if not name.startswith(".")]
    rows = []
    for name in names:
        inside = f"{path.rstrip('/')}/{name}"
        try:
            rows.append(Row(name, machine.tree.resolve(f"{at}/{name}", follow=given.has("-L")), inside))
        except TreeError as error:
            out.complain(f"cannot access {quoted(inside)}: {error}")
    if given.has("-l") or given.has("-n"):
        out.say(f"total {sum(-(-length(machine.tree.nodes[row.at]) // 4096) * 4 for row in rows)}")
    _print(machine, given, out, rows, trouble=1)


def _print(machine: Machine, given: Arguments, out: Output, rows: Sequence[Row], trouble: int) -> None:
    if not (given.has("-l") or given.has("-n")):
        for row in rows:
            out.say(row.name)
        return
    table = [_columns(machine, given, row.at) for row in rows]
    widths = [max((len(cells[column]) for cells in table), default=0) for column in range(6)]
    for row, (mode, count, owner, group, size, when) in zip(rows, table, strict=True):
        arrow = ""
        if isinstance(machine.tree.nodes[row.at], Link):
            try:
                arrow = f" -> {machine.tree.target(row.at)}"
            except TreeError as error:
                out.complain(f"cannot read symbolic link {quoted(row.path)}: {error}", trouble)
        out.say(
            f"{mode} {count.rjust(widths[1])} {owner.ljust(widths[2])} {group.ljust(widths[3])} "
            f"{size.rjust(widths[4])} {when} {row.name}{arrow}"
        )


def _columns(machine: Machine, given: Arguments, at: str) -> tuple[str, str, str, str, str, str]:
    node = machine.tree.nodes[at]
    owner = str(node.uid) if given.has("-n") else owner_name(machine, node.uid)
    age = machine.clock() - node.modified
    form = "%b %e %H:%M" if 0 <= age < HALF_A_YEAR else "%b %e  %Y"
    when = time.strftime(form, time.gmtime(node.modified))
    return mode_string(node), str(links(machine, at, node)), owner, owner, str(length(node)), when


def readlink(machine: Machine, given: Arguments, out: Output) -> None:
    tree = machine.tree
    for path in given.operands:
        try:
            if given.has("-f"):
                out.say(_canonical(machine, path))
            else:
                out.say(tree.target(tree.resolve(path, follow=False)))
        except TreeError:
            out.exit = 1


def _canonical(machine: Machine, path: str) -> str:
    """The path without links; its last part need not exist."""
    try:
        return machine.tree.resolve(path)
    except TreeError as error:
        above, _, name = path.rstrip("/").rpartition("/")
        if str(error) != MISSING or not name:
            raise
        folder = machine.tree.resolve(above or "/")
        whole = f"{folder.rstrip('/')}/{name}"
        node = machine.tree.nodes.get(whole)
        if isinstance(node, Link):
            target = node.target if node.target.startswith("/") else f"{folder}/{node.target}"
            return _canonical(machine, target)
        return whole


def stat(machine: Machine, given: Arguments, out: Output) -> None:
    form = given.value("-c") or "%n"
    for path in given.operands:
        try:
            at = machine.tree.resolve(path, follow=given.has("-L"))
        except TreeError as error:
            out.complain(f"cannot statx {quoted(path)}: {error}")
            continue
        out.say(_filled(form, _stat_fields(machine, path, at)))


def _filled(form: str, fields: dict[str, str]) -> str:
    return re.sub(r"%([A-Za-z%])", lambda found: fields.get(found[1], "?"), form)


def _stat_fields(machine: Machine, path: str, at: str) -> dict[str, str]:
    node = machine.tree.nodes[at]
    size = length(node)
    owner = owner_name(machine, node.uid)
    arrow = f" -> {quoted(node.target)}" if isinstance(node, Link) else ""
    return {
        "n": path, "s": str(size), "F": _kind(node), "a": format(node.mode, "o"), "A": mode_string(node),
        "u": str(node.uid), "g": str(node.uid), "U": owner, "G": owner, "h": str(links(machine, at, node)),
        "X": str(node.modified), "Y": str(node.modified), "Z": str(node.modified), "W": "0",
        "b": str(-(-size // 4096) * 8), "B": "512", "o": "4096", "i": str(inode(machine, at)), "d": "65024",
        "f": format(file_type(node) | node.mode, "x"), "N": quoted(path) + arrow, "%": "%",
    }  # fmt: skip


def length(node: Node) -> int:
    if isinstance(node, File):
        return node.length
    return len(node.target.encode()) if isinstance(node, Link) else 4096


def links(machine: Machine, at: str, node: Node) -> int:
    if not isinstance(node, Folder):
        return 1
    names = (f"{at.rstrip('/')}/{name}" for name in machine.tree.children[at])
    return 2 + sum(isinstance(machine.tree.nodes[name], Folder) for name in names)


def inode(machine: Machine, at: str) -> int:
    return 2 + list(machine.tree.nodes).index(at)


def owner_name(machine: Machine, uid: int) -> str:
    return {0: "root", machine.uid: machine.user}.get(uid, str(uid))


def file_type(node: Node) -> int:
    return 0o040000 if isinstance(node, Folder) else 0o120000 if isinstance(node, Link) else 0o100000


def mode_string(node: Node) -> str:
    mode = 0o777 if isinstance(node, Link) else node.mode
    letters = "".join(letter if mode >> (8 - place) & 1 else "-" for place, letter in enumerate("rwxrwxrwx"))
    return {0o040000: "d", 0o120000: "l", 0o100000: "-"}[file_type(node)] + letters


def _kind(node: Node) -> str:
    if isinstance(node, Folder):
        return "directory"
    if isinstance(node, Link):
        return "symbolic link"
    return "regular file" if length(node) else "regular empty file"
