"""A Redis that a test may kill, and a file with the schema."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from carrick.testing import SqliteClock
from tests.redis_server import RedisProcess
from tests.replicas import Time
from tests.sqlite_file import whole_file


@pytest.fixture
def path(sqlite_path: Path) -> Path:
    """A file with the schema."""
    whole_file(sqlite_path)
    return sqlite_path


@pytest.fixture
def time(path: Path) -> Time:
    """Time that passes when the test says so."""
    return Time(SqliteClock(path))


@pytest.fixture
def server() -> Iterator[RedisProcess]:
    """A Redis of the test's own that forgets nothing when it is killed."""
    server = RedisProcess()
    yield server
    server.close()
