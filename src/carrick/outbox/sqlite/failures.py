"""What SQLite says went wrong, as Carrick's own errors."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from carrick.errors import (
    CarrickError,
    DiskFull,
    InvalidInput,
    InvalidPayload,
    SchemaMissing,
    StoreBusy,
    StoreError,
    StoreReadOnly,
    StoreUnavailable,
)
from carrick.outbox.statement import Steps

T = TypeVar("T")

MISSING = ("no such table: carrick_", "no such column", "no such table: main.carrick_", "no such view: carrick_")


@contextmanager
def map_errors(path: Path) -> Iterator[None]:
    """Raise Carrick's error for a sqlite3 error whose meaning is known; others pass as they are."""
    try:
        yield
    except (UnicodeEncodeError, OverflowError) as error:  # the driver could not even pass a value on
        raise InvalidInput("parameter", str(error), "text without lone surrogates and numbers in range") from error
    except sqlite3.Error as error:
        mapped = carrick_error(error, path)
        if mapped is None:
            raise
        raise mapped from error


def named(steps: Steps[T]) -> Steps[T]:
    """An operation on the caller's connection; the driver's errors come out as Carrick's, where known."""
    try:
        return (yield from steps)
    except CarrickError:
        raise
    except Exception as error:
        cause = sqlite_error(error)
        known = None if cause is None else carrick_error(cause)
        if known is None:
            raise
        raise known from error


def sqlite_error(error: BaseException) -> sqlite3.Error | None:
    """SQLite's own error inside one that SQLAlchemy (`orig`) or Django (`__cause__`) has wrapped around it."""
    inner: BaseException | None = error
    while inner is not None and not isinstance(inner, sqlite3.Error):
        inner = getattr(inner, "orig", None) or inner.__cause__
    return inner


def carrick_error(error: sqlite3.Error, path: Path | None = None) -> CarrickError | None:
    """The Carrick error that an error of the database means, if any. Without `path` it is the caller's connection."""
    said = str(error)
    where = "the database" if path is None else str(path)
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:  # the low byte is the kind, the rest is detail
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreBusy(f"{where} is held by another writer: {said}")
        case sqlite3.SQLITE_READONLY:
            return StoreReadOnly(f"{where} cannot be written: {said}")
        case sqlite3.SQLITE_FULL:
            return DiskFull(f"there is no room left for {where}: {said}")
        case sqlite3.SQLITE_CANTOPEN:
            return _cannot_open(path, said)
        case sqlite3.SQLITE_ERROR if said.startswith(MISSING):
            return SchemaMissing(where)
        case sqlite3.SQLITE_CONSTRAINT:
            return _refused(said)
        case sqlite3.SQLITE_TOOBIG:
            return InvalidInput("payload", f"is larger than SQLite can hold ({said})", "less")
        case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_IOERR | sqlite3.SQLITE_PERM:
            return StoreError(f"{where} cannot be used: {said}")
    if isinstance(error, sqlite3.ProgrammingError) and "closed database" in said:
        return StoreUnavailable("this store is closed")
    return None


def _cannot_open(path: Path | None, said: str) -> StoreError:
    """A file without the right to write cannot be opened in WAL mode unless somebody else has it open."""
    effective = os.access in os.supports_effective_ids
    if path is not None and path.exists() and not os.access(path, os.W_OK, effective_ids=effective):
        return StoreReadOnly(f"{path} cannot be written: {said}")
    return StoreUnavailable(f"{path or 'the database'} cannot be opened: {said}")


def _refused(said: str) -> CarrickError | None:
    if "json_valid(payload)" in said:
        return InvalidPayload("payload", "SQLite cannot read it as JSON", "valid JSON in UTF-8")
    if "carrick_record.id" in said:
        return InvalidInput("id", "is that of an entry with another key", "a UUID that is new, or none")
    return None
