"""GET /api/v1/patrols against the simulator: what devices get when all is well, and when it is not."""

from __future__ import annotations

from tests.hall import Hall, in_hall
from tests.osm import ROBIN, SCOUTS

SCORES = {"Eagles": 32, "Lions": 30, "Wolves": 47}
LANTERNS = 40301


@in_hall
async def test_a_device_gets_the_scores_of_its_section_by_name(hall: Hall) -> None:
    async with hall.replica() as one:
        one.sections.set_colors(SCOUTS, {"72699": "red"}, osm_user_id=ROBIN)
        one.pending["72699"] = 5
        answer = await one.get(await hall.device(one))
    assert (answer.status, answer.headers["X-Cache"]) == (200, "MISS")
    assert answer.json == {
        "patrols": [
            {"id": "72699", "name": "Eagles", "score": 32, "pendingDelta": 5, "hasPending": True},
            {"id": "72700", "name": "Lions", "score": 30, "pendingDelta": 0, "hasPending": False},
            {"id": "132322", "name": "Wolves", "score": 47, "pendingDelta": 0, "hasPending": False},
        ],
        "from_cache": False,
        "cached_at": "2026-03-02T18:30:00Z",
        "cache_expires_at": "2026-03-02T18:35:00Z",
        "rate_limit_state": "NONE",
        "stale": False,
        "settings": {"patrolColors": {"72699": "red"}},
        "websocket": {"requested": True},
    }


@in_hall
async def test_fresh_scores_are_served_without_asking_osm_until_they_expire(hall: Hall) -> None:
    async with hall.replica() as one:
        token = await hall.device(one)
        await one.get(token)
        await hall.advance(299)
        again = await one.get(token)
        assert len(await hall.calls("patrols")) == 1
        await hall.advance(1)
        later = await one.get(token)
        assert len(await hall.calls("patrols")) == 2
    assert (again.headers["X-Cache"], again.json["from_cache"], again.json["stale"]) == ("HIT", True, False)
    assert again.json["cached_at"] == "2026-03-02T18:30:00Z"
    assert (later.headers["X-Cache"], later.json["cached_at"]) == ("MISS", "2026-03-02T18:35:00Z")
