"""A probe's manual page promises no less than the probe asks."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from ddprobe import probes, readonly
from ddprobe.blocks import Paragraph
from ddprobe.cli import manual

RECORDINGS = Path(__file__).parent / "recordings"


@pytest.mark.parametrize("name", probes.names())
def test_every_question_in_the_recordings_is_on_the_page(name: str) -> None:
    page = manual.page(probes.load(name))
    asked = [
        str(answer["ask"]).partition(" (")[0]
        if str(answer["ask"]).startswith("POST ")
        else str(answer["ask"])
        for path in sorted((RECORDINGS / name.replace(".", "/")).glob("*.yaml"))
        for answer in yaml.safe_load(path.read_text(encoding="utf-8"))["answers"]
    ]
    assert asked
    programs = {words.split()[0] for words in asked if not words.startswith(("GET ", "POST "))}
    requests = {words for words in asked if words.startswith(("GET ", "POST "))}
    paths = {
        f"{method} /{url.split('/', 3)[3]}" for method, url in (words.split(" ", 1) for words in requests)
    }
    assert programs <= set(page["programs"])
    assert paths <= set(page["http"])
    assert set(page["programs"]) <= readonly.PROGRAMS.keys()


@pytest.mark.parametrize("name", probes.names())
def test_every_page_can_be_drawn(name: str) -> None:
    page = manual.page(probes.load(name))
    assert page["question"].endswith("?")
    assert page["programs"]
    blocks = manual.blocks(page)
    assert len(blocks) > 2
    assert not any("\n" in block.text for block in blocks if isinstance(block, Paragraph))


def test_types_read_as_a_person_says_them() -> None:
    assert manual.type_name(int) == "number"
    assert manual.type_name(str | None) == "text"
    assert manual.type_name(tuple[str, ...]) == "text, …"
