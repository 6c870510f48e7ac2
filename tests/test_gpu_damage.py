"""Damaged answers of nvidia-smi: lost cards, cells that no card can have, rows that are not whole, old drivers."""

from __future__ import annotations

import pytest

from ddprobe.blocks import Table
from ddprobe.facts import Gpu, GpuProcess
from ddprobe.model import Command, CommandResult, Evidence, Finding, Gap, Outcome, Step, StepRecord
from ddprobe.parsing import nvidia_cells, nvidia_smi
from ddprobe.probes.gpu import _ladder, _state_view
from ddprobe.probes.gpu.state import GpuState
from ddprobe.running.judging import judge
from tests.test_gpu_state import ANSWERS, FIELDS, Change, answer, asked, climbed

WHOLE = {
    "name": "NVIDIA H100 80GB HBM3", "driver_version": "570.1", "memory.total": "81559 MiB", "memory.used": "71234 MiB",
    "utilization.gpu": "98 %", "utilization.memory": "10 %", "power.draw": "412.88 W", "enforced.power.limit": "700.00 W",
    "power.default_limit": "700.00 W", "temperature.gpu": "31", "temperature.memory": "N/A", "clocks.sm": "1980 MHz",
    "clocks.max.sm": "1980 MHz", "clocks.mem": "2619 MHz", "clocks.max.mem": "2619 MHz", "pstate": "P0",
    "clocks_event_reasons.active": "0x0000000000000000", "persistence_mode": "Enabled", "mig.mode.current": "Disabled",
    "ecc.mode.current": "Enabled", "ecc.errors.uncorrected.volatile.total": "0",
    "ecc.errors.uncorrected.aggregate.total": "0", "ecc.errors.corrected.volatile.total": "0", "pcie.link.gen.current": "5",
    "pcie.link.gen.max": "5", "pcie.link.width.current": "16", "pcie.link.width.max": "16", "compute_cap": "9.0",
}  # fmt: skip
PLACE = ("index", "name", "uuid", "pci.bus_id")


def card(index: int, **cells: str) -> dict[str, str]:
    own = {"index": str(index), "uuid": f"GPU-{index}", "pci.bus_id": f"00000000:{0x41 + index:02X}:00.0"}
    return {**WHOLE, **own, **cells}


def row(cells: dict[str, str]) -> str:
    return ", ".join(cells[field] for field in FIELDS)


def said(*lines: str, last: str = "\n") -> str:
    return "\n".join((", ".join(FIELDS), *lines)) + last


def told_by(text: str, **others: str) -> Change:
    """A host whose nvidia-smi answers so."""

    def change(command: Command) -> CommandResult | None:
        answers = {"smi": text, **others}
        return answer(command, stdout=answers[command.key].encode()) if command.key in answers else None

    return change


def judged(evidence: Evidence) -> tuple[StepRecord, dict[str, Finding]]:
    record, findings = judge(Step("gpu", GpuState()), evidence, (), lambda _host, _step, key: key)
    for finding in findings:
        assert all(evidence.has(cite.artefact) for cite in finding.cites), finding
        assert "has a bug" not in finding.summary
    return record, {finding.id: finding for finding in findings if finding.id != "unanswered"}


def cards(record: StepRecord) -> list[Gpu]:
    return [fact for fact in record.facts if isinstance(fact, Gpu)]


# --- cards that are lost ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "id", "outcome"),
    [
        ("[GPU is lost]", "gpu.lost", Outcome.FAIL),
        ("[GPU requires reset]", "gpu.reset", Outcome.FAIL),
        ("[Unknown Error]", "gpu.unread", Outcome.UNKNOWN),
        ("[Insufficient Permissions]", "gpu.unread", Outcome.UNKNOWN),
        ("[An error of tomorrow]", "gpu.unread", Outcome.UNKNOWN),
        ("ERR!", "gpu.unread", Outcome.UNKNOWN),
    ],
)
def test_a_card_whose_cells_hold_an_error_is_named_and_passes_nothing(
    cell: str, id: str, outcome: Outcome
) -> None:
    hurt = {field: cell for field in FIELDS if field not in PLACE}
    record, found = judged(climbed(told_by(said(row(card(0)), row(card(1, **hurt))))))
    assert (found[id].outcome, "GPU 1" in found[id].summary) == (outcome, True)
    assert cell in found[id].summary
    assert "GPU 0" not in found[id].summary
    for lint in ("GP01", "GP02", "GP03", "GP04", "GP07", "GP10", "GP12"):
        assert found[lint].outcome is Outcome.UNKNOWN, found[lint]
        assert found[lint].summary.endswith("of GPU 1")
    assert [(gpu.index, bool(gpu.unread)) for gpu in cards(record)] == [(0, False), (1, True)]


