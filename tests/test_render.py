"""What a person sees: whole, in order, and safe whatever a host sends."""

from __future__ import annotations

import dataclasses
import io
import re
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from ddprobe import render
from ddprobe.blocks import Block, Code, Heading, Pairs, Paragraph, Table
from ddprobe.model import Finding, HostRecord, Outcome, Report, StepRecord
from ddprobe.render import markdown, terminal
from ddprobe.render.progress import PATIENCE, progress
from ddprobe.render.wrapping import fit, widths
from tests import reports
from tests.cputime import cpu_seconds

ACTS_ON_A_TERMINAL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class Screen(io.StringIO):
    """A terminal, as far as a program can tell."""

    def isatty(self) -> bool:
        return True


def shown(report: Report, width: int = 100, **options: int | bool | Path | None) -> str:
    out = io.StringIO()
    arguments: dict[str, object] = {"folder": Path("reports/x"), "colour": False, **options}
    terminal.show(report, width=width, file=out, **arguments)  # type: ignore[arg-type]
    return out.getvalue()


def drawn(*blocks: Block, width: int = 80, colour: bool = False) -> str:
    out = io.StringIO()
    terminal.draw(blocks, width=width, colour=colour, file=out)
    return out.getvalue()


def marked(*blocks: Block) -> str:
    """The blocks in Markdown, without the frame of a report."""
    return "\n".join(line for block in blocks for line in markdown._block(block))


# --- hostile text ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("plain – ×64 中文 🙂", "plain – ×64 中文 🙂"),
        ("a\x1b[31mred\x1b[0m", "a␛red␛"),
        ("\x1b]0;title\x07x", "␛x"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "␛link␛"),
        ("\x1b]52;c;never ended", "␛52;c;never ended"),
        ("\x9b31mred", "␛red"),
        ("a\rb\r\nc", "a␍b\nc"),
        ("\x00\x07\x08\x7f", "␀␇␈␡"),
        ("\x1b", "␛"),
        ("txt\u202eexe", "txt<U+202E>exe"),
        ("a\u200bb\ufeff", "a<U+200B>b<U+FEFF>"),
        ("\ud800", "\ufffd"),
        ("a\tb\nc", "a\tb\nc"),
    ],
)
def test_what_acts_on_a_terminal_is_taken_out_and_marked(given: str, expected: str) -> None:
    assert render.clean(given) == expected


def test_cleaning_is_linear() -> None:
    for unit in ("\x1b[", "\x1b]0;", "\x1b[0", "\x90", "\x1b"):
        hostile = unit * 100_000
        assert cpu_seconds(partial(render.clean, hostile)) < 4


HOSTILE_BLOCKS: tuple[Block, ...] = (
    Heading(reports.HOSTILE),
    Paragraph(reports.HOSTILE, "bad"),
    Pairs(((reports.HOSTILE, reports.HOSTILE),), title=reports.HOSTILE),
    Table(
        (reports.HOSTILE, "b"), ((reports.HOSTILE, "x\ny"),), reports.HOSTILE, reports.HOSTILE, emphasis=(0,)
    ),
    Code(reports.HOSTILE, ((1, reports.HOSTILE),), reports.HOSTILE, reports.HOSTILE, reports.HOSTILE, (1,)),
)


@pytest.mark.parametrize("block", HOSTILE_BLOCKS, ids=lambda b: type(b).__name__)
def test_no_block_lets_hostile_text_act(block: Block) -> None:
    for width in (20, 80, 120):
        text = drawn(block, width=width)
        assert not ACTS_ON_A_TERMINAL.search(text)
    wide = drawn(block, width=400)
    assert "[bold]x[/bold]" in wide
    assert "<U+202E>gnp.exe" in wide
    text = marked(block)
    assert not ACTS_ON_A_TERMINAL.search(text.replace("\t", ""))


def test_coloured_output_has_no_escape_of_a_host() -> None:
    out = Screen()
    terminal.draw(HOSTILE_BLOCKS, colour=True, width=80, file=out)
    codes = set(re.findall("\x1b(?!\\[[0-9;]*m).", out.getvalue()))
    assert codes == set()
    assert not ACTS_ON_A_TERMINAL.search(re.sub("\x1b\\[[0-9;]*m", "", out.getvalue()))


