"""A write under a lease that has moved on changes nothing (G3); here that is told, because nothing may be silent."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar
from uuid import UUID

log = logging.getLogger("carrick.outbox")

S = TypeVar("S")
P = ParamSpec("P")
R = TypeVar("R")

Fenced = Callable[Concatenate[S, UUID, P], R]


def tells_lost_lease(operation: Fenced[S, P, R]) -> Fenced[S, P, R]:
    """Log `outbox.lease_lost` when an operation under a token changed nothing although it was asked to."""

    @wraps(operation)
    def told(store: S, token: UUID, /, *args: P.args, **kwargs: P.kwargs) -> R:
        changed = operation(store, token, *args, **kwargs)
        if not changed and _asked(args):
            tell_lost_lease(operation.__name__, token)
        return changed

    return told


def tell_lost_lease(operation: str, token: UUID) -> None:
    """Log that an operation under a token changed nothing, because the lease has moved on."""
    log.warning("outbox.lease_lost", extra={"operation": operation, "lease": str(token)[:8]})


def _asked(args: Any) -> bool:
    """An empty mapping of outcomes asks for nothing."""
    return not args or args[0] != {}
