"""Hostile input to the ingest: whatever comes, it answers with a reason, never with a fault of its own, and goes on."""

from __future__ import annotations

import asyncio
import random
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import msgspec
import pytest

from tests.batches import PATH, body, event
from tests.scenario.conftest import Shared
from tests.scenario.hostile import BOMBS, Hostile, hostile
from tests.scenario.processes import IngestProcess

SENDERS = 8
EXPECTED = {200, 400, 401, 413, 415}


async def attack(url: str, cases: int, seed: int) -> Counter[int]:
    """That many hostile requests; how often each status was answered. Raises when one is unexpected or none comes."""
    chance = random.Random(seed)
    statuses: Counter[int] = Counter()
    left = [*BOMBS, *(hostile(chance) for _ in range(cases - len(BOMBS)))] if cases < 10_000 else None
    count = cases

    def following() -> Hostile | None:
        nonlocal count
        count -= 1
        if count < 0:
            return None
        return left.pop() if left is not None else hostile(chance)

    async def send(session: aiohttp.ClientSession) -> None:
        while (one := following()) is not None:
            async with session.post(url, data=one.content, headers=one.headers) as response:
                text = await response.read()
            assert response.status in EXPECTED, (response.status, text, one.headers, one.content[:2000])
            answer = msgspec.json.decode(text)
            assert ("error" in answer) == (response.status != 200), text
            statuses[response.status] += 1

    timeout = aiohttp.ClientTimeout(total=60)
    async with aiohttp.ClientSession(timeout=timeout, skip_auto_headers=["Content-Type"]) as session:
        await asyncio.gather(*(send(session) for _ in range(SENDERS)))
    return statuses


@pytest.fixture
def ingest(shared: Shared, tmp_path: Path) -> Iterator[IngestProcess]:
    with IngestProcess(tmp_path, shared.url) as process:
        process.wait_ready()
        yield process


def check(ingest: IngestProcess, cases: int, seed: int) -> None:
    statuses = asyncio.run(attack(ingest.url, cases, seed))
    print(f"{cases} hostile requests: {dict(sorted(statuses.items()))}")
    assert sum(statuses.values()) == cases
    assert min(statuses[200], statuses[400], statuses[413], statuses[415]) > 0
    assert "Traceback" not in ingest.log
    status, verdict = ingest.ask("POST", PATH, body(event("at-last")))
    assert (status, verdict["accepted"]) == (200, 1)


def test_hostile_requests_are_answered_with_a_reason(ingest: IngestProcess) -> None:
    check(ingest, 1500, seed=2026)


@pytest.mark.chaos
@pytest.mark.timeout(3600)
def test_a_hundred_thousand_hostile_requests_are_answered_with_a_reason(ingest: IngestProcess) -> None:
    check(ingest, 100_000, seed=random.SystemRandom().randrange(10**9))


HEAD = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
RAW = {
    "the end before the length": (f"{HEAD}Content-Length: 100\r\n\r\n{{".encode(), None),
    "no length at all": (f"{HEAD}\r\n{{}}".encode(), b" 400 "),
    "a length that is no number": (f"{HEAD}Content-Length: ten\r\n\r\n".encode(), b" 400 "),
    "a negative length": (f"{HEAD}Content-Length: -1\r\n\r\n".encode(), b" 400 "),
    "two lengths": (f"{HEAD}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{{}}".encode(), b" 400 "),
    "a length that nobody has": (f"{HEAD}Content-Length: 99999999999\r\n\r\n".encode(), b" 413 "),
    "a damaged chunk": (f"{HEAD}Transfer-Encoding: chunked\r\n\r\nzz\r\n".encode(), b" 400 "),
    "no HTTP": (b"\x16\x03\x01\x02\x00\x01\x00", b" 400 "),
}


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IngestProcess]:
    """One for all of them."""
    with IngestProcess(tmp_path_factory.mktemp("raw"), "sqlite:///ingest.db") as process:
        process.wait_ready()
        yield process


@pytest.mark.parametrize("case", RAW)
def test_a_request_that_is_broken_itself_does_no_harm(case: str, one: IngestProcess) -> None:
    sent, expected = RAW[case]
    with socket.create_connection(("127.0.0.1", one.port), timeout=30) as line:
        line.sendall(sent)
        if expected is None:
            line.shutdown(socket.SHUT_WR)
        answer = line.recv(65536)
    assert expected is None or expected in answer.partition(b"\r\n")[0]
    assert one.ask("GET", "/api/health")[0] == 200
    assert "Traceback" not in one.log