def test_a_whole_report_of_hostile_text_is_safe() -> None:
    report = reports.report(lab=True)
    assert not ACTS_ON_A_TERMINAL.search(shown(report, verbose=1))
    assert not ACTS_ON_A_TERMINAL.search(markdown.text(report).replace("\t", ""))


# --- blocks on a terminal ----------------------------------------------------------------------------------


def test_a_table() -> None:
    table = Table(
        ("field", "drafter", "target"),
        (("layers", "6", "61"), ("dtype", "bfloat16"), ("rope", "yarn ×64 over 4096, theta 50000", "")),
        title="Configuration",
        caption="– : not stated",
        emphasis=(2,),
    )
    assert drawn(table) == (
        "Configuration\n"
        "   field   drafter                          target\n"
        "──────────────────────────────────────────────────\n"
        "   layers  6                                    61\n"
        "   dtype   bfloat16\n"
        "▸  rope    yarn ×64 over 4096, theta 50000\n"
        "– : not stated\n"
    )


def test_a_wide_table_is_folded_to_the_screen_and_loses_nothing() -> None:
    path = "/data/hub/models--org--name/snapshots/" + "0123456789abcdef" * 3
    table = Table(("field", "drafter", "target"), (("path", path, path), ("n", "1", "2")))
    for width in (60, 80, 120):
        lines = drawn(table, width=width).splitlines()
        assert max(map(len, lines)) <= width
        cells = [line[7:] for line in lines if line.startswith(("path", "     "))]
        half = lines[0].index("target") - 7
        assert "".join(cell[:half].strip() for cell in cells) == path
        assert "".join(cell[half:].strip() for cell in cells) == path


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("short", 10, ["short"]),
        ("two words here", 10, ["two words", "here"]),
        ("--context-length 262144", 16, ["--context-length", "262144"]),
        ("--speculative-num-draft-tokens 8", 20, ["--speculative-num-", "draft-tokens 8"]),
        ("/data/hub/models--org--name/snapshots", 20, ["/data/hub/models--", "org--name/snapshots"]),
        ("[KimiK25ForConditionalGeneration]", 24, ["[KimiK25ForConditional", "Generation]"]),
        ("0123456789abcdef", 6, ["012345", "6789ab", "cdef"]),
        ("中文字很长", 4, ["中文", "字很", "长"]),
        ("  indented words", 10, ["  indented", "words"]),
        ("", 5, [""]),
    ],
)
def test_text_is_broken_where_it_hurts_least(text: str, width: int, lines: list[str]) -> None:
    assert fit(text, width).split("\n") == lines


@pytest.mark.parametrize(
    ("natural", "room", "given"),
    [([5, 10, 10], 40, [5, 10, 10]), ([5, 40, 40], 45, [5, 20, 20]), ([5, 12, 90], 45, [5, 12, 28]), ([50, 50], 4, [6, 6])],
)  # fmt: skip
def test_the_widest_columns_give_way_first(natural: list[int], room: int, given: list[int]) -> None:
    assert widths(natural, room) == given


def test_numbers_are_set_right_and_what_only_looks_like_one_left() -> None:
    def side(*cells: str) -> str:
        lines = drawn(Table(("a long heading", "b"), tuple((cell, "x") for cell in cells))).splitlines()
        return "left" if lines[0].startswith("a") and lines[2].startswith(cells[0]) else "right"

    for numbers in (("1", "22"), ("10.2 ms",), ("1,621",), ("-1.5",), ("7", "—"), ("80%",)):
        assert side(*numbers) == "right", numbers
    for texts in (("10.0.0.5",), ("0.5.23",), ("—", "—"), ("4096 tokens or so",)):
        assert side(*texts) == "left", texts


def test_a_command_can_be_copied_whole() -> None:
    command = "ddprobe read " + ",".join(f"{n}-{n + 9}" for n in range(10, 400, 20)) + " 'a|b' gpu1"
    assert drawn(Paragraph(command, "command"), width=40) == command + "\n"
    out = Screen()
    terminal.draw([Paragraph(command, "command")], colour=True, width=40, file=out)
    assert out.getvalue() == command + "\n"
    assert marked(Paragraph(command, "command")) == f"`{command}`"


