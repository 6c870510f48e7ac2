"""How a made-up card's clock falls under load: it warms as it works, and beyond a point it is slowed down.

Steps take longer as the clock falls, and the lab's `nvidia-smi` shows the same clock: one mechanism, told twice.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

KEPT = 65536
"""Steps whose clock is remembered."""


@dataclass(slots=True, kw_only=True)
class Heat:
    """Work done so far, in seconds of the lab's clock, and what the card's clock makes of it.

    Full speed for `after` seconds of work; over the next `ramp` seconds the clock falls to `floor_mhz`, and stays.
    """

    after: float
    ramp: float = 0.0
    """0: it falls at once."""
    clock_mhz: float = 2430.0
    floor_mhz: float = 1215.0
    reason: str = "sw_thermal_slowdown"
    cool_c: float = 41.0
    hot_c: float = 92.0
    worked: float = 0.0
    _history: deque[tuple[float, float, float]] = field(default_factory=lambda: deque(maxlen=KEPT))
    """(moment, clock, temperature), in order of time."""

    @property
    def mhz(self) -> float:
        """The clock after the work done so far."""
        over = self.worked - self.after
        if over < 0:
            return self.clock_mhz
        fallen = 1.0 if over >= self.ramp else over / self.ramp
        return self.clock_mhz - fallen * (self.clock_mhz - self.floor_mhz)

    @property
    def celsius(self) -> float:
        whole = self.after + self.ramp
        return self.cool_c + (self.hot_c - self.cool_c) * (min(1.0, self.worked / whole) if whole else 1.0)

    @property
    def slows(self) -> float:
        """How many times as long a step takes as at full speed."""
        return self.clock_mhz / self.mhz

    def work(self, seconds: float) -> float:
        """A step that takes so long at full speed: how long it takes now. The card is warmer afterwards."""
        taken = seconds * self.slows
        self.worked += taken
        return taken

    def note(self, moment: float) -> None:
        """Remember the state at this moment, seconds since the epoch."""
        self._history.append((moment, self.mhz, self.celsius))

    def at(self, moment: float) -> tuple[float, float]:
        """Clock in MHz and temperature in °C at a moment: those of the last step before it."""
        for when, mhz, celsius in reversed(self._history):
            if when <= moment:
                return mhz, celsius
        return (self._history[0][1:]) if self._history else (self.mhz, self.celsius)
