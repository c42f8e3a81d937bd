"""A part of a demo that runs in a thread of its own, with an event loop of its own, until told to stop."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager


class Background(ABC):
    """Runs once. `work` ends soon after `stopping` is set; `started` is set when it has something to show."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._error: BaseException | None = None
        self._loop = asyncio.new_event_loop()
        self.stopping = asyncio.Event()
        self.started = threading.Event()

    @abstractmethod
    async def work(self) -> None:
        """What runs in the thread."""

    @contextmanager
    def running(self) -> Iterator[None]:
        """Work while the block runs. Raises what made it fail."""
        thread = threading.Thread(target=self._run, name=self._name)
        thread.start()
        try:
            yield
        finally:
            self._loop.call_soon_threadsafe(self.stopping.set)
            thread.join()
            self._loop.close()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self.work())
        except BaseException as error:  # noqa: BLE001  raised by the thread that shows the demo
            self._error = error
        finally:
            self.started.set()
