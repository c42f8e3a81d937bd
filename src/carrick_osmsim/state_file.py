"""The world in a file, so that a demo goes on where it stopped."""

from __future__ import annotations

from pathlib import Path

import msgspec

from carrick_osmsim.world import VERSION, World


class StateError(Exception):
    """The state file cannot be used: give another path, or remove the file to begin anew."""


def read_state(path: Path) -> World | None:
    """What the file holds; None when there is no file. Raises StateError."""
    try:
        data = path.read_bytes()
        world = msgspec.json.decode(data, type=World)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StateError(f"cannot read {path}: {error.strerror or error}") from None
    except msgspec.DecodeError as error:
        raise StateError(f"{path} is no state of the simulator ({error}); remove it to begin anew") from None
    if world.version != VERSION:
        raise StateError(f"{path} is of version {world.version}, this is {VERSION}; remove it to begin anew")
    return world


def write_state(path: Path, world: World) -> None:
    """Replace the file in one step: it is never half written. Raises StateError."""
    new = path.with_name(f"{path.name}.new")
    try:
        new.write_bytes(msgspec.json.encode(world))
        new.replace(path)
    except OSError as error:
        raise StateError(f"cannot write {path}: {error.strerror or error}") from None
