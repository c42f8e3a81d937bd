"""The garbage collector of a service."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from carrick.cli.running import run_until_stopped
from carrick.ops.collector import THRESHOLDS


@pytest.fixture
def collector() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.usefixtures("collector")
def test_a_service_leaves_what_is_loaded_out_of_every_collection() -> None:
    seen: list[tuple[int, tuple[int, int, int]]] = []
    kept = [[number] for number in range(1000)]
    before = gc.get_freeze_count()

    async def service(_: object) -> int:
        seen.append((gc.get_freeze_count(), gc.get_threshold()))
        return 0

    assert run_until_stopped(service) == 0
    assert seen[0][0] - before >= len(kept)
    assert seen[0][1] == THRESHOLDS
