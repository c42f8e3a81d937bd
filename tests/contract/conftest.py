"""Sessions for the interleaving tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from carrick.testing.interleaving import Session
from tests.contract.sessions import Open


@pytest.fixture
def opened(postgres_dsn: str) -> Iterator[Open]:
    """Opens sessions to one database; all are closed at the end."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(Session(postgres_dsn))
