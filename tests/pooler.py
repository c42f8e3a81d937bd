"""Poolers in transaction mode for tests: a small one of the tests' own, and PgBouncer where it is installed.

Both hand a server connection to a client for one transaction only, and the next transaction gets another one.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict

from tests.pgbouncer_binary import pgbouncer
from tests.ports import free_port

SERVERS = 3
"""Server connections behind a pooler."""
START_SECONDS = 20.0

PROTOCOL = 196_608
NO_TLS = {80_877_103, 80_877_104}
"""What a client asks before it starts: TLS, GSSAPI."""
STATUS = (
    "server_version",
    "server_encoding",
    "client_encoding",
    "is_superuser",
    "session_authorization",
    "DateStyle",
    "IntervalStyle",
    "TimeZone",
    "integer_datetimes",
    "standard_conforming_strings",
)
ANSWERED = b"QSF"
"""Messages of a client that the server answers with ReadyForQuery: Query, Sync, FunctionCall."""
COPIED = b"dcf"


def pooler_names() -> list[str]:
    """The poolers that are at hand."""
    return ["small", "pgbouncer"] if pgbouncer() else ["small"]


@contextmanager
def pooled(name: str, url: str) -> Iterator[str]:
    """The URL of the same database behind that pooler."""
    start = SmallPooler if name == "small" else PgBouncer
    parts = urlsplit(url)
    with start(url) as port:
        behind = f"postgresql://{parts.username or 'postgres'}@127.0.0.1:{port}{parts.path}?sslmode=disable"
        with ExitStack() as together:  # PgBouncer connects no more often than it must
            for _ in range(SERVERS):
                together.enter_context(psycopg.connect(behind)).execute("select 1")
        yield behind


class _Server:
    """One connection to the server, and the client that has it now."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self.connection = connection
        self.reader: asyncio.StreamReader
        self.writer: asyncio.StreamWriter
        self.session: _Session | None = None


class _Session:
    """One client; `server` is what it has for its transaction."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        self.server: _Server | None = None
        self.unanswered = 0
        self.unfinished = False
        """Whether messages were sent whose Sync is still to come."""


class SmallPooler:
    """Listens in a thread of its own; entering gives the port. Any client may come in, and gets the server's user."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._idle: asyncio.Queue[_Server] = asyncio.Queue()
        self._connections: list[psycopg.Connection] = []
        self._writers: set[asyncio.StreamWriter] = set()

    def __enter__(self) -> int:
        self._thread.start()
        return asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        for connection in self._connections:
            connection.close()

    async def _start(self) -> int:
        for _ in range(SERVERS):
            await self._connect()
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return int(self._listener.sockets[0].getsockname()[1])

    async def _stop(self) -> None:
        self._listener.close()
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})

    async def _connect(self) -> None:
        """One more server connection: psycopg signs in, then its socket is used without it."""
        connection = await asyncio.to_thread(lambda: psycopg.connect(self._url))
        self._connections.append(connection)
        server = _Server(connection)
        own = socket.socket(fileno=os.dup(connection.fileno()))
        own.setblocking(False)
        server.reader, server.writer = await asyncio.open_connection(sock=own)
        self._writers.add(server.writer)
        self._reading = asyncio.create_task(self._answer(server))
        self._idle.put_nowait(server)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        session = _Session(writer)
        self._writers.add(writer)
        try:
            await self._welcome(reader, writer)
            while (kind := await reader.readexactly(1)) != b"X":
                await self._pass_on(session, kind, await _body(reader))
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client has gone
        finally:
            writer.close()
            if session.server is not None:  # in the middle of a transaction: that connection cannot be used again
                session.server.writer.transport.abort()
                await self._connect()

    async def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (await _body(reader))[:4] in {struct.pack("!i", code) for code in NO_TLS}:
            writer.write(b"N")
        info = self._connections[0].info
        writer.write(_message(b"R", struct.pack("!i", 0)))
        for name in STATUS:
            value = info.parameter_status(name) or ""
            writer.write(_message(b"S", name.encode() + b"\0" + value.encode() + b"\0"))
        writer.write(_message(b"K", struct.pack("!ii", 1, 1)) + _message(b"Z", b"I"))
        await writer.drain()

    async def _pass_on(self, session: _Session, kind: bytes, body: bytes) -> None:
        if session.server is None:
            session.server = await self._idle.get()
            session.server.session = session
        if kind in ANSWERED:
            session.unanswered += 1
            session.unfinished = False
        elif kind not in COPIED:
            session.unfinished = True
        session.server.writer.write(_message(kind, body))
        await session.server.writer.drain()

    async def _answer(self, server: _Server) -> None:
        """Pass on what the server says to whoever has it; what it says to nobody is lost."""
        try:
            while True:
                kind = await server.reader.readexactly(1)
                body = await _body(server.reader)
                session = server.session
                if session is None:
                    continue
                session.writer.write(_message(kind, body))
                if kind == b"Z":
                    session.unanswered -= 1
                    if body == b"I" and not session.unanswered and not session.unfinished:
                        session.server = server.session = None
                        self._idle.put_nowait(server)
        except (OSError, asyncio.IncompleteReadError):
            pass  # it was closed


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


async def _body(reader: asyncio.StreamReader) -> bytes:
    """What follows the length of a message."""
    (length,) = struct.unpack("!i", await reader.readexactly(4))
    return await reader.readexactly(length - 4)


ADDRESS = ("host", "port", "user", "password")
CONFIGURATION = """
[databases]
* = {server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {servers}
server_round_robin = 1
ignore_startup_parameters = extra_float_digits
logfile = {folder}/log
pidfile =
"""


class PgBouncer:
    """A PgBouncer of its own; entering gives the port."""

    def __init__(self, url: str) -> None:
        self._given = conninfo_to_dict(url)

    def __enter__(self) -> int:
        self._folder = Path(tempfile.mkdtemp(prefix="carrick-pgbouncer-"))
        port = free_port()
        path = self._folder / "pgbouncer.ini"
        server = " ".join(f"{name}={self._given[name]}" for name in ADDRESS if self._given.get(name))
        path.write_text(CONFIGURATION.format(server=server, port=port, servers=SERVERS, folder=self._folder))
        command = [pgbouncer() or "", str(path)]
        if os.getuid() == 0:  # which it refuses to be
            self._folder.chmod(0o777)
            host = str(self._given.get("host", ""))
            command[1:1] = ["-u", Path(host).owner() if host.startswith("/") else "nobody"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                return port
            except OSError:
                assert self._process.poll() is None, "PgBouncer has ended"
                assert time.monotonic() < deadline, "PgBouncer does not answer"
                time.sleep(0.01)

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)
