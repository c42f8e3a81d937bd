"""What can be done to the simulated OSM from outside: one class per action, its fields are what it takes.

The control API takes them as JSON, the panel as forms; both end in `act`. Raises ValueError for what makes no sense.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import msgspec

from carrick_osmsim.faults import BLOCKED, Fault
from carrick_osmsim.holds import Hold
from carrick_osmsim.patrols import MAX_POINTS
from carrick_osmsim.profile import SCOPES
from carrick_osmsim.seed import DEMO_APP, person, rights, term_name
from carrick_osmsim.simulator import Simulator
from carrick_osmsim.world import App, Block, BlockStyle, Level, Refusal, Section, Term, User

USUAL_SCOPES = ["section:member:read", "section:member:write"]
YEARS = range(2000, 2101)
"""Where the clock can be."""

MOST_CALLS = 1_000_000
MOST_USERS = 999_999
DAY_SECONDS = 86_400
CENTURY_SECONDS = 36_525 * DAY_SECONDS


class Action(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One thing to do."""

    def act(self, simulator: Simulator) -> Any:
        """Do it; what to answer."""
        raise NotImplementedError


class Reset(Action):
    """Back to the seed data. `clock` is where the clock then stands still."""

    clock: datetime | None = None

    def act(self, simulator: Simulator) -> Any:
        simulator.reset(None if self.clock is None else zoned(self.clock))
        return {"clock": simulator.clock.moment()}


class SetClock(Action):
    """Set it, advance it, stop it or let it run, in that order."""

    set: datetime | None = None
    advance_seconds: float = 0.0
    stands: bool | None = None

    def __post_init__(self) -> None:
        _within("advance_seconds", self.advance_seconds, -CENTURY_SECONDS, CENTURY_SECONDS)

    def act(self, simulator: Simulator) -> Any:
        moment = simulator.clock.moment() if self.set is None else zoned(self.set)
        simulator.clock.set(zoned(moment + timedelta(seconds=self.advance_seconds)))
        if self.stands is not None:
            (simulator.clock.stop if self.stands else simulator.clock.run)()
        return {"clock": simulator.clock.moment()}


class SetBudget(Action):
    """Of one user, or of all. What is not given stays."""

    user_id: int | None = None
    limit: int | None = None
    remaining: int | None = None
    reset_seconds: float | None = None

    def __post_init__(self) -> None:
        _within("limit", self.limit, 1, MOST_CALLS)
        _within("remaining", self.remaining, 0, MOST_CALLS)
        _within("reset_seconds", self.reset_seconds, 0, DAY_SECONDS)

    def act(self, simulator: Simulator) -> Any:
        chosen = list(simulator.world.users) if self.user_id is None else [user_of(simulator, self.user_id).user_id]
        for user_id in chosen:
            budget = simulator.budgets.of(user_id)
            if self.limit is not None:
                left = max(0, budget.limit - budget.used)
                budget.limit = self.limit
                budget.used = max(0, budget.limit - left)
            if self.remaining is not None:
                budget.limit = max(budget.limit, self.remaining)
                budget.used = budget.limit - self.remaining
            if self.reset_seconds is not None:
                budget.ends_at = simulator.clock.now() + self.reset_seconds
        return {"users": chosen}


class AddFault(Fault, kw_only=True):
    """Make calls go wrong; the fields are those of a fault."""

    def act(self, simulator: Simulator) -> Any:
        """Do it; the fault with its id."""
        return simulator.faults.add(self)


class ClearFaults(Action):
    """All of them, or one."""

    id: int | None = None

    def act(self, simulator: Simulator) -> Any:
        return {"cleared": simulator.faults.clear(self.id)}


class AddHold(Hold, kw_only=True):
    """Keep calls waiting; the fields are those of a hold."""

    def act(self, simulator: Simulator) -> Any:
        """Do it; its name."""
        simulator.holds.add(self)
        return {"name": self.name}


class Release(Action):
    """Let the calls of a hold go, and keep no more."""

    name: str

    def act(self, simulator: Simulator) -> Any:
        if self.name not in simulator.holds.gates:
            raise ValueError(f"name: there is no hold {self.name}; accepted: {_list(simulator.holds.gates)}")
        return {"released": simulator.holds.release(self.name)}


