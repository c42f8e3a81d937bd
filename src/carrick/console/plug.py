"""What a service may add to the console: panels of its own, and a place for the audit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from carrick.console.answers import Act
from carrick.console.door import Door
from carrick.web.routes import Route


class Plug(Protocol):
    """A service's own part. The page knows its panels by their names."""

    @property
    def panels(self) -> Sequence[str]:
        """The names of the panels."""

    def routes(self, door: Door) -> list[Route]:
        """Endpoints of the panels; the door guards each of them."""

    async def audit(self, act: Act) -> None:
        """Write down what somebody did. Raises StoreError."""


class NoPlug:
    """Adds nothing: the log is the audit."""

    panels: Sequence[str] = ()

    def routes(self, door: Door) -> list[Route]:
        return []

    async def audit(self, act: Act) -> None:
        """The log has it."""
