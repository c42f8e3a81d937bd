"""What the ingest's endpoints take and answer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from carrick.ingest.batch import MAX_EVENTS, Fault
from carrick.ingest.body import MAX_BODY_BYTES
from carrick.ingest.store import Seen
from carrick.outbox.producing import MAX_TEXT
from carrick.web.unfolding import ENCODINGS


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """The database answers."""

    status: str = "ready"


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What became of each event: new, there already, or named in `errors`."""

    accepted: int
    duplicated: int
    rejected: int
    errors: Sequence[Fault]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch may be."""

    max_body_bytes: int = MAX_BODY_BYTES
    max_events: int = MAX_EVENTS
    max_payload_bytes: int = MAX_BODY_BYTES
    content_encodings: Sequence[str] = ENCODINGS


class Handshake(msgspec.Struct, frozen=True, kw_only=True):
    """Who is here, what time it is here, and what is accepted. `clock_seconds`: how far a signer's clock may be off."""

    server_time: datetime
    version: str
    auth_mode: str
    clock_seconds: int | None
    limits: Limits


class DedupeQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whose events to show."""

    tenant_id: Annotated[str, Meta(max_length=MAX_TEXT)]
    limit: Annotated[int, Meta(ge=1, le=200)] = 50


class Dedupe(msgspec.Struct, frozen=True, kw_only=True):
    """The events of a tenant that came last and would be duplicates now, the newest first."""

    tenant_id: str
    events: Sequence[Seen]
