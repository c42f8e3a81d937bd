"""The command `carrick-osmsim`: parse, start, print where it is."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from carrick_osmsim.actions import zoned
from carrick_osmsim.server import serving
from carrick_osmsim.simulator import Simulator
from carrick_osmsim.state_file import StateError

FAILED = 1


def main() -> None:
    """The entry point of the installed command."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Serve until a signal comes; its exit code. An expected failure is one line on stderr."""
    asked = _parser().parse_args(arguments)
    try:
        simulator = Simulator(start=asked.clock, state=asked.state, redirect_uris=asked.redirect_uri)
        asyncio.run(_serve(simulator, asked.host, asked.port))
    except StateError as error:
        return _fail(str(error))
    except OSError as error:
        return _fail(f"cannot listen on {asked.host}, port {asked.port}: {error.strerror or error}; choose another")
    return 0


async def _serve(simulator: Simulator, host: str, port: int) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with serving(simulator, host, port) as got:
        shown = f"[{host}]" if ":" in host else host
        sys.stdout.write(f"Online Scout Manager, simulated: http://{shown}:{got}/\n")
        sys.stdout.flush()
        await stopped.wait()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="carrick-osmsim", description="A simulator of Online Scout Manager, with a control panel at its address."
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s: this machine only)")
    parser.add_argument("--port", type=_port, default=8090, help="port to listen on; 0 takes a free one (%(default)s)")
    parser.add_argument("--state", type=Path, metavar="FILE", help="keep its data in this file across restarts")
    parser.add_argument("--clock", type=_moment, metavar="TIME", help="begin with a clock that stands still there")
    parser.add_argument(
        "--redirect-uri",
        action="append",
        default=[],
        metavar="URI",
        help="also let the demo's application send people back there (may be repeated)",
    )
    return parser


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text} is no port; accepted are 0 to 65535")
    return int(text)


def _moment(text: str) -> datetime:
    try:
        return zoned(datetime.fromisoformat(text))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text} is no time; accepted is a time with its zone, such as 2026-03-02T18:30:00Z"
        ) from None


def _fail(message: str) -> int:
    sys.stderr.write(f"carrick-osmsim: {message}\n")
    return FAILED
