"""After a long outage fresh entries and the backlog share the way out, 70 to 30: news does not wait for history."""

from __future__ import annotations

from carrick.entry import Batch
from carrick.relay.moment import claimed_at

OLD_SECONDS = 300.0
"""A batch with an entry older than this means that there is a backlog."""
FRESH_SECONDS = 60.0
"""What is younger than this is fresh."""
ROUND = 10
FRESH_OF_ROUND = 7


class Sharing:
    """Decides for each claim whether it goes for fresh entries or for the oldest ones."""

    def __init__(self) -> None:
        self._catching_up = False
        self._turn = 0

    @property
    def catching_up(self) -> bool:
        """Whether there is a backlog."""
        return self._catching_up

    def fresh_seconds(self) -> float | None:
        """How young the next claim's entries must be; None: the oldest first, as usual."""
        return FRESH_SECONDS if self._catching_up and self._turn < FRESH_OF_ROUND else None

    def claimed(self, batch: Batch, fresh_seconds: float | None) -> None:
        """Take note of what a claim got. Where nothing is fresh, the rest of the round is the backlog's."""
        if fresh_seconds is not None:
            self._turn = self._turn + 1 if batch else FRESH_OF_ROUND
            return
        now = claimed_at(batch)
        oldest = min((entry.created_at for entry in batch), default=now)
        self._catching_up = now is not None and oldest is not None and (now - oldest).total_seconds() > OLD_SECONDS
        self._turn = (self._turn + 1) % ROUND if self._catching_up else 0
