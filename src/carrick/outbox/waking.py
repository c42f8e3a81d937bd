"""Tells the relays of this process what it has put itself, whether they can hear the database or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Ring = Callable[[str], None]
"""Called with the name of a channel, from any thread."""


class Waking:
    """The part of a store that wakes relays of its own process."""

    def __init__(self) -> None:
        self._rings: tuple[Ring, ...] = ()

    def wake(self, *channels: str) -> None:
        """Something in these channels may be due, and is committed."""
        for ring in self._rings:
            for channel in channels:
                ring(channel)

    @contextmanager
    def waking(self, ring: Ring) -> Iterator[None]:
        """Within it, the bells of relays are rung by this."""
        self._rings = (*self._rings, ring)
        try:
            yield
        finally:
            self._rings = tuple(each for each in self._rings if each is not ring)