@pytest.mark.parametrize("field", [field for field in FIELDS if field not in PLACE])
def test_one_cell_of_a_lost_card_is_enough(field: str) -> None:
    _, found = judged(climbed(told_by(said(row(card(0, **{field: "[GPU is lost]"}))))))
    assert found["gpu.lost"].outcome is Outcome.FAIL
    assert found["gpu.lost"].summary.endswith(f"GPU 0: {field} is [GPU is lost]")


@pytest.mark.parametrize(
    "cell", ["[N/A]", "N/A", "[Not Supported]", "[Not Available]", "[Function Not Found]"]
)
def test_what_a_card_does_not_have_is_no_trouble(cell: str) -> None:
    without = {field: cell for field in FIELDS if field not in (*PLACE, "driver_version")}
    record, found = judged(climbed(told_by(said(row(card(0, **without))))))
    assert not {id for id in found if id.startswith("gpu.")}
    assert cards(record)[0].unread == ()
    assert record.status == "done"


def test_many_hurt_cards_are_told_in_short() -> None:
    hurt = {field: "[GPU is lost]" for field in FIELDS if field not in PLACE}
    _, found = judged(climbed(told_by(said(*(row(card(index, **hurt)) for index in range(6))))))
    assert "lists 6 cards" in found["gpu.lost"].summary
    assert "GPU 3: " in found["gpu.lost"].summary
    assert found["gpu.lost"].summary.endswith(" and 2 more cards")
    assert "[GPU is lost] at driver_version, memory.total and 25 more" in found["gpu.lost"].summary


# --- values that no card has -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "cell"),
    [
        ("memory.used", "81560 MiB"), ("memory.used", "99999999 MiB"), ("memory.total", "16777217 MiB"),
        ("temperature.gpu", "9999"), ("temperature.gpu", "-300"), ("temperature.gpu", "201"), ("temperature.gpu", "-91"),
        ("clocks.sm", "50001 MHz"), ("clocks.mem", "-5 MHz"), ("power.draw", "10001 W"), ("power.draw", "nan W"),
        ("utilization.gpu", "101 %"), ("pcie.link.width.current", "x16"), ("persistence_mode", "perhaps"),
        ("clocks_event_reasons.active", "Active"), ("ecc.errors.uncorrected.volatile.total", "-1"),
    ],
)  # fmt: skip
def test_a_value_that_no_card_has_is_unknown_and_told(field: str, cell: str) -> None:
    record, found = judged(climbed(told_by(said(row(card(0, **{field: cell}))))))
    assert cards(record)[0].unread == ((field, cell),)
    assert found["gpu.unread"].outcome is Outcome.UNKNOWN
    assert f"GPU 0: {field} is {cell}" in found["gpu.unread"].summary
    assert found["gpu.unread"].cites[0].at == "GPU 0"


@pytest.mark.parametrize(
    ("field", "cell"),
    [
        ("memory.used", "81559 MiB"), ("memory.used", "0 MiB"), ("memory.total", "16777216 MiB"), ("temperature.gpu", "200"),
        ("temperature.gpu", "-90"), ("clocks.sm", "50000 MHz"), ("clocks.mem", "14001 MHz"), ("power.draw", "10000 W"),
        ("utilization.gpu", "100 %"), ("clocks_event_reasons.active", "0x0000000000000204"),
    ],
)  # fmt: skip
def test_a_value_at_its_limit_is_one(field: str, cell: str) -> None:
    assert nvidia_cells.unread(card(0, **{field: cell})) == ()


def test_memory_in_use_is_no_more_than_there_is() -> None:
    assert nvidia_cells.used({"memory.used": "6 MiB", "memory.total": "5 MiB"}) is None
    assert nvidia_cells.used({"memory.used": "5 MiB", "memory.total": "5 MiB"}) == 5
    assert nvidia_cells.used({"memory.used": "5 MiB", "memory.total": "[N/A]"}) == 5
    assert nvidia_cells.used({"memory.used": "5 MiB"}) == 5
    assert nvidia_cells.used({}) is None


# --- rows that are not whole -----------------------------------------------------------------------------------

SECOND = row(card(1))


@pytest.mark.parametrize("cut", range(1, SECOND.rindex(",") + 1))
def test_a_row_that_is_cut_anywhere_is_unknown_and_cited(cut: int) -> None:
    record, found = judged(climbed(told_by(said(row(card(0)), SECOND[:cut]))))
    assert record.status == "incomplete"
    assert any("line 3 is cut short" in reason for reason in record.reasons)
    assert [gpu.index for gpu in cards(record)] == [0]
    assert "gpu.missing" not in found


def test_a_last_row_without_an_end_is_unknown() -> None:
    record, _ = judged(climbed(told_by(said(row(card(0)), SECOND, last=""))))
    assert record.status == "incomplete"
    assert "line 3 is cut short" in record.reasons[0]


