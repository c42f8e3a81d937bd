"""A worker that can be stopped for longer than its lease and woken again: a real process, stopped by a real signal.

The test holds its end of two pipes: it writes down what the worker shall do next, the worker answers with what came of
it. Nothing depends on time: the clock of the database is shifted while the worker is stopped.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any, Self
from uuid import UUID

from carrick.entry import Outcome, OutcomeKind
from carrick.outbox.opening import open_store
from carrick.outbox.store import Store

WRITES = ("renew", "note", *(f"finish {kind}" for kind in OutcomeKind), "finish_all", "release")
"""Every write after a claim."""


class Zombie:
    """A worker in a process of its own that has claimed a batch. Leave the context to end it."""

    def __init__(self, url: str, channel: str, *, lease_seconds: int) -> None:
        self._process = subprocess.Popen(  # noqa: S603  this very module, and what the test gave
            [sys.executable, "-m", "carrick.testing.zombie", url, channel, str(lease_seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        claimed = self._answer()
        self.token = UUID(claimed["token"])
        self.ids = [UUID(entry_id) for entry_id in claimed["ids"]]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def stop(self) -> None:
        """SIGSTOP; returns when the process has stopped."""
        self._process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED)

    def wake(self) -> None:
        """SIGCONT; it goes on where it was."""
        self._process.send_signal(signal.SIGCONT)

    def tell(self, write: str) -> None:
        """The write it shall do next, one of WRITES; it does so when it is awake."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{write}\n")
        self._process.stdin.flush()

    def effect(self) -> int:
        """How many entries its last write took effect on, by its own account. Raises EOFError when it died."""
        return int(self._answer()["effect"])

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise EOFError(f"the worker ended with code {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer


def write(store: Store, name: str, token: UUID, ids: list[UUID]) -> int:
    """Do one of WRITES; on how many entries it took effect."""
    match name.split():
        case ["renew"]:
            return store.renew(token, 1000)
        case ["note"]:
            return store.note(token, {"by": "zombie"})
        case ["finish", kind]:
            outcome = Outcome(kind=OutcomeKind(kind), code="zombie")
            return len(store.finish(token, dict.fromkeys(ids, outcome)))
        case ["finish_all"]:
            return len(store.finish_all(token))
        case ["release"]:
            return store.release(token)
        case _:
            raise ValueError(f"no such write: {name}")


def work(url: str, channel: str, lease_seconds: int) -> None:
    """The worker: claim, say what was claimed, then do as told, line by line."""
    store = open_store(url)
    batch = store.claim(channel, "zombie", lease_seconds=lease_seconds)
    ids = [entry.id for entry in batch]
    _say({"token": str(batch.token), "ids": [str(entry_id) for entry_id in ids]})
    for line in sys.stdin:
        _say({"effect": write(store, line.strip(), batch.token, ids)})
    store.close()


def _say(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    work(sys.argv[1], sys.argv[2], int(sys.argv[3]))
