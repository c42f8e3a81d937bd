"""Carrick ties your database to systems you do not control."""

from carrick.entry import Batch, Entry, Outcome, OutcomeKind, Put, State
from carrick.errors import CarrickError
from carrick.outbox.channel import Channel, Mode, OnFull
from carrick.outbox.explain import Explanation
from carrick.outbox.handling import Reject, Retry
from carrick.outbox.outbox import Outbox

__version__ = "0.1.0"

__all__ = [
    "Batch",
    "CarrickError",
    "Channel",
    "Entry",
    "Explanation",
    "Mode",
    "OnFull",
    "Outbox",
    "Outcome",
    "OutcomeKind",
    "Put",
    "Reject",
    "Retry",
    "State",
]