@pytest.mark.parametrize(
    "line",
    [
        "1, NVIDIA H100, 35,27 W" + ", x" * len(FIELDS),  # a cell too many
        "[N/A], [N/A]",
        "[GPU is lost], [GPU is",
        "1",
    ],
)
def test_a_line_that_begins_as_a_row_is_none_that_may_be_dropped(line: str) -> None:
    told = nvidia_smi.read(said(row(card(0)), line, row(card(2))), FIELDS)
    assert [number for number, _ in told.torn] == [3]
    assert len(told.rows) == 2


@pytest.mark.parametrize(
    "line",
    [
        "WARNING: infoROM is corrupted at gpu 0000:41:00.0, see the log",
        "Unable to determine the device handle for GPU1: 0000:42:00.0: GPU is lost.  Reboot the system, please",
        "\x00\x00",
        "2 cards were found",
    ],
)
def test_a_sentence_is_no_torn_row(line: str) -> None:
    assert nvidia_smi.read(said(row(card(0)), line), FIELDS).torn == ()
    assert nvidia_smi.read(said(row(card(0)), line, last=""), FIELDS).torn == ()


def test_a_torn_row_of_another_answer_is_told_by_its_name() -> None:
    heading = "gpu_uuid, pid, used_gpu_memory [MiB], process_name"
    apps = f"{heading}\nGPU-0, 77, 512 MiB, python3\nGPU-0, 78\n"
    record, _ = judged(climbed(told_by(said(row(card(0))), apps=apps)))
    assert record.reasons == (
        "nvidia-smi --query-compute-apps: line 3 is cut short, or damaged: `GPU-0, 78`; what it says is unknown",
    )


def test_a_card_that_the_list_alone_has_is_unknown() -> None:
    listed = "GPU 0: NVIDIA H100 (UUID: GPU-0)\nGPU 1: NVIDIA H100 (UUID: GPU-1)\n"
    record, _ = judged(climbed(told_by(said(row(card(0))), list=listed)))
    assert "nvidia-smi -L lists GPU 1, and no row is of it" in record.reasons[0]
    record, _ = judged(climbed(told_by(said(row(card(0)), row(card(1))), list=listed)))
    assert record.status == "done"


@pytest.mark.parametrize("bus", ["[N/A]", "00000000:41:00.0"])
def test_rows_without_a_number_are_no_card_that_passes(bus: str) -> None:
    nothing = dict.fromkeys(FIELDS, "[N/A]")
    rows = (row({**nothing, "pci.bus_id": bus}), row({**nothing, "pci.bus_id": bus.replace("41", "42")}))
    record, found = judged(climbed(told_by(said(*rows))))
    assert any("2 rows name no card by its number" in reason for reason in record.reasons)
    assert {id for id in found if found[id].outcome is Outcome.PASS} == {"GP06"}
    assert "gpu.missing" not in found
    by_query = [gpu for gpu in cards(record) if any(cite.artefact == "smi" for cite in gpu.source)]
    assert len(by_query) == (0 if bus == "[N/A]" else 2)


# --- more rows than are read -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "status"), [(1024, "done"), (1025, "incomplete")])
def test_processes_beyond_those_that_are_read_are_told(count: int, status: str) -> None:
    heading = "gpu_uuid, pid, used_gpu_memory [MiB], process_name\n"
    apps = heading + "".join(f"GPU-0, {pid}, 1 MiB, p\n" for pid in range(2, count + 2))
    evidence = climbed(told_by(said(row(card(0))), apps=apps))
    record, _ = judged(evidence)
    assert record.status == status
    if status == "incomplete":
        assert record.reasons == ("nvidia-smi --query-compute-apps: of 1025 lines the first 1024 were read",)
    assert sum(isinstance(fact, GpuProcess) for fact in record.facts) == 1024
    # Whose they are is asked of each that is shown.
    (owners,) = [result.question for result in evidence.results if result.key == "app-owners"]
    assert isinstance(owners, Command)
    assert "/proc/1025" in owners.argv


def test_a_process_without_a_number_is_unknown() -> None:
    heading = "gpu_uuid, pid, used_gpu_memory [MiB], process_name\n"
    apps = f"{heading}GPU-0, {'9' * 21}, 1 MiB, p\nGPU-0, 77, 1 MiB, p\n"
    record, _ = judged(climbed(told_by(said(row(card(0))), apps=apps)))
    assert "1 row names no process by a number" in record.reasons[0]


def test_more_cards_than_any_host_has_are_told() -> None:
    record, _ = judged(climbed(told_by(said(*(row(card(n)) for n in range(257))))))
    assert len(cards(record)) == 256
    assert "257 rows, of which 256 cards were taken" in record.reasons[0]


# --- drivers that do not know every field ----------------------------------------------------------------------


