"""An endpoint that does what a file says (accept, reject, fail): `python -m tests.scenario.moody_cloud PORT FILE`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from aiohttp import web


def main() -> None:
    port, mood = int(sys.argv[1]), Path(sys.argv[2])

    async def batch(request: web.Request) -> web.Response:
        events = (await request.json())["events"]
        match await asyncio.to_thread(mood.read_text):
            case "accept":
                return web.json_response({"accepted": len(events), "duplicated": 0, "rejected": 0, "errors": []})
            case "reject":
                errors = [{"event_id": event["event_id"], "error": "no such device"} for event in events]
                return web.json_response({"accepted": 0, "duplicated": 0, "rejected": len(events), "errors": errors})
            case _:
                return web.json_response({"error": "out of order"}, status=500)

    app = web.Application()
    app.router.add_post("/batch", batch)
    web.run_app(app, host="127.0.0.1", port=port, print=None, access_log=None)


if __name__ == "__main__":
    main()