class BlockApp(Action):
    """Block the application: with the header `X-Blocked`, or with the page."""

    reason: str = BLOCKED
    style: BlockStyle = "header"

    def act(self, simulator: Simulator) -> Any:
        if not self.reason.isascii() or not self.reason.isprintable():
            raise ValueError("reason: accepted is printable ASCII, for it stands in a header")
        simulator.world.block = Block(self.reason, self.style, simulator.clock.now())
        return {"blocked": True}


class Unblock(Action):
    """Lift the block. One that is permanent needs `forgive`."""

    forgive: bool = False

    def act(self, simulator: Simulator) -> Any:
        block = simulator.world.block
        if block is not None and block.permanent and not self.forgive:
            raise ValueError(f"the block is permanent after {block.sins} calls made while blocked; accepted: forgive")
        simulator.world.block = None
        return {"blocked": False}


class Revoke(Action):
    """End all tokens of a user, as if they had taken their consent back."""

    user_id: int

    def act(self, simulator: Simulator) -> Any:
        return {"ended": simulator.tokens.revoke(user_of(simulator, self.user_id).user_id)}


class Expire(Action):
    """Let a user's access tokens run out now; the refresh tokens stay good."""

    user_id: int

    def act(self, simulator: Simulator) -> Any:
        return {"expired": simulator.tokens.expire(user_of(simulator, self.user_id).user_id)}


class Rotate(Action):
    """Refresh a user's tokens as somebody else would: the old ones are used up. Answers the new ones."""

    user_id: int

    def act(self, simulator: Simulator) -> Any:
        return {"grants": simulator.tokens.rotate(user_of(simulator, self.user_id).user_id)}


class IssueTokens(Action):
    """A pair of tokens without the pages."""

    user_id: int
    client_id: str = DEMO_APP
    scopes: list[str] = msgspec.field(default_factory=lambda: list(USUAL_SCOPES))

    def act(self, simulator: Simulator) -> Any:
        if self.client_id not in simulator.world.apps:
            raise ValueError(f"client_id: accepted are {_list(simulator.world.apps)}")
        for scope in self.scopes:
            if scope not in SCOPES:
                raise ValueError(f"scopes: {scope} is not a scope; accepted: {_list(sorted(SCOPES))}")
        return simulator.tokens.issue(user_of(simulator, self.user_id).user_id, self.client_id, self.scopes)


class SetPoints(Action):
    """Change a patrol's points as somebody at OSM's own pages would: to `points`, or by `add`."""

    section_id: int
    patrol_id: int
    points: int | None = None
    add: int = 0

    def act(self, simulator: Simulator) -> Any:
        section = section_of(simulator, self.section_id)
        patrol = section.patrol(self.patrol_id)
        if patrol is None:
            accepted = _list(patrol.patrol_id for patrol in section.patrols)
            raise ValueError(
                f"patrol_id: section {self.section_id} has no patrol {self.patrol_id}; accepted: {accepted}"
            )
        points = (patrol.points if self.points is None else self.points) + self.add
        _within("points", points, -MAX_POINTS, MAX_POINTS)
        patrol.points = points
        return {"points": patrol.points}


class StartTerm(Action):
    """A new term of a section, from today or `startdate`, for `days` or until `enddate`."""

    section_id: int
    name: str | None = None
    startdate: date | None = None
    enddate: date | None = None
    days: int = 90

    def __post_init__(self) -> None:
        _within("days", self.days, 0, 3650)

    def act(self, simulator: Simulator) -> Any:
        section = section_of(simulator, self.section_id)
        first = self.startdate or simulator.clock.today()
        last = self.enddate or first + timedelta(days=self.days)
        if last < first:
            raise ValueError("enddate: is before startdate")
        number = 51000 + simulator.world.next_serial()
        term = Term(number, self.name or term_name(first), first.isoformat(), last.isoformat())
        section.terms.append(term)
        return term


class EndTerm(Action):
    """The terms of a section that today is in ended yesterday; one that began today is gone."""

    section_id: int

    def act(self, simulator: Simulator) -> Any:
        section = section_of(simulator, self.section_id)
        today = simulator.clock.today()
        ended = [term for term in section.terms if term.startdate <= today.isoformat() <= term.enddate]
        for term in ended:
            term.enddate = (today - timedelta(days=1)).isoformat()
        section.terms = [term for term in section.terms if term.startdate <= term.enddate]
        return {"ended": [term.term_id for term in ended]}