def knows(fields: tuple[str, ...]) -> Change:
    """A driver that knows these, and says of one other at a time that it does not."""

    def change(command: Command) -> CommandResult | None:
        if not command.key.startswith("smi"):
            return None
        wanted = str(command.argv[1]).partition("=")[2].split(",")
        unknown = [field for field in wanted if field not in fields]
        if unknown:
            complaint = f'Field "{unknown[0]}" is not a valid field to query.\n\n'
            return answer(command, exit_code=2, stdout=complaint.encode())
        text = f"{', '.join(wanted)}\n{', '.join(card(0)[field] for field in wanted)}\n"
        return answer(command, stdout=text.encode())

    return change


@pytest.mark.parametrize("lacking", range(len(FIELDS) - len(nvidia_smi.OLDEST_FIELDS) + 1))
def test_a_driver_that_lacks_any_number_of_fields_is_asked_without_them(lacking: int) -> None:
    optional = [field for field in FIELDS if field not in nvidia_smi.OLDEST_FIELDS]
    known = tuple(field for field in FIELDS if field not in optional[:lacking])
    evidence = climbed(knows(known))
    record, found = judged(evidence)
    assert "gpu.refused" not in found
    assert [(gpu.index, gpu.memory_used_mib) for gpu in cards(record)] == [(0, 71234)]
    assert record.status == "done"
    (*_, last) = [result.question for result in evidence.results if result.key in _ladder.SMI]
    assert isinstance(last, Command)
    wanted = str(last.argv[1]).partition("=")[2].split(",")
    # One that is renamed is asked for twice.
    enough = lacking + ("clocks_event_reasons.active" not in known) < nvidia_smi.TRIES - 1
    assert set(wanted) == set(known if enough else nvidia_smi.OLDEST_FIELDS)


@pytest.mark.parametrize("known", [(), ("name",), ("index", "name")])
def test_a_driver_that_knows_next_to_nothing_is_unknown_and_asked_so_often_only(
    known: tuple[str, ...],
) -> None:
    evidence = climbed(knows(known))
    record, found = judged(evidence)
    assert [key for key in asked(evidence) if key.startswith("smi")] == list(_ladder.SMI)
    assert record.status == "incomplete"
    assert 'Field "' in record.reasons[0]
    assert not {id for id in found if found[id].outcome is Outcome.FAIL}


def test_fields_that_are_named_together_are_left_out_together() -> None:
    complaint = (
        'Field "pstate" is not a valid field to query.\nField "compute_cap" is not a valid field to query.\n'
    )
    assert nvidia_smi.accepted(("index", "pstate", "compute_cap"), complaint) == ("index",)
    assert nvidia_smi.knows_not(complaint)
    assert not nvidia_smi.knows_not("No devices were found")


# --- equal cards in one row ------------------------------------------------------------------------------------


def shown(*gpus: Gpu) -> list[tuple[str, ...]]:
    (table,) = [block for block in _state_view.blocks(gpus) if isinstance(block, Table)]
    return [row[:3] for row in table.rows]


def like(index: int | None, **fields: float) -> Gpu:
    return Gpu(index=index, name="H100", bus=f"0000:4{index}:00.0", uuid=f"GPU-{index}", **fields)  # type: ignore[arg-type]


def test_cards_that_differ_in_their_place_alone_are_one_row() -> None:
    assert shown(*map(like, range(3))) == [("0–2", "H100", "0000:40:00.0 … 0000:42:00.0")]


def test_cards_that_differ_are_rows_of_their_own() -> None:
    found = shown(*map(like, range(3)), like(3, utilization=9.0), *map(like, range(4, 7)))
    assert [cells[0] for cells in found] == ["0–2", "3", "4–6"]


def test_few_cards_gaps_and_cards_without_a_number_are_rows_of_their_own() -> None:
    assert [cells[0] for cells in shown(like(0), like(1))] == ["0", "1"]
    assert [cells[0] for cells in shown(like(0), like(1), like(3), like(4))] == ["0", "1", "3", "4"]
    assert [cells[0] for cells in shown(like(None), like(None), like(None))] == ["–", "–", "–"]


def test_a_hurt_card_is_marked_whichever_rows_are_folded() -> None:
    hurt = Gpu(index=3, name="H100", unread=(("memory.used", "[GPU is lost]"),))
    blocks = _state_view.blocks((*map(like, range(3)), hurt))
    (table,) = [block for block in blocks if isinstance(block, Table)]
    assert table.emphasis == (1,)


def test_a_healthy_host_has_none_of_it() -> None:
    record, found = judged(climbed(told_by(said(row(card(0)), row(card(1))), apps=ANSWERS["apps"])))
    assert record.status == "done"
    assert {finding.outcome for finding in found.values()} == {Outcome.PASS}
    assert not [item for item in record.facts if isinstance(item, Gap)]
