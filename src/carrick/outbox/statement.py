"""SQL as data: an operation yields statements and is sent their rows, so one text serves sync and async drivers.

Placeholders in the .sql files are `%(name)s` for PostgreSQL and `:name` for SQLite; adapters for drivers with another
style translate them in one place (`adapters/placeholders.py`).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")

Row = Sequence[Any]


class Statement(NamedTuple):
    """One SQL statement with named parameters; its answer is the list of its rows."""

    sql: str
    params: Mapping[str, Any]


class Copy(NamedTuple):
    """Rows for PostgreSQL's COPY ... FROM STDIN, in its text format, piece by piece; its answer is an empty list.

    Only drivers that can COPY get one.
    """

    table: str
    columns: tuple[str, ...]
    texts: Iterable[bytes]


class Values(NamedTuple):
    """One statement of SQLite's with many values, bound by their position; its answer is the list of its rows.

    Only SQLite's own driver gets one: others would look at each value.
    """

    sql: str
    values: Sequence[Any]


Step = Statement | Copy | Values

Steps = Generator[Step, list[Row], T]
"""An operation in the caller's transaction: yields statements, is sent rows, returns its result."""


@cache
def query(package: str, name: str) -> str:
    """The text of `queries/<name>.sql` in the package, read once."""
    return (files(package) / "queries" / f"{name}.sql").read_text(encoding="utf-8")
