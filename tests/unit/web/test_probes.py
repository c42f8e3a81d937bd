"""Readiness: what anybody is told, and what only the log is."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import aiohttp
import msgspec
import pytest

from carrick.errors import (
    DiskFull,
    SchemaMissing,
    SchemaOutdated,
    SchemaTooNew,
    StoreBusy,
    StoreError,
    StoreReadOnly,
    StoreUnavailable,
)
from carrick.web.probes import readiness
from carrick.web.routes import application
from carrick.web.server import serving

WHERE = "/var/run/shop.sock"
AWAY = StoreUnavailable(f'the database does not answer: connection to server on socket "{WHERE}" failed')
OTHER = StoreUnavailable(f'the database does not answer: {WHERE}: FATAL: database "shop" does not exist')


class Ready(msgspec.Struct, kw_only=True):
    """Ready."""

    status: str = "ready"


def asked(*found: StoreError | None) -> list[tuple[int, dict[str, Any]]]:
    """One answer after the other, as the checks go."""
    checks = iter(found)

    async def check() -> None:
        if (error := next(checks)) is not None:
            raise error

    async def story() -> list[tuple[int, dict[str, Any]]]:
        app = application([readiness(check, Ready())], max_body_bytes=1000)
        async with serving(app, "127.0.0.1", 0) as port, aiohttp.ClientSession() as session:
            answers = []
            for _ in found:
                async with session.get(f"http://127.0.0.1:{port}/api/ready") as answer:
                    answers.append((answer.status, await answer.json()))
            return answers

    return asyncio.run(story())


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (AWAY, "the database does not answer"),
        (SchemaMissing(WHERE), "the database has no Carrick schema; run: carrick migrate"),
        (SchemaOutdated(WHERE, 3, 4), "the database has the schema of an older release; run: carrick migrate"),
        (SchemaTooNew(WHERE, 5, 4), "the database has the schema of a newer release; upgrade Carrick"),
        (StoreReadOnly(WHERE), "the database cannot be written"),
        (DiskFull(WHERE), "the database has no room left"),
        (StoreBusy(WHERE), "the database is held by somebody else for too long"),
        (StoreError(WHERE), "the database cannot be used"),
    ],
)
def test_why_it_is_not_ready_is_said_without_where_the_database_is(error: StoreError, reason: str) -> None:
    assert asked(error) == [(503, {"error": "not_ready", "message": reason})]


def test_the_details_are_in_the_log_once_for_each_trouble(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "carrick.web"):
        answers = asked(AWAY, AWAY, OTHER, None, OTHER)
    assert [status for status, _ in answers] == [503, 503, 503, 200, 503]
    told = [vars(record)["error"] for record in caplog.records if record.getMessage() == "web.not_ready"]
    assert told == [str(AWAY), str(OTHER), str(OTHER)]
