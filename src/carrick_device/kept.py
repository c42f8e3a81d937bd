"""What a device keeps over a restart: its token and the last scores, in files that only their owner can read."""

from __future__ import annotations

import logging
import os
import stat
import tempfile
from pathlib import Path
from typing import TypeVar

import msgspec

from carrick_device.answers import Scores, decoded
from carrick_device.errors import DeviceError

log = logging.getLogger("carrick.device")

MAX_FILE_BYTES = 1024 * 1024
T = TypeVar("T")

OTHERS = stat.S_IRWXG | stat.S_IRWXO


class KeptToken(msgspec.Struct, frozen=True):
    """A token, and the server and client it was given to: it is never sent anywhere else."""

    server: str
    client_id: str
    access_token: str

    def __repr__(self) -> str:
        return f"KeptToken({self.server!r}, {self.client_id!r}, ***)"


class KeptScores(msgspec.Struct, frozen=True):
    """The last scores of a server."""

    server: str
    scores: Scores


class Kept:
    """The two files. Reading never fails: a file that makes no sense is as good as none, with a warning."""

    def __init__(self, token_file: Path, server: str, client_id: str) -> None:
        self._token_file = token_file
        self._scores_file = token_file.with_name(f"{token_file.name}.scores")
        self._server = server
        self._client_id = client_id
        self._saved: Scores | None = None

    def prepare(self) -> None:
        """Make the folder, for its owner only. Raises DeviceError when nothing can be kept there."""
        folder = self._token_file.parent
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write(self._token_file.with_name(f"{self._token_file.name}.probe"), b"").unlink()
        except OSError as error:
            raise DeviceError(
                f"cannot keep the token in {folder}: {error.strerror or error}; give another --token-file"
            ) from error
        if self._token_file.is_dir():
            raise DeviceError(f"{self._token_file} is a folder; --token-file takes the path of a file")

    def token(self) -> str | None:
        """The token for this server and client, if there is one."""
        kept = _read(self._token_file, KeptToken)
        if kept is None or (kept.server, kept.client_id) != (self._server, self._client_id):
            return None
        return kept.access_token

    def save_token(self, token: str) -> None:
        """Keep the token. Where that fails it is told: the device works on, until it is started again."""
        self._save(self._token_file, KeptToken(self._server, self._client_id, token))

    def scores(self) -> Scores | None:
        """The last scores of this server, if there are some."""
        kept = _read(self._scores_file, KeptScores)
        if kept is None or kept.server != self._server:
            return None
        self._saved = kept.scores
        return kept.scores

    def save_scores(self, scores: Scores) -> None:
        """Keep the scores, when they are others than those kept: memory cards wear out."""
        if self._saved is None or _shown(self._saved) != _shown(scores):
            self._save(self._scores_file, KeptScores(self._server, scores))
            self._saved = scores

    def forget(self) -> None:
        """The token is no longer good, and the scores are not for whoever signs in next."""
        self._saved = None
        for file in (self._token_file, self._scores_file):
            try:
                file.unlink(missing_ok=True)
            except OSError as error:
                log.warning("cannot remove %s: %s", file, error.strerror or error)

    def _save(self, file: Path, kept: KeptToken | KeptScores) -> None:
        try:
            _write(file, msgspec.json.encode(kept))
        except OSError as error:
            log.warning("cannot write %s: %s; a restart will not know it", file, error.strerror or error)


def _shown(scores: Scores) -> tuple[object, ...]:
    return scores.patrols, scores.settings


def _write(file: Path, content: bytes) -> Path:
    """Write the whole file or nothing, readable by its owner alone."""
    descriptor, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)  # made with mode 0600
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(file)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    return file


def _read(file: Path, kind: type[T]) -> T | None:
    try:
        with file.open("rb") as stream:
            _mend(file, stream.fileno())
            found = decoded(stream.read(MAX_FILE_BYTES), kind)
    except FileNotFoundError:
        return None
    except OSError as error:
        log.warning("cannot read %s: %s; it is ignored", file, error.strerror or error)
        return None
    if found is None:
        log.warning("%s is damaged; it is ignored", file)
    return found


def _mend(file: Path, descriptor: int) -> None:
    """Take the rights of others away."""
    mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
    if mode & OTHERS:
        os.fchmod(descriptor, 0o600)
        log.warning("%s could be read by others (mode %04o); it is closed to them now", file, mode)
