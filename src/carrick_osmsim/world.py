"""What the simulated OSM knows: people, sections, applications, tokens. Plain values, kept in the state file."""

from __future__ import annotations

from typing import Literal

import msgspec

from carrick_osmsim.clock import ClockState

VERSION = 1
"""Of the state file; a file of another version is refused."""

Level = Literal["read", "write"]
"""What a user may do in one area of a section; write includes read."""

Refusal = Literal["invalid_request", "invalid_grant", "alternate"]
"""How a used refresh token is refused: 401 invalid_request, 400 invalid_grant, or one after the other."""


BlockStyle = Literal["header", "page"]
"""How a blocked application is told: by the header `X-Blocked`, or by an HTML page with HTTP 200."""


class Term(msgspec.Struct):
    """Days as YYYY-MM-DD; both ends belong to the term."""

    term_id: int
    name: str
    startdate: str
    enddate: str


class Member(msgspec.Struct):
    """A young person. `patrol_id` 0 is nobody's; `role` is 2 for a patrol's leader, 1 for the assistant, else 0."""

    scout_id: int
    firstname: str
    lastname: str
    patrol_id: int
    role: int
    years: int
    months: int


class Patrol(msgspec.Struct):
    """A patrol, six or lodge. Its id is unique in its section only."""

    patrol_id: int
    name: str
    points: int = 0


class Section(msgspec.Struct):
    """A section of a group."""

    section_id: int
    section_name: str
    section_type: str
    group_id: int
    group_name: str
    terms: list[Term]
    patrols: list[Patrol]
    members: list[Member]

    def patrol(self, patrol_id: int) -> Patrol | None:
        """The patrol of that id, if it is here."""
        return next((patrol for patrol in self.patrols if patrol.patrol_id == patrol_id), None)


class User(msgspec.Struct):
    """Someone who can sign in. `rights` are by section id, then by area (`member`, `event` …)."""

    user_id: int
    full_name: str
    email: str
    password: str
    about: str
    rights: dict[int, dict[str, Level]]


class App(msgspec.Struct):
    """An application that may ask for tokens. Redirect addresses are compared as they are, to the letter."""

    client_id: str
    client_secret: str
    name: str
    redirect_uris: list[str]


class Code(msgspec.Struct):
    """An authorisation code, good once and until `expires_at` (Unix seconds)."""

    code: str
    client_id: str
    redirect_uri: str
    user_id: int
    scopes: list[str]
    expires_at: float
    challenge: str | None = None
    challenge_method: str = "plain"
    used: bool = False


class Grant(msgspec.Struct):
    """A pair of tokens. A refresh ends the pair and makes another."""

    access_token: str
    refresh_token: str
    user_id: int
    client_id: str
    scopes: list[str]
    expires_at: float
    ended: bool = False


class Budget(msgspec.Struct):
    """How many calls a user has made in the hour that ends at `ends_at` (Unix seconds), and how many are allowed.

    `over` counts the calls made when nothing was left.
    """

    limit: int
    used: int
    ends_at: float
    over: int = 0


class Block(msgspec.Struct):
    """The application is blocked.

    `told` once an answer has said so; each call after that is counted in `sins` and makes the block permanent.
    """

    reason: str
    style: BlockStyle
    since: float
    told: bool = False
    permanent: bool = False
    sins: int = 0


class World(msgspec.Struct):
    """All of it. `serial` numbers whatever has to be new: tokens, terms."""

    users: dict[int, User]
    sections: dict[int, Section]
    apps: dict[str, App]
    clock: ClockState
    version: int = VERSION
    serial: int = 0
    codes: dict[str, Code] = {}
    grants: list[Grant] = []
    budgets: dict[int, Budget] = {}
    block: Block | None = None
    refresh_refusal: Refusal = "alternate"
    refusals: int = 0

    def next_serial(self) -> int:
        """A number that was not given out before."""
        self.serial += 1
        return self.serial
