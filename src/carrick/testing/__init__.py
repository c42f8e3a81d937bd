"""For tests: contracts of stores, sinks, contacts and shared state, clocks that move when told, a delivery of all.

`deliver_all` needs nothing but Carrick. The contracts need pytest; the clock of PostgreSQL needs psycopg.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from carrick.testing.deliver import deliver_all

if TYPE_CHECKING:
    from carrick.testing.clock import Clock, PostgresClock, RedisClock, SqliteClock
    from carrick.testing.contact_contract import ContactContract
    from carrick.testing.sink_contract import SinkContract
    from carrick.testing.state_contract import StateContract
    from carrick.testing.store_contract import StoreContract
    from carrick.testing.zombie import Zombie

__all__ = [
    "Clock",
    "ContactContract",
    "PostgresClock",
    "RedisClock",
    "SinkContract",
    "SqliteClock",
    "StateContract",
    "StoreContract",
    "Zombie",
    "deliver_all",
]

_ROOMS = {
    "Clock": "clock",
    "ContactContract": "contact_contract",
    "PostgresClock": "clock",
    "RedisClock": "clock",
    "SinkContract": "sink_contract",
    "SqliteClock": "clock",
    "StateContract": "state_contract",
    "StoreContract": "store_contract",
    "Zombie": "zombie",
}


def __getattr__(name: str) -> Any:
    """Import what needs more than Carrick only when it is asked for."""
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_ROOMS[name]}"), name)
