"""What the leaders' API answers with, and what it takes. Names are as the pages write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated

import msgspec

from carrick_scoreboard.moments import whole_second
from carrick_scoreboard.store.credentials import WritableSection
from carrick_scoreboard.store.devices import MAX_NAME, Device
from carrick_scoreboard.store.scores import Update
from carrick_scoreboard.waiting import Why


class User(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    osm_user_id: int
    name: str


class SessionAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Always 200: nobody being signed in is no error."""

    authenticated: bool
    user: User | None = None
    selected_section_id: int | None = None
    csrf_token: str | None = None
    pending_writes: int | None = None
    sign_in_again: bool = False
    """OSM no longer accepts the sign-in: points wait until the leader signs in again."""


class SectionAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    id: int
    name: str
    group_name: str


class Sections(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    sections: list[SectionAnswer]


class ScorePatrol(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    id: str
    name: str
    score: int
    pending_delta: int
    has_pending: bool


class SectionScoresAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    section: SectionAnswer
    term_id: int | None
    patrols: list[ScorePatrol]
    fetched_at: datetime
    cache_expires_at: datetime
    stale: bool
    rate_limit_state: str
    settings: SectionSettingsBody
    message: str | None = None
    """Why OSM would not be asked now."""


class SectionSettingsBody(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    patrol_colors: dict[str, str]


class PatrolName(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str


class SectionSettingsAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    section_id: int
    patrol_colors: dict[str, str]
    patrols: Sequence[PatrolName]


class HistoryLine(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    id: int
    patrol_id: str
    patrol_name: str
    points: int
    previous_score: int | None
    new_score: int | None
    user_name: str
    created_at: datetime
    undone_by: int | None = None
    is_own: bool = False
    """The leader may take it back."""


class History(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    history: list[HistoryLine]
    next: str | None = None


class PendingLine(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    id: int
    section_id: int
    patrol_id: str
    patrol_name: str
    points: int
    state: str
    reason: str
    message: str
    created_at: datetime
    retry_at: datetime | None = None
    expected: int | None = None
    found: int | None = None
    """Of what needs a person: the score that should be there, and the one that is."""


class PendingLines(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    pending: list[PendingLine]


class BoardAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    token: str
    url: str


class ScoreboardLine(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    id: int
    name: str
    section_id: int
    client_id: str
    created_at: datetime
    last_used_at: datetime | None = None


class Scoreboards(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    scoreboards: list[ScoreboardLine]


class NewName(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME)]


class NewSection(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The number of a section, also as a text."""

    section_id: (
        Annotated[int, msgspec.Meta(ge=1, le=2**53)] | Annotated[str, msgspec.Meta(pattern="^[1-9][0-9]{0,14}$")]
    )


class Seen(msgspec.Struct, frozen=True):
    """What the leader was shown of points that need a person: the number that was `found`, or `none`."""

    found: Annotated[str, msgspec.Meta(pattern="^(none|-?[0-9]{1,15})?$")] = ""


class HistoryQuery(msgspec.Struct, frozen=True):
    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 50
    before: Annotated[int, msgspec.Meta(ge=1)] | None = None


def section_answer(section: WritableSection) -> SectionAnswer:
    return SectionAnswer(id=section.id, name=section.name, group_name=section.group_name)


def history_line(update: Update, user_id: int) -> HistoryLine:
    return HistoryLine(
        id=update.id,
        patrol_id=update.patrol_id,
        patrol_name=update.patrol_name,
        points=update.points,
        previous_score=update.previous_score,
        new_score=update.new_score,
        user_name=update.user_name or "",
        created_at=whole_second(update.created_at),
        undone_by=update.undone_by,
        is_own=update.osm_user_id == user_id,
    )


def pending_line(update: Update, why: Why, names: Mapping[str, str]) -> PendingLine:
    return PendingLine(
        id=update.id,
        section_id=update.section_id,
        patrol_id=update.patrol_id,
        patrol_name=update.patrol_name or names.get(update.patrol_id, ""),
        points=update.points,
        state=update.state or "dead",
        reason=why.reason,
        message=why.message,
        created_at=whole_second(update.created_at),
        retry_at=None if why.retry_at is None else whole_second(why.retry_at),
        expected=update.target if why.reason == "needs_review" else None,
        found=update.found if why.reason == "needs_review" else None,
    )


def found_of(update: Update) -> str:
    """What `Seen` says of it."""
    return "none" if update.found is None else str(update.found)


def scoreboard_line(device: Device) -> ScoreboardLine:
    return ScoreboardLine(
        id=device.id,
        name=device.name,
        section_id=device.section_id,
        client_id=device.client_id,
        created_at=whole_second(device.created_at),
        last_used_at=None if device.last_used_at is None else whole_second(device.last_used_at),
    )
