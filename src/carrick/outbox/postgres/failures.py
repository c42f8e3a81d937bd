"""What PostgreSQL says went wrong, as Carrick's own errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors

from carrick.errors import (
    CarrickError,
    ChannelConflict,
    DiskFull,
    InvalidInput,
    SchemaMissing,
    StoreError,
    StoreReadOnly,
    StoreUnavailable,
    UnknownChannel,
)


@contextmanager
def map_errors() -> Iterator[None]:
    """Raise Carrick's error for a psycopg error whose meaning is known; others pass as they are."""
    try:
        yield
    except psycopg.Error as error:
        mapped = carrick_error(error)
        if mapped is None:
            raise
        raise mapped from error


def carrick_error(error: psycopg.Error) -> CarrickError | None:
    """The Carrick error that a psycopg error means, if any."""
    said = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    match error:
        case errors.UndefinedTable() | errors.UndefinedFunction() | errors.InvalidSchemaName() | errors.UndefinedObject():
            return SchemaMissing("the database")
        case errors.ReadOnlySqlTransaction() | errors.InsufficientPrivilege():
            return StoreReadOnly(f"the database refuses to write: {said}")
        case errors.DiskFull() | errors.OutOfMemory():
            return DiskFull(f"the database has no room left: {said}")
    state = error.sqlstate or ""
    hint = error.diag.message_hint or ""
    match state:
        case "CK001":
            known = hint.removeprefix("declared channels: ")
            names = [] if known == "none is declared yet" else known.split(", ")
            return UnknownChannel(said.removeprefix("unknown channel ").strip("'"), names)
        case "CK004":
            field, _, problem = said.partition(": ")
            return InvalidInput(field, problem, hint.removeprefix("accepted: "))
        case "CK005":
            return ChannelConflict(said)
    if isinstance(error, psycopg.DataError) and not state:
        return InvalidInput("parameter", said, "text without NUL characters and numbers in range")
    if state[:2] in {"08", "57", "53"} or (isinstance(error, psycopg.OperationalError) and not state):
        return StoreUnavailable(f"the database does not answer: {said}")
    if state[:2] == "58":
        return StoreError(f"the database reports a fault: {said}")
    return None
