"""Holds: a call waits at a named point until it is released. For tests that need two things to happen in order."""

from __future__ import annotations

import asyncio
from typing import Literal

from carrick_osmsim.matching import Matching, Target

Point = Literal["before_apply", "after_apply", "before_answer"]


class Hold(Matching, kw_only=True):
    """Keeps the calls it is for at a point. `name` is how it is released."""

    name: str
    point: Point = "before_apply"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.name or "/" in self.name:
            raise ValueError("name: accepted are one or more characters without /")


class Gate:
    """A hold at work: the numbers of the calls that wait, and of those that ever did."""

    def __init__(self, hold: Hold) -> None:
        self.hold = hold
        self.waiting: list[int] = []
        self.reached = 0
        self.opened = asyncio.Event()
        self.changed = asyncio.Event()

    async def keep(self, call: int) -> None:
        """Wait until it is released."""
        self.waiting.append(call)
        self.reached += 1
        self.changed.set()
        await self.opened.wait()
        self.waiting.remove(call)


class Holds:
    """All holds by name. Those that were released are forgotten."""

    def __init__(self) -> None:
        self.gates: dict[str, Gate] = {}

    def add(self, hold: Hold) -> None:
        """Keep calls from now on. Raises ValueError when the name is in use."""
        if hold.name in self.gates:
            raise ValueError(f"name: there is a hold {hold.name} already; release it first")
        self.gates[hold.name] = Gate(hold)

    def release(self, name: str) -> int:
        """Let its calls go and keep no more; how many were waiting. Raises KeyError when there is no such hold."""
        gate = self.gates.pop(name)
        waiting = len(gate.waiting)
        gate.opened.set()
        gate.changed.set()
        return waiting

    def release_all(self) -> None:
        """Let everybody go."""
        for name in list(self.gates):
            self.release(name)

    async def at(self, point: Point, target: Target, call: int) -> None:
        """Wait here, if a hold is for this call."""
        for gate in list(self.gates.values()):
            hold = gate.hold
            if hold.point == point and not hold.spent and hold.fits(target) and hold.take():
                await gate.keep(call)

    async def reached(self, name: str, count: int, patience_seconds: float) -> bool:
        """Wait until so many calls have come to the hold; whether they did in that time. Raises KeyError."""
        gate = self.gates[name]
        try:
            async with asyncio.timeout(patience_seconds):
                while gate.reached < count and not gate.opened.is_set():
                    gate.changed.clear()
                    await gate.changed.wait()
        except TimeoutError:
            pass
        return gate.reached >= count
