"""The command `carrick-device`: parse, put the parts together, run until told to stop."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, CycloptsError, Parameter

from carrick_device.client import Server, is_open_to_listeners
from carrick_device.clock import Clock, RealClock
from carrick_device.device import Device
from carrick_device.errors import DeviceError
from carrick_device.kept import Kept
from carrick_device.screen import Display
from carrick_device.stage import Stage

log = logging.getLogger("carrick.device")

FAILED, BAD_USAGE, INTERRUPTED = 1, 2, 130
CLIENT_ID = "carrick-device"
MAX_CLIENT_ID = 255

Flag = Annotated[bool, Parameter(negative="", show_default=False)]

app = App(
    name="carrick-device",
    help_epilogue="Guide: docs/how-to/device.md",
    help_format="plaintext",
    version=lambda: version("carrick"),
    suppress_keyboard_interrupt=False,
)


def main() -> None:
    """The entry point of the installed command."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run it; the exit code. An expected failure is one line on stderr, never a stack trace."""
    try:
        code = app(list(arguments), exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
    except CycloptsError as error:
        return _fail(f"{error} Try: carrick-device --help", BAD_USAGE)
    except DeviceError as error:
        return _fail(str(error), FAILED)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    return code if isinstance(code, int) else 0


@app.default
def device(
    *,
    server: str,
    client_id: str = CLIENT_ID,
    token_file: Path | None = None,
    display: Literal["terminal", "matrix", "image"] = "terminal",
    image_out: Path | None = None,
    led: Annotated[tuple[str, ...], Parameter(negative="", show_default=False)] = (),
    once: Flag = False,
    verbose: Flag = False,
) -> int:
    """Show the scores of patrols, as a scoreboard server tells them, until Ctrl-C.

    The first time it shows a code: a leader confirms it with a phone and chooses the section. From then on it shows the
    scores, by itself also after a restart. A red dot marks points on their way, a grey one scores that are old.

    Parameters
    ----------
    server
        The address of the scoreboard, such as https://scores.example.org.
    client_id
        How the server knows this kind of device; its operator says which.
    token_file
        Where to keep the token; the last scores lie beside it. Else ~/.local/state/carrick-device/token.json.
    display
        terminal; matrix, of 64 by 32 LEDs on a Raspberry Pi; or image, the picture of such a matrix in a file.
    image_out
        With --display image: the PNG file to write.
    led
        With --display matrix: an option of its library, such as hardware_mapping=adafruit-hat. May be repeated.
    once
        Show the scores once and end; exit code 1 when there are none to be had.
    verbose
        Also tell on stderr what goes on.
    """
    _tell_on_stderr(logging.INFO if verbose else logging.WARNING)
    if not 1 <= len(client_id) <= MAX_CLIENT_ID or not client_id.isprintable():
        raise DeviceError(f"--client-id takes 1 to {MAX_CLIENT_ID} characters without control characters")
    at = Server(server, client_id)
    if is_open_to_listeners(at.url):
        log.warning("%s is not encrypted: others on the network can read what this device is sent", at.url)
    kept = Kept(token_file or _default_file(), at.url, client_id)
    kept.prepare()
    return asyncio.run(_run(at, kept, _display(display, image_out, led, once=once), once=once))


async def _run(server: Server, kept: Kept, display: Display, *, once: bool, clock: Clock | None = None) -> int:
    """Run until it is done or a signal asks it to stop; the exit code."""
    clock = clock or RealClock()
    stage = Stage(display, clock)
    shown = Device(server, kept, stage, clock)
    work = asyncio.create_task(_once(shown) if once else _forever(shown))
    pages = asyncio.create_task(stage.turn_pages())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, work.cancel)
    try:
        done, _ = await asyncio.wait([work, pages], return_when=asyncio.FIRST_COMPLETED)
        return 0 if work.cancelled() else done.pop().result() or 0
    finally:
        work.cancel()
        pages.cancel()
        await asyncio.wait([work, pages])
        display.close()
        await server.close()


async def _once(device: Device) -> int:
    why = await device.run_once()
    return 0 if why is None else _fail(why, FAILED)


async def _forever(device: Device) -> int:
    await device.run()
    return 0


def _display(kind: str, image_out: Path | None, led: Sequence[str], *, once: bool) -> Display:
    """The display that was asked for. What it needs is imported only then."""
    if (kind == "image") != (image_out is not None):
        raise CycloptsError(msg="--display image and --image-out FILE go together.")
    if led and kind != "matrix":
        raise CycloptsError(msg="--led is for --display matrix.")
    try:
        if image_out is not None:
            from carrick_device.displays.image import ImageDisplay

            return ImageDisplay(image_out, all_pages=once)
        if kind == "matrix":
            from carrick_device.displays.matrix import MatrixDisplay

            return MatrixDisplay(led)
        from carrick_device.displays.terminal import TerminalDisplay

        return TerminalDisplay()
    except ModuleNotFoundError as error:
        raise DeviceError(f"{error.name} is not installed; try: pip install 'carrick[device]'") from error


def _default_file() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "carrick-device" / "token.json"


class _Stderr(logging.Handler):
    """Writes to whatever stderr is at that moment: a live table puts itself between."""

    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(f"carrick-device: {record.getMessage()}\n")


def _tell_on_stderr(level: int) -> None:
    log.handlers = [_Stderr()]
    log.setLevel(level)


def _fail(message: str, code: int) -> int:
    sys.stderr.write(f"carrick-device: {' '.join(message.split())}\n")
    return code
