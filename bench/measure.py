"""Side-by-side timing: both sides in one run, in turns, and the ratio of their medians."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from carrick.ops.collector import spare_the_collector

Side = Callable[[], int]
"""Does the work once and returns how many entries it handled."""


class Result(NamedTuple):
    """One line of the table: rates in entries per second, or whatever `unit` says. `reach` is what is asked for."""

    name: str
    ours: float
    other: float
    reach: float | None = None
    against: str = "raw"
    unit: str = "/s"

    @property
    def ratio(self) -> float:
        return self.ours / self.other if self.other else float("nan")


@contextmanager
def as_a_service() -> Iterator[None]:
    """The garbage collector as every service has it, for both sides of what is measured inside."""
    before = gc.get_threshold()
    spare_the_collector()
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def rate(side: Side) -> float:
    """Entries per second of one pass."""
    started = time.perf_counter()
    handled = side()
    return handled / (time.perf_counter() - started)


def compare(
    name: str, ours: Side, other: Side, *, rounds: int, reach: float | None = None, against: str = "raw"
) -> Result:
    """Both sides in turns, after one pass each to warm up; medians."""
    rates: tuple[list[float], list[float]] = ([], [])
    for turn in range(rounds + 1):
        for side, measured in ((ours, rates[0]), (other, rates[1])):
            measured_rate = rate(side)
            if turn:
                measured.append(measured_rate)
    return Result(name, statistics.median(rates[0]), statistics.median(rates[1]), reach, against)


def show(results: list[Result], console: Console) -> None:
    """The table of ratios; a ratio below what is asked for stands out."""
    table = Table(title="Carrick beside the same work done plainly: per second, where a line says nothing else")
    for heading in ("what", "Carrick", "other", "against", "ratio", "reach"):
        table.add_column(heading, justify="left" if heading in ("what", "against") else "right")
    for result in results:
        missed = result.reach is not None and result.ratio < result.reach
        table.add_row(
            result.name,
            f"{_rounded(result.ours)}{result.unit}",
            f"{_rounded(result.other)}{result.unit}",
            result.against,
            f"[{'bold red' if missed else 'green'}]{result.ratio:.2f}[/]",
            "" if result.reach is None else f"≥ {result.reach:.2f}",
        )
    console.print(table)


def _rounded(figure: float) -> str:
    return f"{figure:,.1f}" if figure < 100 else f"{figure:,.0f}"
