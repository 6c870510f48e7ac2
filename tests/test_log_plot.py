"""A plot of ratios: what grows in proportion is a straight line, and what has no logarithm is left out."""

from __future__ import annotations

import pytest

from ddprobe.blocks import Plot, Series, Spread
from ddprobe.render import plotting
from ddprobe.render.scales import Ratios


def drawn(plot: Plot, width: int = 90) -> list[str]:
    return ["".join(text for text, _ in line) for line in plotting.lines(plot, width)]


def plot(*values: Spread | None, at: tuple[float, ...] = (), logarithmic: bool = True) -> Plot:
    places = tuple(str(number) for number in range(len(values)))
    return Plot(
        "", places, (Series("step", values),), interval="95 % interval", logarithmic=logarithmic, at=at
    )


def marks(lines: list[str]) -> list[tuple[int, int]]:
    """Column and row of every marker, from the left."""
    return sorted(
        (column, row)
        for row, line in enumerate(lines[:-1])
        for column, sign in enumerate(line)
        if sign == "●"
    )


def test_equal_ratios_take_equal_room() -> None:
    found = marks(drawn(plot(Spread(1.0), Spread(10.0), Spread(100.0), Spread(1000.0))))
    rows = [row for _, row in found]
    assert rows == [16, 11, 5, 0]


@pytest.mark.parametrize(
    ("ends", "ticks"),
    [
        ((1.0, 1000.0), ["1,000", "100", "10", "1"]),
        ((2.0, 3.5), ["5", "2"]),
        ((2.1, 48.0), ["50", "20", "10", "5", "2"]),
        ((8.0, 1430.0), ["10,000", "1,000", "100", "10", "1"]),
        ((5.0, 5.0), ["10", "5"]),
    ],
)
def test_ticks_are_round_and_few(ends: tuple[float, float], ticks: list[str]) -> None:
    lines = drawn(plot(*map(Spread, ends)))
    assert [line.split("┤")[0].strip() for line in lines if "┤" in line] == ticks


def test_places_lie_as_far_apart_as_their_numbers() -> None:
    even = [column for column, _ in marks(drawn(plot(*map(Spread, (1.0, 2.0, 4.0)), at=(1, 2, 4))))]
    assert even[1] - even[0] == even[2] - even[1]
    skewed = [column for column, _ in marks(drawn(plot(*map(Spread, (1.0, 2.0, 4.0)), at=(1, 2, 16))))]
    assert (skewed[1] - skewed[0]) * 3 == skewed[2] - skewed[1]


def test_what_is_not_above_zero_is_left_out() -> None:
    assert len(marks(drawn(plot(Spread(0.0), Spread(-1.0), Spread(5.0))))) == 1
    assert drawn(plot(Spread(0.0))) == ["nothing was measured that could be drawn"]


def test_an_interval_that_reaches_zero_is_not_drawn() -> None:
    assert "95 %" not in drawn(plot(Spread(5.0, 0.0, 9.0), Spread(6.0)))[-1]
    assert "95 %" in drawn(plot(Spread(5.0, 1.0, 9.0), Spread(6.0)))[-1]


@pytest.mark.parametrize(
    "ends", [(1e-299, 1e299), (1e-300, 1e300), (5.0, 5.0), (9.99e299, 1e300), (0.1, 0.1)]
)
def test_no_span_breaks_it(ends: tuple[float, float]) -> None:
    lines = drawn(plot(*(Spread(end, end, end) for end in ends), at=ends))
    assert any("●" in line for line in lines[:-1])
    assert all(len(line) <= 90 for line in lines)


def test_numbers_without_logarithm_do_not_move_places() -> None:
    told = [column for column, _ in marks(drawn(plot(Spread(1.0), Spread(2.0), at=(0, 5))))]
    plain = [column for column, _ in marks(drawn(plot(Spread(1.0), Spread(2.0))))]
    assert told == plain


def test_a_scale_of_ratios_has_whole_powers_of_ten() -> None:
    scale = Ratios.over([Spread(8.0), Spread(1430.0)], None)
    assert scale.ticks == (10000.0, 1000.0, 100.0, 10.0, 1.0)
    assert scale.tick_rows == (0, 4, 8, 12, 16)
    assert scale.row(1.0) == scale.height - 1
    assert scale.row(10000.0) == 0
    assert scale.between(1.0, 100.0, 0.5) == pytest.approx(10.0)
