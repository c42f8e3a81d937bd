"""The forwarder as a whole: what its start says."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from carrick import wiring
from carrick.settings import read_settings


@pytest.mark.parametrize(
    ("changed", "warned"),
    [({}, True), ({"ADMIN_TOKEN": "t"}, False), ({"HOST": "127.0.0.1"}, False), ({"HOST": "localhost"}, False)],
    ids=["for all, without a token", "for all, with a token", "this machine", "this machine by its name"],
)
def test_admin_endpoints_that_are_closed_to_all_others_are_told_at_the_start(
    tmp_path: Path, changed: dict[str, str], warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    environment = {
        "DATABASE_URL": f"sqlite:///{tmp_path}/a.db",
        "CLOUD_INGESTION_URL": "http://127.0.0.1:9/",
        "INTERNAL_ADMIN_ENABLED": "true",
        "HOST": "0.0.0.0",
        "PORT": "0",
        "METRICS_PORT": "0",
        **changed,
    }

    async def started_and_stopped() -> None:
        stopping = asyncio.Event()
        await wiring.forwarder(read_settings(environment, tmp_path / "none")).run(stopping, lambda *_: stopping.set())

    with caplog.at_level(logging.WARNING):
        asyncio.run(started_and_stopped())
    assert ("forward.admin_closed" in caplog.text) is warned
