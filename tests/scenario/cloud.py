"""A cloud endpoint as a process of its own: `python -m tests.scenario.cloud PORT FILE`.

It appends a line per event to the file before it answers, so that what it has taken outlives a kill, and it knows its
events again afterwards.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

from aiohttp import web


class Taken(NamedTuple):
    """One event as it came: which one, from which process of which forwarder, taken by which process of the cloud."""

    event_id: str
    edge_id: str
    cloud: int
    group: str
    number: int


def read_log(path: Path) -> list[Taken]:
    """Everything that was taken, in order; a line that a kill cut off does not count."""
    if not path.exists():
        return []
    lines = path.read_text().split("\n")[:-1]
    return [Taken(*json.loads(line)) for line in lines if line]


def main() -> None:
    port, path = int(sys.argv[1]), Path(sys.argv[2])
    known = {taken.event_id for taken in read_log(path)}
    log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(log, b"\n")  # a kill may have cut the last line off

    async def batch(request: web.Request) -> web.Response:
        body: dict[str, Any] = await request.json()
        events = body["events"]
        assert {event["tenant_id"] for event in events} == {body["tenant_id"]}
        duplicated = sum(event["event_id"] in known for event in events)
        rows = [
            [event["event_id"], body["edge_id"], os.getpid(), event["payload"].get("group", ""), event["payload"]["n"]]
            for event in events
        ]
        os.write(log, "".join(json.dumps(row) + "\n" for row in rows).encode())
        known.update(event["event_id"] for event in events)
        accepted = len(events) - duplicated
        return web.json_response({"accepted": accepted, "duplicated": duplicated, "rejected": 0, "errors": []})

    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_post("/batch", batch)
    web.run_app(app, host="127.0.0.1", port=port, print=None, access_log=None)


if __name__ == "__main__":
    main()
