"""What is measured, with whom, and what has to come of it."""

from dataclasses import dataclass, field
from typing import Callable


@dataclass
class Measure:
    """A kind of figure: how it is called, shown and compared."""

    name: str
    title: str
    scale: float = 1.0
    digits: int = 0

    def text(self, value):
        """A figure as it is printed."""
        return f"{value * self.scale:,.{self.digits}f}"


REQUESTS = Measure("rate", "req/s")
CONNECTIONS = Measure("rate", "conn/s")
BYTES = Measure("rate", "GB/s", 1e-9, 2)
CPU_PER_REQUEST = Measure("cpu", "CPU µs each", 1e6, 1)
CPU_PER_BYTE = Measure("cpu", "CPU s/GB", 1e9, 3)
PEAK = Measure("peak", "peak MB", 1e-6, 1)


@dataclass
class Bar:
    """A figure to reach: of a contender alone, or as a ratio to a contender of the same rounds."""

    measure: str
    relation: str
    limit: float
    beside: str | None = None
    of: str = "martlet"
    # Shown behind a limit that is no ratio where the measure's title does not say it, and what the figure is
    # multiplied by for it.
    unit: str = ""
    scale: float = 1.0

    def is_met(self, value):
        """Whether a figure, or a ratio, reaches it."""
        return value >= self.limit if self.relation == "≥" else value <= self.limit

    def title(self, measures):
        """What it says."""
        title = measures[self.measure].title
        if self.beside:
            return f"{self.of}: {title} {self.relation} {self.limit:g} × {self.beside}"
        return f"{self.of}: {title} {self.relation} {self.limit:g} {self.unit}".rstrip()


@dataclass
class Scenario:
    """A thing to measure in rounds."""

    name: str
    title: str
    measures: list
    # By contender: what measures it once and gives back its figures by the names of measures.
    contenders: dict[str, Callable[[], dict]]
    bars: list = field(default_factory=list)
    # Rounds other than the run's own.
    rounds: int | None = None
    note: str = ""
    # Called before the first round.
    prepare: Callable[[], None] | None = None
