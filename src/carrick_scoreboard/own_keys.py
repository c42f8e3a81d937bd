"""The keys of an embedded database, in a file beside it: one `ID:BASE64` a line, the first one seals."""

from __future__ import annotations

import fcntl
import logging
import os
import secrets
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from carrick.errors import SettingsError
from carrick_scoreboard.sealing import Key, KeyRing, key_text, keys_in, new_key

log = logging.getLogger("carrick.scoreboard.keys")

T = TypeVar("T")

KEPT = 2
"""How many keys a rotation leaves: the new one, and the one before it for whoever was sealing at that moment."""


class OwnKeys(KeyRing):
    """The keys in that file, made when it is not there; a rotation elsewhere is noticed. Raises SettingsError."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, ...] = ()
        if not path.exists():
            _guarded(path, lambda: _write(path, dict([new_key()]), replace=False))
        super().__init__(self._read())

    @contextmanager
    def rotating(self) -> Iterator[None]:
        """Inside, a new key seals; seal everything again. Afterwards the keys before the former one are forgotten.

        One rotation at a time. Whatever fails inside, all keys stay in the file: nothing is lost, do it again.
        """
        with _folder(self._path.parent) as descriptor:
            fcntl.flock(descriptor, fcntl.LOCK_EX)  # ends with the descriptor, or with the process
            keys = dict([new_key()]) | self._read()
            _guarded(self._path, lambda: _write(self._path, keys, replace=True))
            yield
            kept = dict(list(keys.items())[:KEPT])
            _guarded(self._path, lambda: _write(self._path, kept, replace=True))

    def _known(self) -> Mapping[str, Key]:
        """As the file says now. One that has become unusable changes nothing: what was read is still good."""
        try:
            if _state(self._path) != self._seen:
                self._keys = {name: Key(key) for name, key in self._read().items()}
        except SettingsError as error:
            log.error("keys.file_unusable", extra={"error": str(error)})
        return self._keys

    def _read(self) -> dict[str, bytes]:
        """What the file holds now."""

        def read() -> dict[str, bytes]:
            self._seen = _state(self._path)
            keys = keys_in(self._path.read_text(encoding="ascii").split())
            if not keys:
                raise ValueError("there is no key in it")
            return keys

        return _guarded(self._path, read)


def _state(path: Path) -> tuple[int, ...]:
    """What changes whenever the file is replaced. Raises SettingsError when others than its owner may read it."""
    found = _guarded(path, path.stat)
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise SettingsError(f"{path} may be read by others; try: chmod 600 {path}")
    return found.st_mtime_ns, found.st_ino, found.st_size


def _guarded(path: Path, operation: Callable[[], T]) -> T:
    try:
        return operation()
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else "it is damaged"
        raise SettingsError(f"the key file {path} cannot be used: {said}; or set CARRICK_SECRET_KEYS") from None


def _write(path: Path, keys: Mapping[str, bytes], *, replace: bool) -> None:
    """The file, whole from the first moment and after a crash. Without `replace` the first of many to come wins."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write("".join(f"{key_text(name, key)}\n" for name, key in keys.items()))
            file.flush()
            os.fsync(file.fileno())
        if replace:
            draft.replace(path)
        else:
            with suppress(FileExistsError):
                os.link(draft, path)
        with _folder(path.parent) as folder:
            os.fsync(folder)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def _folder(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
