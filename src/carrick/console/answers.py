"""What the console's endpoints take and answer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec import Meta

from carrick.console.door import MAX_NAME
from carrick.console.history import Lately, Series
from carrick.entry import ChannelStats, Contents, DeadCount, Gate, Line, Sign, Standing
from carrick.outbox.story import Happening

Name = Annotated[str, Meta(min_length=1, max_length=255)]


class SessionLook(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the browser is signed in, as whom, and what its page needs to know. `mark` goes with every change."""

    signed_in: bool
    name: str
    mark: str
    service: str
    instance: str
    panels: Sequence[str]
    is_demo: bool


class SignIn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """ADMIN_TOKEN, and a name to write beside what is done."""

    token: Annotated[str, Meta(min_length=1, max_length=1_000)]
    name: Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]


class ChannelLook(msgspec.Struct, frozen=True, kw_only=True):
    """A channel: what the database counts, and what this process has seen of it."""

    stats: ChannelStats
    mode: str
    lately: Lately
    series: Series


class TenantLook(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant with entries that wait."""

    channel: str
    tenant_id: str
    waiting: int


class Replica(msgspec.Struct, frozen=True, kw_only=True):
    """One who works with this database. `alive_until`: the last of its signs; after that it may be gone."""

    owner: str
    alive_until: datetime
    signs: Sequence[Sign]


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """Everything at a glance. `counted_up_to`: more than that is not counted of a tenant."""

    at: datetime
    instance: str
    channels: Sequence[ChannelLook]
    gates: Sequence[Gate]
    replicas: Sequence[Replica]
    tenants: Sequence[TenantLook]
    counted_up_to: int


class EntriesQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which entries to list. `reason` is what they died of; `words` all stand in what a list shows of an entry."""

    channel: Name
    state: str | None = None
    tenant: Annotated[str, Meta(max_length=255)] | None = None
    reason: Name | None = None
    words: Annotated[str, Meta(max_length=255)] = ""
    limit: Annotated[int, Meta(ge=1, le=200)] = 50
    after: Annotated[str, Meta(max_length=2_000)] | None = None


class EntryLines(msgspec.Struct, frozen=True, kw_only=True):
    """Some entries; `next` is what to give as `after` for those behind them, null at the end."""

    entries: Sequence[Line]
    next: str | None


class SearchQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to look for: an entry's id, a key, a group or a tenant; of one tenant where it is given."""

    text: Name
    tenant: Annotated[str, Meta(max_length=255)] | None = None
    limit: Annotated[int, Meta(ge=1, le=200)] = 50


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that was found, and which of its names the text is: id, key, group, tenant."""

    matches: Sequence[str]
    entry: Line


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """What was found, and where the look ended: see `Found`."""

    hits: Sequence[Hit]
    cut: bool
    tenants_unseen: bool
    ended_unseen: bool


class DeadQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which dead entries to look at before something is done with them."""

    channel: Name
    reason: Name | None = None


class DeadLook(msgspec.Struct, frozen=True, kw_only=True):
    """What would be redriven or discarded: how many, what they died of, and the oldest few.

    `at` is the database's time of the look: give it as `died_by`, and what dies later is not discarded.
    `counted_up_to`: more are not counted.
    """

    at: datetime
    count: int
    counted_up_to: int
    causes: Sequence[DeadCount]
    oldest: Sequence[Line]


class EntryLook(msgspec.Struct, frozen=True, kw_only=True):
    """One entry with what it carries, why it is where it is, and its story."""

    standing: Standing
    contents: Contents
    reason: str
    sentence: str
    story: Sequence[Happening]


class Redrive(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which dead entries to send round again: `ids`, or `everything` of the channel, narrowed by `reason`."""

    channel: Name
    ids: Annotated[list[UUID], Meta(min_length=1, max_length=1_000)] | None = None
    everything: bool = False
    reason: Name | None = None
    limit: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    spread_seconds: Annotated[float, Meta(ge=0, le=86_400)] = 60.0
    dry_run: bool = False


class Discard(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which dead entries to remove for good: `ids`, or `everything` of the channel, narrowed by `reason`.

    What died after `died_by` stays.
    """

    channel: Name
    ids: Annotated[list[UUID], Meta(min_length=1, max_length=1_000)] | None = None
    everything: bool = False
    reason: Name | None = None
    died_by: Annotated[datetime, Meta(tz=True)] | None = None
    limit: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    dry_run: bool = False


class OpenGate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which gate to open."""

    channel: Name
    scope: Name


class CloseGate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which gate to close, why, and for how long; without `seconds` until somebody opens it."""

    channel: Name
    scope: Name
    reason: Annotated[str, Meta(min_length=1, max_length=500)]
    seconds: Annotated[float, Meta(gt=0, le=31_536_000)] | None = None


class ReleaseExpired(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Give back what is held under leases that ended."""

    channel: Name


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """How many entries that changed, or would. `left`: the time was up before all were done; ask again."""

    count: int
    dry_run: bool = False
    left: bool = False


class Act(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody did here, for the audit."""

    actor: str
    address: str
    action: str
    subject: str
    detail: dict[str, Any]
