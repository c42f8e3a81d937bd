"""The `carrick` command. One module per command group: parse, call wiring, print."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError

from carrick import __version__
from carrick.cli import (
    clients,
    completion,
    contacts,
    demo,
    dlq,
    doctor,
    drain,
    explain,
    forward,
    gate,
    ingest,
    keys,
    migrate,
    osm,
    prune,
    scoreboard,
    status,
)
from carrick.errors import CarrickError

FAILED, BAD_USAGE, INTERRUPTED = 1, 2, 130

app = App(
    name="carrick",
    help="Ties your database to systems you do not control: an outbox that holds under every crash.",
    help_epilogue="Settings come from the environment and from a .env file; see docs/reference/configuration.md.",
    help_format="plaintext",
    version=__version__,
    suppress_keyboard_interrupt=False,
)
app.command(migrate.migrate)
app.command(demo.demo)
app.command(scoreboard.scoreboard)
app.command(forward.forward)
app.command(ingest.ingest)
app.command(drain.drain)
app.command(status.status)
app.command(explain.explain)
app.command(doctor.doctor)
app.command(dlq.app)
app.command(gate.app)
app.command(prune.prune)
app.command(contacts.app)
app.command(osm.app)
app.command(clients.app)
app.command(keys.app)
app.command(completion.completion_of(lambda shell: app.generate_completion(shell=shell)))


def main() -> None:
    """The entry point of the installed command."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command; its exit code. An expected failure is one line on stderr, never a stack trace."""
    try:
        code = app(list(arguments), exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
    except CycloptsError as error:
        return _fail(f"{error} Try: carrick --help", BAD_USAGE)
    except CarrickError as error:
        return _fail(str(error), FAILED)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return _reader_gone()
    return code if isinstance(code, int) else 0


def _fail(message: str, code: int) -> int:
    sys.stderr.write(f"carrick: {' '.join(message.split())}\n")
    return code


def _reader_gone() -> int:
    """Whoever read our output has stopped (`carrick … | head`): leave quietly; the interpreter must not flush again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FAILED
