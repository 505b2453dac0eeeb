"""Scenarios, their contenders and their bars."""

from dataclasses import dataclass, field
from typing import Callable


@dataclass
class Measure:
    """A kind of figure with its name, format and comparison."""

    name: str
    title: str
    scale: float = 1.0
    digits: int = 0

    def text(self, value):
        """Formats a figure for printing."""
        return f"{value * self.scale:,.{self.digits}f}"


REQUESTS = Measure("rate", "req/s")
CONNECTIONS = Measure("rate", "conn/s")
BYTES = Measure("rate", "GB/s", 1e-9, 2)
CPU_PER_REQUEST = Measure("cpu", "CPU µs each", 1e6, 1)
CPU_PER_BYTE = Measure("cpu", "CPU s/GB", 1e9, 3)
PEAK = Measure("peak", "peak MB", 1e-6, 1)


@dataclass
class Bar:
    """A target figure: of one contender, or as a ratio to a contender of the same rounds."""

    measure: str
    relation: str
    limit: float
    beside: str | None = None
    of: str = "martlet"
    # The unit after a limit that is not a ratio, if the measure's title omits it, and the factor of the figure for
    # this unit.
    unit: str = ""
    scale: float = 1.0

    def is_met(self, value):
        """Whether a figure or a ratio reaches the bar."""
        return value >= self.limit if self.relation == "≥" else value <= self.limit

    def title(self, measures):
        """Formats the bar."""
        title = measures[self.measure].title
        if self.beside:
            return f"{self.of}: {title} {self.relation} {self.limit:g} × {self.beside}"
        return f"{self.of}: {title} {self.relation} {self.limit:g} {self.unit}".rstrip()


@dataclass
class Scenario:
    """A scenario that is measured in rounds."""

    name: str
    title: str
    measures: list
    # By contender: a function that measures once and returns the figures by the names of measures.
    contenders: dict[str, Callable[[], dict]]
    bars: list = field(default_factory=list)
    # The number of rounds, if it differs from that of the run.
    rounds: int | None = None
    note: str = ""
    # Called before the first round.
    prepare: Callable[[], None] | None = None
