"""Times as they are shown: whole seconds, never earlier than they are."""

from __future__ import annotations

from datetime import datetime, timedelta


def whole_second(moment: datetime) -> datetime:
    """The moment, or the next whole second after it."""
    down = moment.replace(microsecond=0)
    return down if down == moment else down + timedelta(seconds=1)
