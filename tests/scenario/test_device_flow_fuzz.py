"""Hostile requests to the device flow: whatever is sent, nothing answers with a 5xx, and everything answers."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote_from_bytes

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok

from carrick.web.openapi import document
from carrick_scoreboard.routes import device_flow
from tests.osm import simulated
from tests.scoreboard import CLIENT, Board, Device, board

EXAMPLES = 20
FAST = settings(
    max_examples=EXAMPLES,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Board, str]]:
    """A scoreboard that runs in a thread of its own, and a code that is open there."""
    ready: list[tuple[Board, str]] = []
    started, stop = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def main() -> None:
        async with simulated() as osm, board(osm, tmp_path_factory.mktemp("fuzz") / "fuzz.db") as made:
            ready.append((made, await Device(made.url).begin()))
            started.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(main(),))
    thread.start()
    assert started.wait(30)
    yield ready[0]
    loop.call_soon_threadsafe(stop.set)
    thread.join()
    loop.close()


def test_no_request_that_the_document_describes_or_bends_is_answered_with_a_5xx(here: tuple[Board, str]) -> None:
    scoreboard, _ = here
    none: Any = None
    described = document("Device flow", "", device_flow.routes(none, none, none, none, none))
    schema = schemathesis.openapi.from_dict(described)
    tried = 0
    for result in schema.get_all_operations():
        assert isinstance(result, Ok), result
        operation = result.ok()
        strategy = operation.as_strategy() | operation.as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE)

        @FAST
        @given(case=strategy)
        def ask(case: schemathesis.Case[Any]) -> None:
            case.call_and_validate(base_url=scoreboard.url, checks=[not_a_server_error])

        ask()
        tried += 1
    assert tried == 2


LINES = ["/device", "/d/", "/device/confirm", "/device/cancel", "/device/select-section", "/device/done"]
PATHS = st.sampled_from([*LINES, "/oauth/callback", "/device/authorize", "/device/token", "/static/pages-"])
NAMES = st.sampled_from(["user_code", "flow", "state", "code", "error", "csrf", "section_id", "name", "client_id", "x"])
VALUES = st.binary(max_size=60) | st.sampled_from(
    [CLIENT.encode(), b"BBBBBBBB", b"0" * 43, b"access_denied", b"abcdef01"]
)
FIELDS = st.lists(st.tuples(NAMES, VALUES), max_size=5)
TYPES = st.sampled_from(
    [b"application/x-www-form-urlencoded", b"application/json", b"text/plain", b"", b"\xff/\xfe; =;"]
)
HEADER_NAMES = [b"Cookie", b"X-Forwarded-For", b"CF-IPCountry", b"Origin", b"Sec-Fetch-Site", b"Content-Encoding"]
HEADERS = st.lists(st.tuples(st.sampled_from(HEADER_NAMES), st.binary(max_size=80)), max_size=4)


def encoded(fields: list[tuple[str, bytes]]) -> bytes:
    return "&".join(f"{name}={quote_from_bytes(value)}" for name, value in fields).encode()


def status_of(scoreboard: Board, request: bytes) -> int:
    """The status that the bytes are answered with."""
    port = int(scoreboard.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(request)
        received = b""
        while b"\r\n" not in received:
            more = connection.recv(4096)
            assert more, "the connection ended without an answer"
            received += more
    return int(received.split(b" ", 2)[1])


def test_no_form_query_or_header_is_answered_with_a_5xx(here: tuple[Board, str]) -> None:
    scoreboard, code = here

    @settings(FAST, max_examples=400)
    @given(PATHS, FIELDS, FIELDS, st.binary(max_size=30), TYPES, HEADERS, st.booleans(), st.booleans())
    def ask(
        path: str,
        query: list[tuple[str, bytes]],
        form: list[tuple[str, bytes]],
        tail: bytes,
        kind: bytes,
        headers: list[tuple[bytes, bytes]],
        post: bool,
        chunked: bool,
    ) -> None:
        body = encoded([*form, ("user_code", code.encode())]) + tail
        target = path.encode() + (quote_from_bytes(tail).encode() if path.endswith(("/", "-")) else b"")
        lines = [b"%s %s?%s HTTP/1.1" % (b"POST" if post else b"GET", target, encoded(query)), b"Host: x"]
        lines += [name + b": " + value.replace(b"\r", b"").replace(b"\n", b"") for name, value in headers]
        if post:
            lines += [b"Content-Type: " + kind]
            lines += [b"Transfer-Encoding: chunked"] if chunked else [b"Content-Length: %d" % len(body)]
        framed = (b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if chunked else body) if post else b""
        assert status_of(scoreboard, b"\r\n".join([*lines, b"Connection: close", b"", b""]) + framed) < 500

    ask()


@pytest.mark.parametrize(
    "body",
    [
        b"Transfer-Encoding: chunked\r\n\r\nnonsense\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n5\r\nclient_id=way too long\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
        b"Content-Length: -1\r\n\r\n",
        b"Content-Length: 99999999999999999999\r\n\r\n",
        b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        b"Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello",
        b"Expect: 200-maybe\r\nContent-Length: 0\r\n\r\n",
    ],
)
@pytest.mark.parametrize("path", ["/device/token", "/device/confirm"])
def test_a_body_that_is_not_http_is_refused(here: tuple[Board, str], path: str, body: bytes) -> None:
    head = b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n" % path.encode()
    assert 400 <= status_of(here[0], head + body) < 500
