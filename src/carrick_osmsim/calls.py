"""The log of every call to the simulated OSM, with what it did. No token, password or secret stands in it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping

import msgspec

from carrick_osmsim.matching import Endpoint

KEPT = 5000
SECRET_FIELDS = frozenset(
    ("access_token", "client_secret", "code", "code_verifier", "password", "refresh_token", "ticket")
)


class CallRecord(msgspec.Struct):
    """One call. `status` is None while it is open, and when no answer was sent; `user_id` when nobody is known."""

    number: int
    at: str
    user_id: int | None
    endpoint: Endpoint
    method: str
    path: str
    query: dict[str, str]
    form: dict[str, str]
    open: bool = True
    status: int | None = None
    effect: str = ""
    applied: bool = False
    fault: str | None = None


class Calls:
    """The last calls, oldest first. Numbers go on after a reset, so that `after` stays good."""

    def __init__(self) -> None:
        self._records: deque[CallRecord] = deque(maxlen=KEPT)
        self._last = 0
        self._changed = asyncio.Event()

    @property
    def last_number(self) -> int:
        """The number of the newest call, 0 before the first."""
        return self._last

    def open(
        self,
        *,
        at: str,
        user_id: int | None,
        endpoint: Endpoint,
        method: str,
        path: str,
        query: Mapping[str, str],
        form: Mapping[str, str],
    ) -> CallRecord:
        """Write down that a call came in."""
        self._last += 1
        record = CallRecord(self._last, at, user_id, endpoint, method, path, masked(query), masked(form))
        self._records.append(record)
        self._changed.set()
        return record

    def close(self, record: CallRecord) -> None:
        """The call is over."""
        record.open = False
        self._changed.set()

    def after(self, number: int, limit: int = KEPT) -> list[CallRecord]:
        """The calls with higher numbers, oldest first."""
        return [record for record in self._records if record.number > number][:limit]

    def newest(self, limit: int) -> list[CallRecord]:
        """The last calls, newest first."""
        return list(self._records)[::-1][:limit]

    def forget(self) -> None:
        """Start with an empty log."""
        self._records.clear()

    async def finished_after(self, number: int, count: int, patience_seconds: float) -> bool:
        """Wait until so many calls after that one are over; whether they were in that time."""

        def enough() -> bool:
            return sum(not record.open for record in self.after(number)) >= count

        try:
            async with asyncio.timeout(patience_seconds):
                while not enough():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            pass
        return enough()


def masked(fields: Mapping[str, str]) -> dict[str, str]:
    """The fields without what is secret in them."""
    return {name: "***" if name in SECRET_FIELDS else value for name, value in fields.items()}