def test_pairs_and_paragraphs() -> None:
    text = drawn(
        Heading("sglang"), Pairs((("model", "m"), ("draft model", "d\ne")), title="Server"), Paragraph("end")
    )
    assert text == "sglang\n\nServer\nmodel        m\ndraft model  d\n             e\n\nend\n"


CODE = Code(
    "srt/a.py", ((9, "def f(x):"), (10, "    return x  # [red]"), (20, "\ty = 1")), note="20 of 30 lines", marked=(10,)
)  # fmt: skip


def test_code_has_numbers_marks_and_gaps() -> None:
    assert drawn(CODE) == (
        "srt/a.py  20 of 30 lines\n"
        " 9 │ def f(x):\n"
        "10 ▸     return x  # [red]\n"
        " ⋮\n"
        "20 │         y = 1\n"
    )  # fmt: skip


def test_code_is_coloured_on_a_terminal_and_says_the_same() -> None:
    out = Screen()
    terminal.draw((CODE,), colour=True, width=80, file=out)
    assert "\x1b[" in out.getvalue()
    assert re.sub("\x1b\\[[0-9;]*m", "", out.getvalue()) == drawn(CODE)


def test_a_long_line_goes_on_below_on_a_terminal_and_stays_whole_in_a_pipe() -> None:
    code = Code("a.py", ((1, "    call(" + "argument, " * 12 + ")"),))
    assert max(map(len, drawn(code, width=60).splitlines())) > 120
    out = Screen()
    terminal.draw((code,), colour=False, width=60, file=out)
    lines = out.getvalue().splitlines()[1:]
    assert max(map(len, lines)) <= 60
    assert lines[0].startswith("1 │     call(")
    assert all(line.startswith("  ·         ") for line in lines[1:])


def test_endless_text_is_cut_and_says_how_much_is_missing() -> None:
    assert "… 3000 more characters" in " ".join(drawn(Table(("a",), (("x" * 5000,),))).split())
    assert "… 6000 more characters" in drawn(Code("a", ((1, "x" * 10_000),)))


def test_an_odd_language_or_empty_block_is_no_trouble() -> None:
    assert drawn(Code("a", (), "klingon"), Table((), ()), Pairs(()), Table(("a",), ())) != ""
    assert "x" in drawn(Code("a", ((1, "x"),), "klingon"), colour=True)


