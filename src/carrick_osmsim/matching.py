"""Which calls a fault or a hold is for."""

from __future__ import annotations

from typing import Literal

import msgspec

Endpoint = Literal["authorize", "token", "resource", "patrols", "points", "other"]
"""The calls of OSM by name: `patrols` reads, `points` writes."""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a call when it arrives. The ids are as they were sent."""

    endpoint: Endpoint
    user_id: int | None = None
    section_id: str = ""
    patrol_id: str = ""


class Matching(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The calls of this user, endpoint, section and patrol; what is not given matches all.

    The first `skip` of them pass. `times` is how many it is for after that; None is until it is cleared.
    """

    user_id: int | None = None
    endpoint: Endpoint | None = None
    section_id: int | None = None
    patrol_id: int | None = None
    times: int | None = 1
    skip: int = 0

    def __post_init__(self) -> None:
        if self.times is not None and self.times < 1:
            raise ValueError("times: accepted are 1 or more, or null for all until it is cleared")
        if self.skip < 0:
            raise ValueError("skip: accepted are 0 or more")

    def fits(self, target: Target) -> bool:
        """Whether the call is one of those, the skipped ones included."""
        return (
            self.user_id in (None, target.user_id)
            and self.endpoint in (None, target.endpoint)
            and (self.section_id is None or str(self.section_id) == target.section_id)
            and (self.patrol_id is None or str(self.patrol_id) == target.patrol_id)
        )

    def take(self) -> bool:
        """Count one call that fits; whether it is for this one."""
        if self.skip > 0:
            self.skip -= 1
            return False
        if self.times is not None:
            self.times -= 1
        return True

    @property
    def spent(self) -> bool:
        """Whether no call is left for it."""
        return self.times == 0
