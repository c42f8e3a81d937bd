"""The sink contract over HTTP, on real sockets."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from carrick.settings import CloudSettings
from carrick.sinks.http import HttpSink
from carrick.sinks.sink import Sink
from carrick.testing import SinkContract
from carrick.testing.sink_contract import Destination, Silence
from tests.ports import free_port
from tests.receivers import Request, receiving, silent

pytestmark = pytest.mark.filterwarnings("error")

EVENT = re.compile(rb'\{"event_id":"([^"]+)"[^{}]*"payload":(\{[^}]*\})\}')


class HttpDestination:
    """An HTTP receiver on this host."""

    def __init__(self) -> None:
        self._requests: list[Request] = []

    @asynccontextmanager
    async def taking(self) -> AsyncIterator[Sink]:
        async with receiving() as receiver, _sink(receiver.port) as sink:
            self._requests = receiver.requests
            yield sink

    @asynccontextmanager
    async def dead(self) -> AsyncIterator[Sink]:
        async with _sink(free_port()) as sink:
            yield sink

    @asynccontextmanager
    async def silent(self) -> AsyncIterator[Silence]:
        asked, gone = asyncio.Event(), asyncio.Event()
        async with receiving(silent(asked, gone)) as receiver, _sink(receiver.port) as sink:
            yield Silence(sink, asked, gone)

    def received(self) -> list[tuple[str, bytes]]:
        texts = [request.text for request in self._requests]
        return [(found[1].decode(), found[2]) for text in texts for found in EVENT.finditer(text)]


class TestHttpSink(SinkContract):
    """Every promise of a sink, kept by the HTTP sink."""

    @pytest.fixture
    def destination(self) -> Destination:
        return HttpDestination()


@asynccontextmanager
async def _sink(port: int) -> AsyncIterator[Sink]:
    sink = HttpSink(CloudSettings(url=f"http://127.0.0.1:{port}/api/v1/edge/batch"), edge_id="edge-1")
    try:
        yield sink
    finally:
        await sink.close()
