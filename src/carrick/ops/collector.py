"""Python's garbage collector in a service that runs for weeks."""

from __future__ import annotations

import gc

THRESHOLDS = (10_000, 20, 20)


def spare_the_collector() -> None:
    """What is loaded by now stays, so the collector need not look at it again; and it looks less often at the rest."""
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