# --- a report on a terminal --------------------------------------------------------------------------------


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step shows the number of its facts."""
    monkeypatch.setattr(render, "blocks", lambda step: (Paragraph(f"{len(step.facts)} facts"),))


@pytest.mark.usefixtures("blocks")
def test_a_report_in_the_order_in_which_it_is_read() -> None:
    text = shown(reports.report(), width=160)
    places = [
        text.index(part)
        for part in (
            "── find  gpu1, gpu2: the same",
            "6 facts",
            "? gpu1: drafter: was cut",
            "Findings",
            "✗ DC20       block size: 8 is below 16  [gpu1, gpu2]",
            "→ --speculative-num-draft-tokens 8",
            "! DC05",
            "? unanswered",
            "· EN01",
            "✓ 1 passed: DC01 (-v shows them)",
            "gpu1 forwarding is refused",
            "1 of ddprobe's own processes had to be ended",
            "gpu3 connection refused",
            "→ is sshd running?",
            "╭─ ? inconclusive",
            "report  reports/x",
            "✗ fail  2 of 3 hosts · 3 steps · 1 fail, 1 warn, 1 unknown, 1 info, 1 skip, 1 pass · 3.2 s · 2 secrets masked",
        )
    ]
    assert places == sorted(places)
    assert "8 is below 16; drafter" not in text


@pytest.mark.usefixtures("blocks")
def test_verbose_shows_every_finding_and_where_it_can_be_checked() -> None:
    text = shown(reports.report(), verbose=1)
    assert "✓ DC01" in text
    assert "- SA01" in text
    assert "see evidence/gpu1/find/01-config.stdout $.block_size" in text
    assert "factor = 0.5" in text
    assert "source: config.json" in text
    assert "ssh me@10.0.0.7:22 ssh-ed25519 SHA256:x connected in 0.25 s" in text
    assert "-v shows them" not in text


@pytest.mark.parametrize(
    "block", [Paragraph("f.py: gone since May", "bad"), Code("f.py", (), note="gone since May")]
)
def test_what_the_only_step_says_is_said_once(monkeypatch: pytest.MonkeyPatch, block: Block) -> None:
    """Never of a fault, never where advice would be lost or another step stands between, never with -v."""
    monkeypatch.setattr(render, "blocks", lambda _step: (block,))
    found = Finding(id="A", outcome=Outcome.UNKNOWN, subject="f.py", summary="gone since May", host="g")
    report = Report(
        name="a",
        version="1",
        started=0.0,
        hosts=(HostRecord(name="g"),),
        steps=(StepRecord(id="s", probe="p", host="g", status="done"),),
        findings=(found,),
    )

    def times(*changed: Finding, steps: int = 1, **options: bool) -> int:
        more = tuple(StepRecord(id=f"s{n}", probe="p", host="g", status="done") for n in range(1, steps))
        look = dataclasses.replace(report, findings=changed or (found,), steps=report.steps + more)
        return shown(look, **options).count("gone since May")

    assert times() == 1
    assert "1 unknown" in shown(report)
    assert times(dataclasses.replace(found, outcome=Outcome.INFO)) == 1
    assert times(dataclasses.replace(found, outcome=Outcome.WARN)) == 2
    assert times(dataclasses.replace(found, outcome=Outcome.FAIL)) == 2
    assert times(dataclasses.replace(found, advice="ask for another")) == 2
    assert times(found, dataclasses.replace(found, summary="not gone since May")) == 2
    assert times(steps=2) == 3
    assert times(verbose=True) == 2
    assert times(quiet=True) == 1


@pytest.mark.usefixtures("blocks")
def test_quiet_shows_what_needs_a_look_and_the_last_line() -> None:
    lines = shown(reports.report(), quiet=True, width=400).splitlines()
    starts = (
        "✗ gpu1  DC20 block size: 8 is below 16; 1 warn, 1 unknown: DC05, unanswered",
        "✗ gpu2  1 of ddprobe's own processes had to be ended there: please report this",
        "✗ gpu3  connection refused",
        "? inconclusive",
        "✗ fail  2 of 3 hosts",
    )
    assert len(lines) == len(starts)
    assert all(line.startswith(start) for line, start in zip(lines, starts, strict=True)), lines


@pytest.mark.parametrize(
    ("report", "word"),
    [
        (Report(name="a", version="1", started=0.0), "✓ done"),
        (Report(name="a", version="1", started=0.0, interrupted=True), "? interrupted"),
        (Report(name="a", version="1", started=0.0, hosts=(HostRecord(name="x", error="no"),)), "✗ no host reached"),
        (Report(name="a", version="1", started=0.0, hosts=(HostRecord(name="x", error="no"), HostRecord(name="y"))), "? not every host reached"),
        (
            Report(
                name="a", version="1", started=0.0, findings=(reports.finding(Outcome.WARN),),
                hosts=(HostRecord(name="x", error="no"), HostRecord(name="y")),
            ),
            "? not every host reached",
        ),
        (Report(name="a", version="1", started=0.0, findings=(reports.finding(Outcome.PASS),)), "✓ pass"),
        (Report(name="a", version="1", started=0.0, findings=(reports.finding(Outcome.WARN),)), "! warn"),
        (Report(name="a", version="1", started=0.0, findings=(reports.finding(Outcome.UNKNOWN),)), "? unknown"),
        (
            Report(name="a", version="1", started=0.0, steps=(StepRecord(id="s", probe="", host="x", status="incomplete"),)),
            "? incomplete",
        ),
    ],
)  # fmt: skip
def test_the_last_line_says_how_it_ended(report: Report, word: str) -> None:
    assert shown(report).splitlines()[-1].startswith(word)


def test_a_lab_says_so_first() -> None:
    assert shown(reports.report(lab=True)).startswith("LAB: ")
    assert shown(reports.report(lab=True), quiet=True).startswith("LAB: ")
    assert "LAB" not in shown(reports.report())
    assert "> **LAB: " in markdown.text(reports.report(lab=True))


def test_colour_is_for_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def text(out: io.StringIO, colour: bool | None) -> str:
        terminal.show(reports.report(), folder=None, colour=colour, width=80, file=out)
        return out.getvalue()

    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" in text(Screen(), None)
    assert "\x1b[" not in text(io.StringIO(), None)
    assert "\x1b[" not in text(Screen(), False)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in text(Screen(), None)


def test_an_encoding_without_the_marks_gets_others_that_say_the_same() -> None:
    def written(encoding: str) -> str:
        raw = io.BytesIO()
        out = io.TextIOWrapper(raw, encoding=encoding)
        terminal.show(reports.report(), folder=None, colour=False, file=out)
        out.flush()
        return raw.getvalue().decode(encoding)

    text = written("ascii")
    assert "\nx fail  2 of 3 hosts - " in text
    assert text.startswith("-- find  gpu1")
    assert "-> --speculative-num-draft-tokens 8" in text
    assert "\n? unanswered" in text


def test_facts_of_a_probe_that_is_not_there_are_shown_plainly() -> None:
    text = shown(reports.report(), width=200)
    assert "no.such_probe cannot show these facts" in text
    assert "SourceHit" in text


def test_a_probe_draws_its_stored_facts_with_its_stored_settings() -> None:
    """Settings come back from JSON as lists; the probe is given what its fields ask for."""
    from ddprobe import probes

    for name in probes.names():
        # One file, or places: without either there is nothing to read.
        given = {"file": "worker.py"} if name == "source.read" else {}
        settings = tuple(
            (setting.name, given.get(setting.name, setting.default))
            for setting in probes.settings(probes.load(name))
        )
        stored = tuple((key, list(value) if isinstance(value, tuple) else value) for key, value in settings)
        step = StepRecord(id="s", probe=name, host="h", status="done", settings=stored)
        assert all("cannot show" not in str(block) for block in render.blocks(step)), name


def test_hosts_are_folded_only_where_they_show_the_same() -> None:
    report = reports.report()
    different = dataclasses.replace(report.steps[1], facts=report.steps[1].facts[:1])
    views = render.steps(dataclasses.replace(report, steps=(report.steps[0], different)))
    assert [view.hosts for view in views] == [("gpu1",), ("gpu2",)]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (9.94, "9.9 s"), (10.4, "10 s"), (119.0, "119 s"), (200.0, "3 min 20 s")],
)
def test_durations(seconds: float, text: str) -> None:
    assert render.duration(seconds) == text


# --- Markdown ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("a | b", r"a \| b"),
        ("`x` **b** [l](u) ~~s~~", r"\`x\` \*\*b\*\* \[l\](u) \~\~s\~\~"),
        ("<img src=x onerror=alert(1)> & more", "&lt;img src=x onerror=alert(1)&gt; &amp; more"),
        ("speculative_num_draft_tokens", "speculative_num_draft_tokens"),
        ("_commit and __init__", r"\_commit and \_\_init\_\_"),
        ("# x", r"\# x"),
        ("- x", r"\- x"),
        ("1. x", r"1\. x"),
        ("0.85 and --flag", "0.85 and --flag"),
        ("---", r"\---"),
        ("> x", "&gt; x"),
        ("    indented", "indented"),
        ("two\nlines", "two<br>lines"),
        (r"C:\x", r"C:\\x"),
    ],
)
def test_markdown_shows_just_the_text(given: str, expected: str) -> None:
    assert markdown.escape(given) == expected


def test_a_fence_is_longer_than_any_in_the_code() -> None:
    text = marked(Code("a.md", ((1, "```"), (2, "````"), (3, "`"))))
    assert text == "**a.md**\n\n`````python\n1   ```\n2   ````\n3   `\n`````"


def test_a_table_in_markdown() -> None:
    table = Table(("a", "b"), (("x|y", "1\n2"), ("z",)), title="T", caption="C", emphasis=(1,))
    assert marked(table) == "**T**\n\n| a | b |\n|---|---|\n| x\\|y | 1<br>2 |\n| ▸ z |  |\n\nC"


def test_a_report_in_markdown() -> None:
    text = markdown.text(reports.report())
    for part in (
        "# first-look: fail",
        "· 2026-11-30 17:33:20 UTC · ddprobe 1.2.3",
        "- fail **DC20** block size: 8 is below 16 _(gpu1, gpu2)_",
        "  - → --speculative-num-draft-tokens 8",
        "  - see `evidence/gpu1/find/01-config.stdout` \\$.block_size",
        "1 passed: DC01",
        "## find · gpu1, gpu2",
        "**incomplete** on gpu1: drafter: was cut",
        "| gpu3 | not reached | gpu3: connection refused. is sshd running? |",
    ):
        assert part in text, part
    assert text.endswith("|\n")


@pytest.mark.parametrize("outcome", Outcome)
def test_markdown_says_outcomes_in_plain_words(outcome: Outcome) -> None:
    found = dataclasses.replace(reports.finding(outcome), host="gpu1")
    text = markdown.text(Report(name="a", version="1", started=0.0, findings=(found,)))
    told = outcome not in (Outcome.PASS, Outcome.SKIP)
    assert (f"\n- {outcome.label} **" in text) is told
    assert all(ord(character) < 0x2100 or character in "→≤≥≠" for character in text)


def test_a_finding_about_the_host_itself_is_folded_like_any_other() -> None:
    names = ("gpu1", "gpu2", "gpu3")
    found = tuple(
        Finding(id="A", outcome=Outcome.WARN, subject=name, summary="no engine runs", host=name)
        for name in names[:2]
    )
    hosts = tuple(HostRecord(name=name) for name in names)
    report = Report(name="a", version="1", started=0.0, hosts=hosts, findings=found)
    assert "! A gpu1, gpu2: no engine runs\n" in shown(report)
    assert "- warn **A** gpu1, gpu2: no engine runs\n" in markdown.text(report)
    assert "1 warn" in render.closing(report)
    alone = dataclasses.replace(report, findings=found[:1])
    assert "! A gpu1: no engine runs\n" in shown(alone)


def test_a_narrow_screen_has_no_column_for_names() -> None:
    one = Finding(id="unanswered", outcome=Outcome.UNKNOWN, subject="drafter", summary="word " * 20, host="g")
    report = Report(name="a", version="1", started=0.0, hosts=(HostRecord(name="g"),), findings=(one,))
    lines = shown(report, width=60).splitlines()
    assert lines[1].startswith("? unanswered drafter: word")
    assert lines[2].startswith("  word")
    assert shown(report, width=80).splitlines()[2].startswith(" " * 13 + "word")


def test_a_finding_without_a_report_of_several_hosts_names_none() -> None:
    one = Finding(id="A", outcome=Outcome.WARN, subject="s", summary="t", host="gpu1")
    report = Report(name="a", version="1", started=0.0, hosts=(HostRecord(name="gpu1"),), findings=(one,))
    assert "gpu1]" not in shown(report)


# --- progress ----------------------------------------------------------------------------------------------


def test_progress_shows_who_is_waited_for_and_leaves_nothing() -> None:
    out = Screen()
    with progress(file=out) as tell:
        tell("gpu1", "connecting")
        tell("gpu2", "source.grep: \x1b[31mfiles")
        tell("gpu3", "done soon")
        tell("gpu3", "")
        time.sleep(PATIENCE + 0.4)
    text = out.getvalue()
    assert "gpu1" in text
    assert "source.grep: ␛files" in text
    assert "gpu3" not in text
    assert "\x1b[31mfiles" not in text
    assert text.endswith("\x1b[2K")  # the lines are erased
    assert "\x1b[?25h" in text  # the cursor is back


def test_progress_is_silent_when_the_run_is_short_or_nobody_looks() -> None:
    out = Screen()
    with progress(file=out) as tell:
        tell("gpu1", "connecting")
    assert out.getvalue() == ""
    pipe = io.StringIO()
    with progress(file=pipe) as tell:
        threads = [threading.Thread(target=tell, args=(f"gpu{n}", "x")) for n in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert pipe.getvalue() == ""


def test_progress_makes_room_for_a_question() -> None:
    out = Screen()
    with progress(file=out) as tell:
        tell("gpu1", "connecting")
        time.sleep(PATIENCE + 0.2)
        with tell.paused():
            before = out.getvalue()
            time.sleep(0.4)
            assert out.getvalue() == before
        time.sleep(0.3)
        assert len(out.getvalue()) > len(before)
