"""Stores block, the relay must not: their calls run in threads of the relay's own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Threads:
    """A few threads for calls that wait for the database."""

    def __init__(self, count: int) -> None:
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="carrick-store")

    async def call(self, operation: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the operation in a thread. Who is cancelled while it runs leaves it running: it ends by itself."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, partial(operation, *args, **kwargs))

    def close(self) -> None:
        """Wait for the calls under way, and end the threads."""
        self._pool.shutdown()
