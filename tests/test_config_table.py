"""Drafter, target and arguments side by side, of files that somebody gave: no column stands empty."""

from __future__ import annotations

from ddprobe.blocks import Heading, Table
from ddprobe.facts import ModelConfig, ServerArgs
from ddprobe.model import Fact
from ddprobe.probes.draft import _table


def drawn(*facts: Fact) -> tuple[str, Table]:
    heading, table = _table.blocks(facts)
    assert isinstance(heading, Heading)
    assert isinstance(table, Table)
    return heading.text, table


def arguments(engine: str, **values: object) -> ServerArgs:
    return ServerArgs(engine=engine, origin="command line", values=tuple(sorted(values.items())))


DRAFTER = ModelConfig(role="drafter", path="/m/draft/config.json", block_size=8)
TARGET = ModelConfig(role="target", path="/m/target/config.json", hidden_size=4096)


def test_arguments_alone_have_one_column() -> None:
    title, table = drawn(arguments("vllm", speculative_algorithm="DRAFT", num_speculative_tokens=7))
    assert title == "Server arguments"
    assert table.columns == ("", "server argument")
    assert all(len(row) == 2 for row in table.rows)


def test_what_was_named_by_hand_has_its_two_columns() -> None:
    title, table = drawn(DRAFTER, TARGET)
    assert title == "Drafter and target as named"
    assert table.columns == ("", "drafter", "target")


def test_all_three() -> None:
    title, table = drawn(DRAFTER, TARGET, arguments("sglang", speculative_num_draft_tokens=8))
    assert title == "Drafter, target and server arguments"
    assert table.columns == ("", "drafter", "target", "server argument")
    (row,) = (row for row in table.rows if row[0].startswith("block size"))
    assert row[1:] == ("8", "—", "--speculative-num-draft-tokens 8")


def test_drafts_per_step_are_no_block() -> None:
    """7 drafts are a block of 8 in one dialect and of 7 in another: they stand in a row of their own."""
    _, table = drawn(DRAFTER, arguments("vllm", speculative_algorithm="DFLASH", num_speculative_tokens=7))
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["block size, tokens"] == ("8", "—")
    assert rows["drafts per step"] == ("—", "--speculative-config.num_speculative_tokens 7")
