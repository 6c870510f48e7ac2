"""The programs that speak of the made-up host's cards: `nvidia-smi`, and tools that it does not have."""

from __future__ import annotations

from collections.abc import Sequence

from ddprobe.lab import gpus
from ddprobe.lab.gpus import Gpus
from ddprobe.lab.machine import Machine
from ddprobe.lab.programs import Arguments, Output

_PERIODS = {"-l": 1.0, "-lms": 0.001}
"""Options that make it go on, with the unit of their number in seconds."""


def nvidia_smi(machine: Machine, given: Arguments, out: Output) -> None:
    """What is on the policy's list, and nothing else."""
    words = given.operands
    cards = machine.gpus
    if cards is None:
        missing(out)
        return
    if words == ("-L",):
        for index in range(len(cards.addresses)):
            out.say(f"GPU {index}: {cards.name} (UUID: {cards.uuid(index)})")
    elif words == ("topo", "-m"):
        out.say(cards.topology())
    elif words == ("--version",):
        for name, value in (
            ("NVIDIA-SMI version", cards.driver), ("NVML version", cards.driver), ("DRIVER version", cards.driver),
            ("CUDA Version", "13.0"),
        ):  # fmt: skip
            out.say(f"{name:<20}: {value}")
    else:
        query(machine, cards, ("nvidia-smi", *words), out)


def query(machine: Machine, cards: Gpus, argv: Sequence[str], out: Output) -> None:
    """One look; or, with `-l` or `-lms`, one look after another until it is stopped."""
    named = argv[1].partition("=")[2].split(",")
    known = _rows(cards, argv[1], 0.0)[0]
    for name in named:
        if name not in known:
            out.say(f'Field "{name}" is not a valid field to query.\n')
            out.exit = 2
            return
    options = argv[2].removeprefix("--format=").split(",")
    bare = "nounits" in options
    if "noheader" not in options:
        out.say(", ".join(_heading(name, known[name], bare) for name in named))

    def look(moment: float) -> bytes:
        rows = _rows(cards, argv[1], moment)
        return "".join(f"{', '.join(_cell(row[name], bare) for name in named)}\n" for row in rows).encode()

    if argv[-2] in _PERIODS:
        out.sample, out.every = look, _PERIODS[argv[-2]] * int(argv[-1])
    else:
        out.stdout += look(machine.clock())


def _rows(cards: Gpus, what: str, moment: float) -> list[dict[str, str]]:
    if what.startswith("--query-gpu="):
        return [cards.cells(reading, moment) for reading in cards.at(moment)]
    return cards.apps() if what.startswith("--query-compute-apps=") else cards.rows()


def dmesg(machine: Machine, _given: Arguments, out: Output) -> None:
    out.stdout += gpus.kernel_log(machine.gpus).encode()


def absent(_machine: Machine, _given: Arguments, out: Output) -> None:
    """A program that is not installed."""
    missing(out)


def missing(out: Output) -> None:
    program, out.program = out.program, "setsid"
    out.complain(f"failed to execute {program}: No such file or directory", 127)


def _cell(value: str, bare: bool) -> str:
    return value.partition(" ")[0] if bare and value.endswith((" MiB", " %", " W", " MHz")) else value


def _heading(name: str, value: str, bare: bool) -> str:
    """The field as the header has it, with its unit."""
    longer = {
        "clocks.sm": "clocks.current.sm",
        "clocks.mem": "clocks.current.memory",
        "clocks.max.mem": "clocks.max.memory",
    }
    unit = value.rpartition(" ")[2] if value.endswith((" MiB", " %", " W", " MHz")) else ""
    return longer.get(name, name) + (f" [{unit}]" if unit and not bare else "")
