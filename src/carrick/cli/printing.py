"""What commands print: tables for people, JSON for scripts."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from carrick.entry import ChannelStats

AsJson = Annotated[bool, Parameter(name="--json", negative="")]
Flag = Annotated[bool, Parameter(negative="")]


def print_json(value: Any) -> None:
    """One line of JSON on standard output."""
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")


def print_line(text: str) -> None:
    """One plain line on standard output."""
    sys.stdout.write(text + "\n")


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
    """A table; numbers to the right, nothing where there is nothing."""
    made = Table(title=title, title_justify="left", title_style="bold", header_style="bold", box=None, pad_edge=False)
    cells = [[shown(cell) for cell in row] for row in rows]
    listed = list(zip(*cells, strict=True)) if cells else [()] * len(columns)
    for column, values in zip(columns, listed, strict=True):
        numeric = bool(values) and all(
            value.replace(",", "").replace(".", "").isdigit() or not value for value in values
        )
        made.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in cells:
        made.add_row(*row)
    return made


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], *, empty: str) -> None:
    """The table, or the sentence that says why there is none."""
    if not rows:
        print_line(empty)
        return
    Console().print(table(title, columns, rows))


def shown(value: Any) -> str:
    """A value as a person reads it."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.1f}"
        case datetime():
            return value.astimezone().strftime("%Y-%m-%d %H:%M:%S")
        case _:
            return str(value)


def about_of(stats: ChannelStats, field: str, value: object) -> object:
    """The value of that field; one that is an estimate says so."""
    return about(value, is_estimate=field in stats.approximate)


def about(value: object, *, is_estimate: bool) -> object:
    """The value; an estimate says so, and has three digits that count."""
    if not is_estimate or not value:
        return value
    if isinstance(value, int):
        value = round(value, 3 - len(str(value)))
    return f"about {shown(value)}"


def age(seconds: float | None) -> str:
    """How long ago, in the two largest units."""
    if seconds is None:
        return ""
    whole = int(seconds)
    for size, unit, smaller, below in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // smaller} {below}"
    return f"{seconds:.1f} s"
