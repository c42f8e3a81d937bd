"""The OSM simulator for tests: in this process or as one of its own, its control API, and raw answers to calls."""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Concatenate, ParamSpec
from urllib.parse import urlencode

from carrick_osmsim.server import serving
from carrick_osmsim.simulator import Simulator
from tests.ports import free_port
from tests.scenario.processes import Process

P = ParamSpec("P")
EVENING = datetime(2026, 3, 2, 18, 30, tzinfo=UTC)
"""Where the clock of an in-process simulator stands."""

ROBIN, HAZEL, JASPER, WILLOW, ASH, OLIVE, PERRY = range(100001, 100008)
SCOUTS, TERM, EAGLES, LIONS, WOLVES = 40104, 50402, 72699, 72700, 132322
"""Robin's section, its term of that evening, and its patrols."""


@dataclass(frozen=True)
class Answer:
    """What came back, byte by byte. `status` is 0 when nothing came; `whole`: the body had its full length."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    whole: bool

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Osm:
    """A simulator that is running somewhere."""

    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def call(
        self,
        method: str,
        target: str,
        *,
        token: str | None = None,
        form: Mapping[str, Any] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One request on a connection of its own; the target as it stands in the first line."""
        lines = {"Host": f"127.0.0.1:{self.port}", "Connection": "close", **(headers or {})}
        if token is not None:
            lines["Authorization"] = f"Bearer {token}"
        if form is not None:
            lines["Content-Type"] = "application/x-www-form-urlencoded"
            body = urlencode(form).encode()
        lines["Content-Length"] = str(len(body or b""))
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return await self._exchange(f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode() + (body or b""))

    async def _exchange(self, request: bytes) -> Answer:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(request)
            await writer.drain()
            return _answer(await reader.read())
        finally:
            writer.close()

    async def control(self, action: str, **fields: Any) -> Any:
        """One action of the control API; fails unless it is done."""
        answer = await self.try_control(action, **fields)
        assert answer.status == 200, answer.body
        return answer.json

    async def try_control(self, action: str, **fields: Any) -> Answer:
        """One action, done or refused."""
        return await self.call("POST", f"/control/{action}", body=json.dumps(fields).encode())

    async def state(self) -> Any:
        """What the simulator knows."""
        return (await self.call("GET", "/control/state")).json

    async def calls(self, **query: Any) -> list[dict[str, Any]]:
        """Its log: `after`, `finished`, `limit`."""
        answer = await self.call("GET", f"/control/calls?{urlencode(query)}")
        assert answer.status == 200, answer.body
        calls: list[dict[str, Any]] = answer.json["calls"]
        return calls

    async def reached(self, hold: str, count: int = 1) -> None:
        """Return when so many calls wait at the hold."""
        answer = await self.call("GET", f"/control/holds/{hold}?count={count}")
        assert answer.status == 200, answer.body

    async def token(self, user_id: int = ROBIN, **fields: Any) -> str:
        """An access token without the pages."""
        token: str = (await self.control("tokens", user_id=user_id, **fields))["access_token"]
        return token

    async def profile(self, token: str) -> Answer:
        return await self.call("GET", "/oauth/resource", token=token)

    async def read(self, token: str, section: object = SCOUTS, term: object = TERM, **query: Any) -> Answer:
        """The patrols of a section."""
        fields = {"action": "getPatrolsWithPeople", "sectionid": section, "termid": term, "include_no_patrol": "y"}
        return await self.call("GET", f"/ext/members/patrols/?{urlencode(fields | query)}", token=token)

    async def write(self, token: str, points: object, patrol: object = EAGLES, section: object = SCOUTS) -> Answer:
        """Set the points of a patrol."""
        query = urlencode({"action": "updatePatrolPoints", "sectionid": section})
        form = {"points": points, "patrolid": patrol}
        return await self.call("POST", f"/ext/members/patrols/?{query}", token=token, form=form)

    async def points(self, patrol: int = EAGLES, section: int = SCOUTS) -> int:
        """The points as the simulator knows them; no call of OSM."""
        sections = (await self.state())["sections"]
        patrols = next(one["patrols"] for one in sections if one["section_id"] == section)
        points: int = next(one["points"] for one in patrols if one["patrol_id"] == patrol)
        return points


@asynccontextmanager
async def simulated(state: Path | None = None, start: datetime | None = EVENING) -> AsyncIterator[Osm]:
    """A simulator in this process, on a free port."""
    async with serving(Simulator(start=start, state=state)) as port:
        yield Osm(port)


class OsmProcess(Process):
    """`python -m carrick_osmsim` on a port of its own."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.osm = Osm(free_port())
        super().__init__(["-m", "carrick_osmsim", "--port", str(self.osm.port), *arguments], folder)


def story(test: Callable[Concatenate[Osm, P], Awaitable[None]]) -> Callable[P, None]:
    """A test that gets a fresh simulator as its first argument."""

    @functools.wraps(test)
    def told(*arguments: P.args, **named: P.kwargs) -> None:
        async def main() -> None:
            async with simulated() as osm:
                await test(osm, *arguments, **named)

        asyncio.run(main())

    signature = inspect.signature(test)
    told.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])  # type: ignore[attr-defined]
    return told


def _answer(received: bytes) -> Answer:
    head, _, body = received.partition(b"\r\n\r\n")
    if not head:
        return Answer(0, {}, b"", whole=False)
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    length = int(headers.get("Content-Length", len(body)))
    return Answer(int(first.split(" ")[1]), headers, body, whole=len(body) == length)
