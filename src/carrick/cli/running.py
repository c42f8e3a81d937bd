"""Running a service: logs, signals, and a clean end."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable

from carrick.ops.collector import spare_the_collector
from carrick.ops.logs import configure_logs

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def run_until_stopped(service: Callable[[asyncio.Event], Awaitable[int]]) -> int:
    """Run the service until it ends or SIGTERM or Ctrl-C asks it to; a second signal ends it at once."""

    async def main() -> int:
        loop = asyncio.get_running_loop()
        stopping = asyncio.Event()

        def stop() -> None:
            stopping.set()
            for number in STOP_SIGNALS:
                loop.remove_signal_handler(number)

        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, stop)
        return await service(stopping)

    configure_logs()
    spare_the_collector()
    return asyncio.run(main())
