"""One read for all who ask at once: who comes while a read is under way is served by the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Together(Generic[K, V]):
    """Reads keys with `load`, for at most `most` callers in one go. An answer is never older than its question."""

    def __init__(self, load: Callable[[list[K]], Awaitable[Mapping[K, V]]], most: int) -> None:
        self._load = load
        self._most = most
        self._waiting: list[tuple[Sequence[K], asyncio.Future[Mapping[K, V]]]] = []
        self._reading: asyncio.Task[None] | None = None

    async def get(self, keys: Sequence[K]) -> Mapping[K, V]:
        """The values of these keys, and maybe others'. Raises what the read raises."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Mapping[K, V]] = loop.create_future()
        self._waiting.append((keys, answer))
        if self._reading is None:
            self._reading = loop.create_task(self._read_waiting())
        return await answer

    async def _read_waiting(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
                await self._read(batch)
        finally:
            self._reading = None

    async def _read(self, batch: Sequence[tuple[Sequence[K], asyncio.Future[Mapping[K, V]]]]) -> None:
        waiting = [answer for _, answer in batch]
        try:
            found = await self._load(list({key: None for keys, _ in batch for key in keys}))
        except Exception as error:  # noqa: BLE001  everybody who waits for it gets it
            for answer in waiting:
                if not answer.done():
                    answer.set_exception(error)
            return
        for answer in waiting:
            if not answer.done():  # else who asked has gone
                answer.set_result(found)
