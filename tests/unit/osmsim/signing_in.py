"""The way through the sign-in pages, as a browser goes it."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from carrick_osmsim.seed import DEMO_APP
from tests.osm import ROBIN, Answer, Osm

BACK = "http://localhost:8080/admin/callback"
ASKED = {
    "response_type": "code",
    "client_id": DEMO_APP,
    "redirect_uri": BACK,
    "scope": "section:member:read section:member:write",
    "state": "x&y=1",
}


async def ask(osm: Osm, **fields: Any) -> Answer:
    """Open the page that an application sends people to; a field that is None is left out."""
    asked = {name: value for name, value in {**ASKED, **fields}.items() if value is not None}
    return await osm.call("GET", f"/oauth/authorize?{urlencode(asked)}")


async def sign_in(osm: Osm, person: dict[str, Any], **fields: Any) -> Answer:
    """Send the form of that page."""
    return await osm.call("POST", "/oauth/authorize", form={**ASKED, **fields, **person})


async def decide(osm: Osm, page: Answer, decision: str) -> Answer:
    """Press a button of the consent page."""
    found = re.search(r'name="ticket" value="([^"]+)"', page.body.decode())
    assert found is not None, page.body
    return await osm.call("POST", "/oauth/authorize", form={"ticket": found[1], "decision": decision})


def sent_back(answer: Answer) -> dict[str, str]:
    """What the application is told in its address."""
    assert answer.status == 302, answer.body
    where = urlsplit(answer.headers["Location"])
    assert f"{where.scheme}://{where.netloc}{where.path}" == BACK
    return {name: values[0] for name, values in parse_qs(where.query).items()}


async def code_for(osm: Osm, **fields: Any) -> str:
    """All the way to a code."""
    page = await sign_in(osm, {"pick": ROBIN}, **fields)
    return sent_back(await decide(osm, page, "allow"))["code"]
