"""What PostgreSQL says went wrong, as Carrick's own errors. Whichever driver says it: the SQLSTATE is the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import psycopg

from carrick.errors import (
    BacklogFull,
    CarrickError,
    ChannelConflict,
    DiskFull,
    InvalidInput,
    SchemaMissing,
    StoreBusy,
    StoreError,
    StoreReadOnly,
    StoreUnavailable,
    UnknownChannel,
)
from carrick.outbox.adapters.adapter import driver_error
from carrick.outbox.statement import Steps

T = TypeVar("T")

MISSING = frozenset({"42P01", "42883", "3F000", "42704"})  # no such table, function, schema, type
FORBIDDEN = frozenset({"25006", "42501"})  # read-only transaction, no privilege
FULL = "53100"
WAITED = frozenset({"55P03", "57014", "40P01", "40001"})  # lock, statement time-out, deadlock, serialization
AWAY = ("08", "57", "53")  # connection, operator's intervention, resources
FAULT = ("58", "XX")  # system error, internal error


@contextmanager
def map_errors() -> Iterator[None]:
    """Raise Carrick's error for every psycopg error, on the store's own connections."""
    try:
        yield
    except psycopg.Error as error:
        raise carrick_error(error) or StoreError(f"the database refused: {error}") from error


def named(steps: Steps[T]) -> Steps[T]:
    """An operation on the caller's connection; the driver's errors come out as Carrick's, where known."""
    try:
        return (yield from steps)
    except CarrickError:
        raise
    except Exception as error:
        known = carrick_error(error)
        if known is None:
            raise
        raise known from error


def carrick_error(error: BaseException) -> CarrickError | None:
    """The Carrick error that a driver's error means, if any."""
    inner = driver_error(error)
    said = str(inner).strip().splitlines()[0] if str(inner).strip() else type(inner).__name__
    state = getattr(inner, "sqlstate", None) or ""
    if state.startswith("CK"):
        return _own(state, said, _hint(inner))
    if state in MISSING:
        return SchemaMissing("the database")
    if state in FORBIDDEN:
        return StoreReadOnly(f"the database refuses to write: {said}")
    if state == FULL:
        return DiskFull(f"the database has no room left: {said}")
    if state in WAITED:
        return StoreBusy(f"the database gave up waiting: {said}")
    if state.startswith(AWAY) or (isinstance(inner, psycopg.OperationalError) and not state):
        return StoreUnavailable(f"the database does not answer: {said}")
    if state.startswith(FAULT):
        return StoreError(f"the database reports a fault: {said}")
    if isinstance(inner, psycopg.DataError) and not state:
        return InvalidInput("parameter", said, "text without NUL characters and numbers in range")
    return None


def _own(state: str, said: str, hint: str) -> CarrickError | None:
    """What the functions in schema `carrick` raise themselves."""
    match state:
        case "CK001":
            known = hint.removeprefix("declared channels: ")
            names = [] if known == "none is declared yet" else known.split(", ")
            return UnknownChannel(said.removeprefix("unknown channel ").strip("'"), names)
        case "CK003":
            return BacklogFull(said.partition("'")[2].partition("'")[0])
        case "CK004":
            field, _, problem = said.partition(": ")
            return InvalidInput(field, problem, hint.removeprefix("accepted: "))
        case "CK005":
            return ChannelConflict(said)
    return None


def _hint(error: BaseException) -> str:
    diagnosis = getattr(error, "diag", None)  # psycopg
    hint = getattr(error, "hint", None) if diagnosis is None else diagnosis.message_hint  # asyncpg
    return hint or ""
