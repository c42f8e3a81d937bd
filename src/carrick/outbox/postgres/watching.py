"""Tells when something was put, through LISTEN on a connection of its own, and claims it there."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import Any, NamedTuple

import psycopg
from psycopg.adapt import Transformer
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGresult

from carrick.entry import Batch
from carrick.outbox.postgres.claiming import Claim, batch_of, new_claim
from carrick.outbox.postgres.failures import map_errors
from carrick.outbox.postgres.hearing import Ears
from carrick.outbox.postgres.putting import PACKAGE
from carrick.outbox.statement import query

log = logging.getLogger("carrick.relay")

NOTIFICATIONS = "carrick_put"
"""What puts notify while a relay rests (0002_put.sql); the payload is the channel's name."""
PATIENCE_SECONDS = 30.0
"""How long a claim may take here: a connection that has died in silence must not hold up the relay."""
PARAMETER = re.compile(r"%\((\w+)\)s")


class Statement(NamedTuple):
    """A query as the server counts its parameters, and their names in that order."""

    text: str
    parameters: list[str]


def _numbered(name: str) -> Statement:
    text = query(PACKAGE, name)
    parameters = list(dict.fromkeys(PARAMETER.findall(text)))
    return Statement(PARAMETER.sub(lambda found: f"${parameters.index(found[1]) + 1}", text), parameters)


STATEMENTS = {name: _numbered(name) for name in ("claim_only", "claim")}
"""What claims, in the order in which it is tried: mostly one entry waits."""
FRESH = b"""
deallocate all;
set plan_cache_mode = force_generic_plan; set enable_seqscan = off; set enable_bitmapscan = off; set jit = off
"""
"""Before anything is prepared: no statistics choose a plan here, as in `_claim`."""


class PostgresWatch:
    """Listens on one connection; opened at the first wait and after every loss of it."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._ears: ClaimingEars | None = None

    async def next(self) -> str | None:
        """The channel that somebody put into. A new connection may have missed something: then it may be any.

        Raises NothingHeard behind a pooler in transaction mode.
        """
        with map_errors():
            if self._ears is None or self._ears.connection.closed:
                await self.close()
                self._ears = await ClaimingEars.open(self._dsn, NOTIFICATIONS)
                return None
            return await self._ears.hear()

    async def claim(
        self, channel: str, owner: str, *, max_rows: int, max_bytes: int, fresh_seconds: float | None
    ) -> Batch | None:
        """As Store.claim, where something was heard; None while another claims here, or when the database refuses."""
        ears = self._ears
        if ears is None or not ears.can_claim:
            return None
        claim = new_claim(channel, owner, max_rows=max_rows, max_bytes=max_bytes, fresh_seconds=fresh_seconds)
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                return batch_of(claim, await ears.claim(claim))
        except (psycopg.Error, TimeoutError) as error:
            said = str(error) or f"no answer within {PATIENCE_SECONDS:g} seconds"
            log.warning("relay.not_claimed_at_once", extra={"channel": channel, "error": said})
            return None

    async def close(self) -> None:
        if self._ears is not None:
            await self._ears.close()
            self._ears = None


class ClaimingEars(Ears):
    """Claims where it listens: its session is awake, and no thread is needed."""

    def __init__(self, connection: psycopg.AsyncConnection, dsn: str) -> None:
        super().__init__(connection, dsn)
        self._claiming = False
        self._is_prepared = False

    @property
    def can_claim(self) -> bool:
        """What hears is surely a session of its own, so that a statement may be prepared in it."""
        return not self._claiming and self._fault is None

    async def claim(self, claim: Claim) -> list[tuple[Any, ...]]:
        """The rows of what is claimed. Without marks, which matter while much is claimed. Raises psycopg's errors.

        Whoever is cancelled meanwhile leaves an answer that nobody reads: then this connection is given up.
        """
        self._claiming = True
        try:
            if not self._is_prepared:
                await self._prepare()
            for name in STATEMENTS:
                result = await self._ask(name, claim)
                if result.ntuples:
                    break
        except asyncio.CancelledError:
            self._fail(psycopg.OperationalError("the answer to a claim was not waited for"))
            raise
        except psycopg.Error:
            self._is_prepared = False  # perhaps because what it was prepared for has changed
            raise
        finally:
            self._claiming = False
        reader = Transformer(self.connection)
        reader.set_pgresult(result)
        return reader.load_rows(0, result.ntuples, tuple)

    async def _prepare(self) -> None:
        """Each way to claim becomes a statement of this session, of its own name."""
        self.connection.pgconn.send_query(FRESH)
        await self._result()
        for name, (text, _) in STATEMENTS.items():
            self.connection.pgconn.send_prepare(name.encode(), text.encode())
            await self._result()
        self._is_prepared = True

    async def _ask(self, name: str, claim: Claim) -> PGresult:
        given = claim._asdict()
        values = [given.get(parameter) for parameter in STATEMENTS[name].parameters]
        texts = [None if value is None else str(value).encode() for value in values]
        self.connection.pgconn.send_query_prepared(name.encode(), texts, result_format=Format.BINARY)
        return await self._result()

    async def _result(self) -> PGresult:
        """The answer to what was sent, when its transaction is over. Raises psycopg's errors."""
        if self.connection.pgconn.flush():  # a few hundred bytes
            self._fail(psycopg.OperationalError("the connection takes nothing"))
        answers: list[PGresult] = []
        while (answer := await self._next_answer()) is not None:
            answers.append(answer)
        if not answers:
            raise psycopg.OperationalError("the server has not answered")
        for answer in answers:
            if answer.status not in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
                raise psycopg.errors.error_from_result(answer)
        return answers[0]

    async def _next_answer(self) -> PGresult | None:
        while self.connection.pgconn.is_busy():
            await self._stir()
        return self.connection.pgconn.get_result()
