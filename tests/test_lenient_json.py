"""JSON as it is found on hosts: what is accepted, what is noted, and what is refused with which sentence."""

from __future__ import annotations

import contextlib
import json
import math
from typing import Any

import pytest

from ddprobe.parsing import lenient_json
from ddprobe.parsing.lenient_json import NotJson
from tests.cputime import cpu_seconds


def value(text: str) -> Any:
    return lenient_json.read(text.encode()).value


def notes(data: bytes) -> str:
    return "; ".join(lenient_json.read(data).notes)


def refusal(data: bytes) -> str:
    with pytest.raises(NotJson) as caught:
        lenient_json.read(data)
    return str(caught.value)


def test_plain_json_is_read_without_a_word() -> None:
    document = lenient_json.read(b'{"a": [1, 2.5, "x", null, true], "b": {"c": -1e3}}')
    assert document.value == {"a": [1, 2.5, "x", None, True], "b": {"c": -1000.0}}
    assert document.strict
    assert document.notes == ()


def test_nan_and_infinity_are_values_that_python_reads_too() -> None:
    document = lenient_json.read(b'{"a": NaN, "b": Infinity, "c": -Infinity}')
    assert math.isnan(document.value["a"])
    assert document.value["c"] == -math.inf
    assert document.strict


@pytest.mark.parametrize(
    ("text", "expected", "noted"),
    [
        ('{"a": 1, // trained\n "b": 2}', {"a": 1, "b": 2}, "comments"),
        ('{"a": 1, /* two\nlines */ "b": 2}', {"a": 1, "b": 2}, "comments"),
        ('# a note\n{"a": 1}', {"a": 1}, "comments"),
        ('{"a": "http://x/#y", "b": 2,}', {"a": "http://x/#y", "b": 2}, "comma before a closing"),
        ('{"a": [1, 2,],}', {"a": [1, 2]}, "comma before a closing"),
        ("{'a': 'it\\'s \"so\"'}", {"a": 'it\'s "so"'}, "single quotes"),
        ("{a: 1}", {"a": 1}, "keys without quotes"),
        ('{"a": True, "b": None}', {"a": True, "b": None}, "spells a value True"),
        ('{"a": 1_000, "b": +5, "c": .5}', {"a": 1000, "b": 5, "c": 0.5}, "writes a number"),
        ('{"a": "x\ny"}', {"a": "x\ny"}, "control characters"),
        ('{"a": "C:\\models"}', {"a": "C:\\models"}, "unknown escapes"),
    ],
)
def test_liberties_are_taken_and_noted(text: str, expected: Any, noted: str) -> None:
    document = lenient_json.read(text.encode())
    assert document.value == expected
    assert noted in "; ".join(document.notes)
    assert not document.strict


@pytest.mark.parametrize(
    "text", ["{}", "[]", "[{}]", '{"a": {}}', '{"a": []}', "[[], [[]]]", "1", '"x"', " null "]
)
def test_small_values(text: str) -> None:
    assert value(text) == json.loads(text)
    assert value(text + " // end") == json.loads(text)


def test_encodings() -> None:
    text = '{"größe": 2048}'
    assert lenient_json.read(b"\xef\xbb\xbf" + text.encode()).value == {"größe": 2048}
    assert "byte order mark" in notes(b"\xef\xbb\xbf" + text.encode())
    for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32"):
        document = lenient_json.read(text.encode(encoding))
        assert document.value == {"größe": 2048}
        assert not document.strict
    assert "not valid in its encoding" in notes(b'{"a": "\xff\xfe"}')


def test_a_key_that_stands_twice_is_noted_and_the_last_counts() -> None:
    document = lenient_json.read(b'{"a": {"x": 1, "x": 2}, "a": 3, "a": 4}')
    assert document.value == {"a": 4}
    assert 'the key "x" stands 2 times' in document.notes[0]
    assert 'the key "a" stands 3 times' in document.notes[1]
    assert document.strict
    assert 'the key "x" stands 2 times' in notes(b'{"x": 1, "x": 2,}')


def test_deep_nesting_is_refused_with_a_place_and_no_recursion_error() -> None:
    assert "line 1, column 257: nested deeper than 256 levels" in refusal(b"[" * 100_000)
    assert "nested deeper" in refusal(b'{"a":' * 100_000 + b"1" + b"}" * 100_000)
    assert value("[" * 200 + "]" * 200) is not None


def test_ten_megabytes_are_read_in_seconds() -> None:
    plain = json.dumps({f"key{number}": [number, "x" * 80] for number in range(100_000)})
    assert len(plain) > 10_000_000
    lengths = []
    for text in (plain, plain[:-1] + ",}"):
        assert cpu_seconds(lambda text=text: lengths.append(len(value(text)))) < 6  # type: ignore[misc]
    assert lengths == [100_000, 100_000]


def test_a_huge_number_is_a_number() -> None:
    assert value('{"a": ' + "9" * 5000 + "}")["a"] == math.inf


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "is empty"),
        (b" \n\t ", "nothing but 4 bytes of white space"),
        (b"\0" * 4096, "4096 zero bytes"),
        (b"// only this", "nothing but comments"),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 6960000123\n",
            "git-lfs pointer: the file of 6,960,000,123 bytes",
        ),
        (
            b"<!DOCTYPE html><html><head><title>401\n Unauthorized</title>",
            "web page, not JSON (401 Unauthorized)",
        ),
        (b"  <html>", "web page"),
        (b"Invalid username or password.", 'line 1, column 1: a value was expected (there: "Invalid'),
        (b'{"a": 1,\n "b" 2}', 'line 2, column 6: a colon was expected after the key "b"'),
        (b'{"a": 1\n "b": 2}', "line 2, column 2: a comma or } was expected"),
        (b'{"a": [1, 2', "the file ends there: was it cut off?"),
        (
            b'{"a": "never ends',
            'line 1, column 7: nothing that JSON knows stands there (there: "\\"never ends")',
        ),
        (b'{"a": 1} {"b": 2}', "line 1, column 10: more after the end"),
        (b'{"a": 0x10}', "nothing that JSON knows"),
        (b"{1: 2}", "a key in quotes was expected"),
        (b"{,}", "a key in quotes was expected"),
        (b"[1,,2]", "a value was expected"),
    ],
)
def test_nonsense_is_refused_with_its_reason(data: bytes, sentence: str) -> None:
    assert sentence in refusal(data)


def test_random_bytes_are_refused_or_read_and_never_crash() -> None:
    import random

    source = random.Random(7)
    pieces = [
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b'"a"',
        b"1",
        b"//",
        b"/*",
        b"*/",
        b"'",
        b"\\",
        b"\xff",
        b"#",
        b"\n",
    ]
    for _ in range(3000):
        data = b"".join(source.choice(pieces) for _ in range(source.randrange(1, 14)))
        with contextlib.suppress(NotJson):
            lenient_json.read(data)
