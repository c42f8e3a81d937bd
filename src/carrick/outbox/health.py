"""What a database says about itself to `carrick doctor`: plain values, filled by the backends."""

from __future__ import annotations

import msgspec


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """Who holds back vacuum longest. `seconds` is None when it is not ours to see, or when it has no beginning.

    `transactions`: how many have begun since.
    """

    who: str
    seconds: float | None
    transactions: int


class DeadRows(msgspec.Struct, frozen=True, kw_only=True):
    """The table of Carrick's with most dead rows, by the server's own estimate."""

    table: str
    live: int
    dead: int


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """How the database is. `indexes` are those that are there and can be used.

    A server has `holder` and `dead_rows`, where there are any. A SQLite file has `log_bytes`, the size of its WAL file,
    and `exposed`: those of its files that everybody on the machine may read or write, with their modes.
    """

    version: str
    number: int
    """The version as one number; the higher the newer."""
    indexes: frozenset[str]
    holder: Holder | None = None
    dead_rows: DeadRows | None = None
    log_bytes: int | None = None
    exposed: tuple[str, ...] | None = None
