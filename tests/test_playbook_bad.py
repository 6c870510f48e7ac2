"""Playbooks that are wrong: each file's own last comment says what must be said of it, all of it, in order."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddprobe.cli import app
from ddprobe.errors import PlaybookError
from ddprobe.playbookfile.load import load

FOLDER = Path(__file__).parent / "playbooks" / "bad"
BOOKS = sorted(FOLDER.glob("*.yaml"))


def expected(path: Path) -> list[str]:
    _, _, told = path.read_bytes().decode("utf-8", "replace").partition("# expect:\n")
    return [line.removeprefix("# ") for line in told.splitlines()]


def test_there_are_enough() -> None:
    assert len(BOOKS) >= 30


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_every_mistake_is_told_at_its_place(path: Path) -> None:
    assert expected(path)
    with pytest.raises(PlaybookError) as caught:
        load(path)
    assert caught.value.message.splitlines() == [f"{path}:{line}" for line in expected(path)]


def test_all_files_are_checked_at_once_and_nobody_is_contacted(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["playbook", "check", *map(str, BOOKS)]) == 2
    told = capsys.readouterr().err
    for path in BOOKS:
        assert all(f"{path}:{line}" in told for line in expected(path))


def test_a_wrong_book_is_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    path = FOLDER / "circle.yaml"
    assert app.run(["run", str(path), "no-such-host.invalid"]) == 2
    assert "waits for itself: a > c > b > a" in capsys.readouterr().err
