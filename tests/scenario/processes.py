"""Carrick's commands as real processes, killed and started by a test."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.batches import PATH
from tests.ports import free_port

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 60.0


def until(condition: Callable[[], bool], what: str, patience_seconds: float = PATIENCE_SECONDS) -> None:
    """Return when it is so; fail when it never is."""
    end = time.monotonic() + patience_seconds
    while not condition():
        assert time.monotonic() < end, f"it never came to that: {what}"
        time.sleep(0.02)


class Process:
    """A command of this checkout. `log` is what it wrote to standard error."""

    def __init__(self, arguments: list[str], folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self._arguments = [sys.executable, *arguments]
        self.folder = folder
        self._environment = {
            **{name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "TMPDIR")},
            "PYTHONPATH": str(ROOT),
            **(environment or {}),
        }
        self._log_path = folder / f"log-{id(self)}.txt"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> str:
        return self._log_path.read_text()

    def start(self, **environment: str) -> None:
        """Start it, perhaps again, with these variables changed."""
        with self._log_path.open("ab") as log:
            self._process = subprocess.Popen(
                self._arguments, cwd=self.folder, env={**self._environment, **environment}, stderr=log, stdout=log
            )

    def kill(self) -> None:
        """SIGKILL: no last word."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> int:
        """SIGTERM; its exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        """Its exit code, once it has ended."""
        assert self._process is not None
        return self._process.wait(PATIENCE_SECONDS)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, _: object, __: TracebackType | None) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()
        if kind is not None:
            sys.stderr.write(self.log[-5000:])


class ServiceProcess(Process):
    """A service of Carrick's on ports of its own; SHIFTED_SECONDS is how wrong its clock is."""

    def __init__(self, command: str, folder: Path, **environment: str) -> None:
        self.port = free_port()
        super().__init__(
            ["-m", "tests.scenario.shifted" if "SHIFTED_SECONDS" in environment else "carrick", command],
            folder,
            {"PORT": str(self.port), "METRICS_PORT": "0", **environment},
        )

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """A request to its API: status and JSON."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            data=data if data is not None or method == "GET" else b"",
            method=method,
            headers={"Content-Type": "application/json", **headers},
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def is_ready(self) -> bool:
        """Whether it answers that it is."""
        try:
            return self.ask("GET", "/api/ready")[0] == 200
        except OSError:
            return False

    def wait_ready(self) -> None:
        until(self.is_ready, "the service is ready")


class ForwarderProcess(ServiceProcess):
    """`carrick forward`."""

    def __init__(self, folder: Path, database_url: str, cloud_url: str, **environment: str) -> None:
        super().__init__(
            "forward", folder, **{"DATABASE_URL": database_url, "CLOUD_INGESTION_URL": cloud_url, **environment}
        )


class IngestProcess(ServiceProcess):
    """`carrick ingest`; `url` is where a forwarder posts to."""

    def __init__(self, folder: Path, database_url: str, **environment: str) -> None:
        super().__init__("ingest", folder, **{"DATABASE_URL": database_url, **environment})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{PATH}"


class CloudProcess(Process):
    """The endpoint of `tests/scenario/cloud.py`; what it took is in `file`."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.file = folder / "taken.jsonl"
        super().__init__(["-m", "tests.scenario.cloud", str(self.port), str(self.file)], folder)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/batch"


class MoodyCloud(Process):
    """The endpoint of `tests/scenario/moody_cloud.py`: it accepts, rejects or fails, as it feels."""

    def __init__(self, folder: Path, mood: str) -> None:
        self.port = free_port()
        self._mood = folder / "mood"
        self.feel(mood)
        super().__init__(["-m", "tests.scenario.moody_cloud", str(self.port), str(self._mood)], folder)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/batch"

    def feel(self, mood: str) -> None:
        """accept, reject or fail from now on."""
        self._mood.write_text(mood)
