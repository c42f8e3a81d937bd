"""Real Redis servers for the tests, from a package: started, killed and started again when the test says so.

`REDIS_URL` in the environment is used instead where a server need not be killed.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path

import redis

from tests.redis_binary import binary

START_SECONDS = 20.0


class RedisProcess:
    """One server on a socket file. What it holds outlives it (`keep`: every write at once, or when it is told to)."""

    def __init__(self, *, keep: str = "always") -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="carrick-redis-"))
        self._keep = keep
        self._process: subprocess.Popen[bytes] | None = None
        self.socket = self._folder / "socket"
        self.url = f"unix://{self.socket}"
        self.start()

    def start(self) -> None:
        """Start it and wait until it has read what it kept and answers."""
        server = binary()
        assert server is not None, "there is no redis-server: run `make setup`, or install one"
        options = {"port": "0", "unixsocket": str(self.socket), "dir": str(self._folder), "save": ""}
        if self._keep == "always":
            options |= {"appendonly": "yes", "appendfsync": "always"}
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        self._process = subprocess.Popen([server, *words], stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            assert self._process.poll() is None, "redis-server has ended"
            assert time.monotonic() < deadline, "redis-server does not answer"
            time.sleep(0.01)

    def kill(self) -> None:
        """End it at once, as a crash would; returns when it is gone."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def restart(self) -> None:
        """Kill it and start it with what it kept."""
        self.kill()
        self.start()

    def freeze(self) -> None:
        """It takes connections and answers nothing."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """It goes on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def client(self) -> redis.Redis:
        """A client of the test's own."""
        return redis.Redis.from_url(self.url)

    def close(self) -> None:
        """End it and remove what it kept."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _answers(self) -> bool:
        try:
            with self.client() as client:
                return bool(client.ping())
        except (redis.ConnectionError, redis.exceptions.BusyLoadingError):
            return False


@cache
def redis_url() -> str:
    """A server that all tests of this process share."""
    if os.environ.get("REDIS_URL"):
        return os.environ["REDIS_URL"]
    server = RedisProcess(keep="never")
    atexit.register(server.close)
    return server.url
