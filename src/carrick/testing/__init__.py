"""For tests: the contracts of stores, sinks and contacts, clocks that move when told, a call that delivers everything.

`deliver_all` needs nothing but Carrick. The contracts need pytest; the clock of PostgreSQL needs psycopg.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from carrick.testing.deliver import deliver_all

if TYPE_CHECKING:
    from carrick.testing.clock import Clock, PostgresClock, SqliteClock
    from carrick.testing.contact_contract import ContactContract
    from carrick.testing.sink_contract import SinkContract
    from carrick.testing.store_contract import StoreContract
    from carrick.testing.zombie import Zombie

__all__ = [
    "Clock",
    "ContactContract",
    "PostgresClock",
    "SinkContract",
    "SqliteClock",
    "StoreContract",
    "Zombie",
    "deliver_all",
]

_ROOMS = {
    "Clock": "clock",
    "ContactContract": "contact_contract",
    "PostgresClock": "clock",
    "SinkContract": "sink_contract",
    "SqliteClock": "clock",
    "StoreContract": "store_contract",
    "Zombie": "zombie",
}


def __getattr__(name: str) -> Any:
    """Import what needs more than Carrick only when it is asked for."""
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_ROOMS[name]}"), name)
