"""Many processes at once, each a copy of one that has loaded Carrick and has no threads: quick to start."""

from __future__ import annotations

import multiprocessing
from multiprocessing.context import ForkServerContext


def many() -> ForkServerContext:
    """Where such processes, and what they share, are made."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pytest", "carrick.wiring", "psycopg", "carrick.outbox.postgres.store"])
    return context
