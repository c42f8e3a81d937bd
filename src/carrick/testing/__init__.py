"""For tests: the contract every store keeps, clocks that move when told, and one call that delivers everything."""

from __future__ import annotations

from carrick.testing.clock import Clock, PostgresClock, SqliteClock
from carrick.testing.store_contract import StoreContract

__all__ = ["Clock", "PostgresClock", "SqliteClock", "StoreContract"]
