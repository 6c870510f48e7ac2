"""The programs that show what is in files: `cat`, `head`, `tail`, `sed -n`, `wc`."""

from __future__ import annotations

import re
from collections.abc import Callable

from ddprobe.lab.machine import Machine
from ddprobe.lab.programs import Arguments, Output, quoted
from ddprobe.lab.tree import IS_FOLDER, TreeError


def cat(machine: Machine, given: Arguments, out: Output) -> None:
    for path in given.operands:
        try:
            out.stdout += machine.tree.read(path)
        except TreeError as error:
            out.complain(f"{quoted(path, always=False)}: {error}")


def head(machine: Machine, given: Arguments, out: Output) -> None:
    count = given.value("-c")
    lines = int(given.value("-n") or 10)

    def part(data: bytes) -> bytes:
        return data[: int(count)] if count is not None else b"".join(_lines(data)[:lines])

    _parts(machine, given, out, part)


def tail(machine: Machine, given: Arguments, out: Output) -> None:
    count, lines = given.value("-c"), given.value("-n") or "10"

    def part(data: bytes) -> bytes:
        if count is not None:
            return data[_tail_start(count, len(data)) :]
        whole = _lines(data)
        return b"".join(whole[_tail_start(lines, len(whole)) :])

    _parts(machine, given, out, part)


def _tail_start(asked: str, length: int) -> int:
    return max(0, int(asked) - 1) if asked.startswith("+") else max(0, length - int(asked))


def _parts(machine: Machine, given: Arguments, out: Output, part: Callable[[bytes], bytes]) -> None:
    headed = False
    for path in given.operands:
        trouble = ""
        data = b""
        try:
            data = machine.tree.read(path)
        except TreeError as error:
            trouble = str(error)
            if trouble != IS_FOLDER:
                out.complain(f"cannot open {quoted(path)} for reading: {trouble}")
                continue
        if len(given.operands) > 1:
            out.stdout += (b"\n" if headed else b"") + f"==> {path} <==\n".encode()
            headed = True
        if trouble:
            out.complain(f"error reading {quoted(path)}: {trouble}")
        out.stdout += part(data)


def _lines(data: bytes) -> list[bytes]:
    """Lines with their newlines; only a newline ends one."""
    lines = [line + b"\n" for line in data.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def sed(machine: Machine, given: Arguments, out: Output) -> None:
    """`sed -n 'A,Bp;Qq'`: the only script that the policy lets through."""
    first, last, end = (int(number) for number in re.findall(r"\d+", given.value("-n") or "1,1p;1q"))
    stream: list[bytes] = []
    for path in given.operands:
        if len(stream) >= end:
            break
        try:
            stream += _lines(machine.tree.read(path))
        except TreeError as error:
            if str(error) == IS_FOLDER:
                out.complain(f"read error on {path}: {error}", 4)
                return
            out.complain(f"can't read {path}: {error}", 2)
    out.stdout += b"".join(stream[first - 1 : min(max(first, last), end)])


def wc(machine: Machine, given: Arguments, out: Output) -> None:
    columns = [option for option in ("-l", "-c") if given.has(option)] or ["-l", "-w", "-c"]
    rows: list[tuple[list[int], str]] = []
    troubles: dict[int, str] = {}
    size = 0
    narrowest = 1
    for path in given.operands:
        data = b""
        try:
            data = machine.tree.read(path)
            size += len(data)
        except TreeError as error:
            troubles[len(rows)] = f"{quoted(path, always=False)}: {error}"
            if str(error) == IS_FOLDER and len(given.operands) > 1:
                narrowest = 7
            if str(error) != IS_FOLDER:
                rows.append(([], path))
                continue
        counted = {"-l": data.count(b"\n"), "-w": len(data.split()), "-c": len(data)}
        rows.append(([counted[column] for column in columns], path))
    single = len(given.operands) == 1 and len(columns) == 1
    width = 1 if single else max(narrowest, len(str(size)))
    for number, (counts, path) in enumerate(rows):
        if number in troubles:
            out.complain(troubles[number])
        if counts:
            out.say(" ".join(str(count).rjust(width) for count in counts) + f" {path}")
    if len(given.operands) > 1:
        totals = [sum(column) for column in zip(*(counts for counts, _ in rows if counts), strict=True)]
        out.say(" ".join(str(count).rjust(width) for count in totals or [0] * len(columns)) + " total")