class SetRights(Action):
    """What a user may do in a section; None is nothing."""

    user_id: int
    section_id: int
    level: Level | None = None

    def act(self, simulator: Simulator) -> Any:
        user, section = user_of(simulator, self.user_id), section_of(simulator, self.section_id)
        if self.level is None:
            user.rights.pop(section.section_id, None)
        else:
            user.rights[section.section_id] = rights(self.level)
        return {"sections": list(user.rights)}


class AddUser(Action):
    """Somebody more who can sign in; one with the same number is replaced. `write` and `read` are sections."""

    user_id: int
    full_name: str
    about: str = "Came later"
    write: list[int] = msgspec.field(default_factory=list)
    read: list[int] = msgspec.field(default_factory=list)

    def __post_init__(self) -> None:
        _within("user_id", self.user_id, 1, MOST_USERS)
        if not self.full_name.strip() or not (self.full_name + self.about).isprintable():
            raise ValueError("full_name and about: accepted is text that can be shown, and a name")

    def act(self, simulator: Simulator) -> Any:
        for section_id in (*self.write, *self.read):
            section_of(simulator, section_id)
        user = person(self.user_id, self.full_name, self.about, self.write, self.read)
        simulator.world.users[self.user_id] = user
        return {"user_id": user.user_id, "email": user.email}


class Configure(Action):
    """How a used refresh token is refused."""

    refresh_refusal: Refusal

    def act(self, simulator: Simulator) -> Any:
        simulator.world.refresh_refusal = self.refresh_refusal
        return {"refresh_refusal": self.refresh_refusal}


class RegisterApp(Action):
    """An application that may sign people in; one with the same id is replaced."""

    client_id: str
    client_secret: str
    redirect_uris: list[str]
    name: str | None = None

    def act(self, simulator: Simulator) -> Any:
        if not self.client_id or not self.redirect_uris:
            raise ValueError("client_id and redirect_uris must not be empty")
        app = App(self.client_id, self.client_secret, self.name or self.client_id, self.redirect_uris)
        simulator.world.apps[self.client_id] = app
        return {"client_id": self.client_id}


ACTIONS: dict[str, type[Action] | type[AddFault] | type[AddHold]] = {
    "app": RegisterApp,
    "block": BlockApp,
    "budget": SetBudget,
    "clear-faults": ClearFaults,
    "clock": SetClock,
    "end-term": EndTerm,
    "expire": Expire,
    "fault": AddFault,
    "hold": AddHold,
    "points": SetPoints,
    "release": Release,
    "reset": Reset,
    "revoke": Revoke,
    "rights": SetRights,
    "rotate": Rotate,
    "settings": Configure,
    "start-term": StartTerm,
    "tokens": IssueTokens,
    "unblock": Unblock,
    "user": AddUser,
}


def user_of(simulator: Simulator, user_id: int) -> User:
    """Raises ValueError."""
    if user_id not in simulator.world.users:
        raise ValueError(f"user_id: there is no user {user_id}; accepted: {_list(simulator.world.users)}")
    return simulator.world.users[user_id]


def section_of(simulator: Simulator, section_id: int) -> Section:
    """Raises ValueError."""
    if section_id not in simulator.world.sections:
        raise ValueError(f"section_id: there is no section {section_id}; accepted: {_list(simulator.world.sections)}")
    return simulator.world.sections[section_id]


def zoned(moment: datetime) -> datetime:
    """Raises ValueError for a time without a zone, for it could be meant in any, and for one far away."""
    if moment.tzinfo is None:
        raise ValueError("clock: accepted is a time with its zone, such as 2026-03-02T18:30:00Z")
    if moment.year not in YEARS:
        raise ValueError(f"clock: accepted are the years {YEARS[0]} to {YEARS[-1]}")
    return moment


def _within(name: str, value: float | None, least: int, most: int) -> None:
    if value is not None and not least <= value <= most:
        raise ValueError(f"{name}: accepted are {least} to {most}")


def _list(values: Any) -> str:
    return ", ".join(str(value) for value in values) or "none"
