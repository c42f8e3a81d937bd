"""Who is at the keyboard: written beside what they do."""

from __future__ import annotations

import getpass
import socket

LONGEST = 200


def actor() -> str:
    """The user of the operating system and the machine, as in `ann@desk`."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container may run under a number that has no name
        user = "unknown"
    named = f"{user}@{socket.gethostname()}"
    return named.encode(errors="replace").decode()[:LONGEST]
