"""What can go wrong with a call to OSM.

OsmError
├── RateLimited        this user has asked too often; says until when
├── OutOfBudget        nothing was asked: what is left of the user's budget is kept for writes
├── ServiceBlocked     OSM has blocked the whole application; nothing leaves until a person clears it
├── AuthRevoked        the user must sign in again
├── Misconfigured      OSM does not know this application: OSM_CLIENT_ID, OSM_CLIENT_SECRET
├── Denied             OSM itself says no to this call of this user
│   └── SectionDenied  to reading that section: no word about points, nor about other sections
├── Unavailable        OSM failed, or somebody on the way answered in its place
├── TimedOut           no answer; says whether the request had left
└── BadData            an answer that makes no sense
"""

from __future__ import annotations

from datetime import datetime

from carrick_scoreboard.osm.classify import Weight


class OsmError(Exception):
    """Base of everything that can go wrong with a call to OSM."""

    in_doubt: bool = False
    """Whether a write that ended so may have been carried out nevertheless."""
    http_status: int | None = None
    """With which status the answer came; None where there was none."""


class RateLimited(OsmError):
    """Wait until then; asking earlier is refused here already."""

    def __init__(self, until: datetime) -> None:
        self.until = until
        super().__init__(f"OSM limits this user until {until.isoformat(timespec='seconds')}")


class OutOfBudget(OsmError):
    """Wait until the budget is renewed; what is left is kept for writes."""

    def __init__(self, until: datetime | None) -> None:
        self.until = until
        super().__init__("what is left of this user's OSM budget is kept for points")


class ServiceBlocked(OsmError):
    """Find out why with OSM, then `carrick osm unblock --reason …`."""

    def __init__(self, *, in_doubt: bool = False) -> None:
        self.in_doubt = in_doubt
        super().__init__("OSM has blocked this application; nothing is sent until `carrick osm unblock`")


class AuthRevoked(OsmError):
    """The user must sign in again."""

    def __init__(self) -> None:
        super().__init__("OSM no longer accepts this sign-in")


class Misconfigured(OsmError):
    """Correct OSM_CLIENT_ID and OSM_CLIENT_SECRET."""

    def __init__(self, said: str) -> None:
        super().__init__(f"OSM does not know this application ({said}): check OSM_CLIENT_ID and OSM_CLIENT_SECRET")


class Denied(OsmError):
    """OSM says why. Only of a write may it be final: then the same write will be refused again."""

    def __init__(self, code: str, message: str, weight: Weight) -> None:
        self.code = code
        self.weight = weight
        self.in_doubt = weight != "final"
        super().__init__(message)


class SectionDenied(Denied):
    """The user does not see that section, or OSM will not have it read for them."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message, "held")


class Unavailable(OsmError):
    """Try again later; not before so many `seconds`, where that was said."""

    in_doubt = True

    def __init__(self, code: str, message: str, seconds: int | None = None) -> None:
        self.code = code
        self.seconds = seconds
        super().__init__(message)


class TimedOut(OsmError):
    """If the request had left, it may have been carried out: compare before doing it again."""

    def __init__(self, why: str, *, sent: bool) -> None:
        self.sent = self.in_doubt = sent
        super().__init__(f"OSM did not answer: {why}" + ("; the request had left" if sent else ""))


class BadData(OsmError):
    """OSM has changed, or something between has changed its answer."""

    in_doubt = True
