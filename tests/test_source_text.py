"""Bytes to lines, counted as sed counts them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ddprobe.parsing import source_text

FILES = {
    "plain": b"one\ntwo\nthree\n",
    "no final newline": b"one\ntwo\nthree",
    "crlf": b"one\r\ntwo\r\n\r\nthree\r\n",
    "separators": b"a\x0cb\nc\rd\n\xc2\x85\n\xe2\x80\xa8x\ny\x1c\x1d\n",
    "latin-1": b"# -*- coding: latin-1 -*-\ns = '\xe9'\n\xff\n",
    "not utf-8": b"\xff\xfe\n\xe9\nx\n",
    "gbk": "# coding: gbk\n# 解码\nx\n".encode("gbk") + b"\x81\n\x81\n",
    "empty lines": b"\n\n\n",
    "long": b"x" * 300_000 + b"\ny\n",
    "empty": b"",
}


@pytest.mark.parametrize("name", FILES)
def test_lines_are_those_of_sed(name: str, tmp_path: Path) -> None:
    data = FILES[name]
    file = tmp_path / "file"
    file.write_bytes(data)
    lines = source_text.lines(data)
    codec = source_text.encoding(data)
    for number in range(1, len(lines.kept) + 2):
        printed = subprocess.run(
            ["sed", "-n", f"{number},{number}p", str(file)], capture_output=True, check=True
        ).stdout
        assert lines.text(number, number) == printed.decode(codec, "replace")
    assert "".join(lines.kept) == lines.text(1, len(lines.kept))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"x = 1\n", "utf-8"),
        (b"# -*- coding: latin-1 -*-\n", "iso8859-1"),
        (b"#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\n", "cp1252"),
        (b"x = 1\n# coding: latin-1\n", "utf-8"),
        (b"\n\n# coding: latin-1\n", "utf-8"),
        (b"# coding: utf-16\n", "utf-8"),
        (b"# coding: unicode_escape\n", "utf-8"),
        (b"# coding: rot13\n", "utf-8"),
        (b"# coding: cp1259\n", "utf-8"),
        (b"", "utf-8"),
    ],
)
def test_encoding(data: bytes, expected: str) -> None:
    assert source_text.encoding(data) == expected


def test_a_declared_encoding_is_used() -> None:
    assert source_text.decode(b"# coding: latin-1\ns = '\xe9'\n") == "# coding: latin-1\ns = 'é'\n"
    assert source_text.decode(b"'\xe9'", "iso8859-1") == "'é'"


def test_lines_of_a_part() -> None:
    part = source_text.lines(b"one\ntwo\nthr", whole=False)
    assert part.complete == 2
    assert part.text(2, 3) == "two\nthr"
    assert source_text.lines(b"one\ntwo\n", whole=False).complete == 2
    assert source_text.lines(b"", whole=False).complete == 0
    assert source_text.lines(b"one\nthr").complete == 2


def test_binary_is_a_nul_near_the_beginning() -> None:
    assert source_text.is_binary(b"\x7fELF\0")
    assert not source_text.is_binary(b"text\xff")
    assert not source_text.is_binary(b"x" * 8192 + b"\0")
