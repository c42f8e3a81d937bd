"""What each endpoint of OSM does. No waiting here: a call's work is done in one step, so two calls never mix."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from carrick_osmsim import pages
from carrick_osmsim.faults import as_429, unauthorized
from carrick_osmsim.matching import Endpoint, Target
from carrick_osmsim.patrols import read_patrols, section_of, write_points
from carrick_osmsim.profile import may, profile
from carrick_osmsim.reply import Reply, as_html, as_json
from carrick_osmsim.simulator import Simulator
from carrick_osmsim.world import Grant

PATROLS = "/ext/members/patrols/"
ACTIONS: dict[tuple[str, str | None], Endpoint] = {
    ("GET", "getPatrolsWithPeople"): "patrols",
    ("POST", "updatePatrolPoints"): "points",
}
PATHS: dict[tuple[str, str], Endpoint] = {
    ("GET", "/oauth/authorize"): "authorize",
    ("POST", "/oauth/authorize"): "authorize",
    ("POST", "/oauth/token"): "token",
    ("GET", "/oauth/resource"): "resource",
}


class Visit(msgspec.Struct, frozen=True, kw_only=True):
    """One call as it came in. `grant` is None without a good token; `allowed` is False when the budget is spent.

    `problem` is the answer to a body that cannot be read.
    """

    endpoint: Endpoint
    method: str
    query: Mapping[str, str]
    form: Mapping[str, str]
    grant: Grant | None
    user_id: int | None
    allowed: bool
    problem: Reply | None = None

    @property
    def target(self) -> Target:
        """What faults and holds look at."""
        return Target(
            endpoint=self.endpoint,
            user_id=self.user_id,
            section_id=self.query.get("sectionid", ""),
            patrol_id=self.form.get("patrolid", ""),
        )


def endpoint_of(method: str, path: str, action: str | None) -> Endpoint:
    """Which call it is."""
    if path == PATROLS:
        return ACTIONS.get((method, action), "other")
    return PATHS.get((method, path), "other")


def work(simulator: Simulator, visit: Visit) -> Reply:
    """Do it; the right answer."""
    if visit.problem is not None:
        return visit.problem
    match visit.endpoint:
        case "authorize":
            return _authorize(simulator, visit)
        case "token":
            return simulator.tokens.answer(visit.form)
        case "resource" | "patrols" | "points":
            return _with_token(simulator, visit)
        case "other":
            return as_html(pages.server_error(404), 404, effect="refused: OSM has no such call")


def _authorize(simulator: Simulator, visit: Visit) -> Reply:
    if visit.method == "GET":
        return simulator.authorize.show(visit.query)
    return simulator.authorize.submit(visit.form)


def _with_token(simulator: Simulator, visit: Visit) -> Reply:
    if visit.grant is None:
        return unauthorized("Access token is missing, has expired or has been revoked")
    if not visit.allowed:
        return as_429(simulator.budgets.reset_seconds(visit.grant.user_id))
    if visit.endpoint == "resource":
        return profile(simulator.world, visit.grant)
    return _patrols(simulator, visit, visit.grant)


def _patrols(simulator: Simulator, visit: Visit, grant: Grant) -> Reply:
    """OSM answers 200 to those who may not, and says so in `error` or in `err`."""
    user = simulator.world.users[grant.user_id]
    section = section_of(simulator.world, visit.query.get("sectionid"))
    writes = visit.endpoint == "points"
    if section is None or not may(user, grant, section, "write" if writes else "read"):
        said = "You do not have permission to do this in this section."
        effect = f"refused: no right to {'write' if writes else 'read'} section {visit.query.get('sectionid')!r}"
        return as_json({"err" if writes else "error": said}, effect=effect)
    return write_points(section, visit.form) if writes else read_patrols(section, visit.query)
