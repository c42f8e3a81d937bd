"""OSM credentials of users, ready for use: sealed in the table, refreshed in time, by one replica at a time.

OSM's refresh tokens can be used once. So who refreshes holds the row's lease, the others wait for what comes of it, and
whatever is written names the generation of tokens that it replaces.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
from collections.abc import Awaitable, Callable
from datetime import timedelta

from carrick.errors import StoreError
from carrick.relay.threads import Threads
from carrick_scoreboard.osm import errors
from carrick_scoreboard.osm.answers import Profile
from carrick_scoreboard.osm.client import TIMEOUT_SECONDS, Credential, OsmClient, Tokens
from carrick_scoreboard.sealing import KeyRing
from carrick_scoreboard.store.credentials import (
    SealedTokens,
    StoredCredential,
    StoredCredentials,
    WritableSection,
)

log = logging.getLogger("carrick.credentials")

WRITE = "section:member:write"
EARLY_SECONDS = 300.0
"""Tokens are refreshed so long before they end."""
STILL_GOOD_SECONDS = 5.0
"""A token that cannot be refreshed is used until so shortly before its end."""
LEASE_SECONDS = 4 * TIMEOUT_SECONDS
"""How long a refresh may take; a replica that dies in it keeps the others from it so long."""
LONGEST_WAIT_SECONDS = TIMEOUT_SECONDS + 5
"""How long somebody waits for new tokens; a refresh goes on without them."""
LOOK_SECONDS = 0.1
"""How often those who wait look."""
LOOKS = round(LONGEST_WAIT_SECONDS / LOOK_SECONDS)
"""How often they look at most: a refresh that goes on longer has failed or died."""
LONGEST_PAUSE_SECONDS = 30.0
"""Between two tries to write new tokens down."""
USED_EVERY = timedelta(minutes=10)
LONGEST_SECONDS = 366 * 86_400


Told = Callable[[int], Awaitable[None]]
"""Is told the user."""


async def _nobody(_: int) -> None:
    """Where nobody need be told."""


class Credentials:
    """The credentials of all users. One per process. `revoked` and `signed_in` are told about users."""

    def __init__(
        self,
        stored: StoredCredentials,
        keys: KeyRing,
        client: OsmClient,
        threads: Threads,
        instance_id: str,
        *,
        revoked: Told | None = None,
        signed_in: Told | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._revoked = revoked or _nobody
        self._signed_in = signed_in or _nobody
        self._stored = stored
        self._keys = keys
        self._client = client
        self._threads = threads
        self._instance_id = instance_id
        self._sleep = sleep
        self._refreshes: dict[int, asyncio.Task[Credential]] = {}

    async def sign_in(self, tokens: Tokens, profile: Profile) -> None:
        """Keep what a sign-in gave; a revocation ends with it."""
        sealed = self._sealed(profile.user_id, tokens)
        who = (profile.user_id, profile.full_name, profile.email)
        await self._threads.call(self._stored.save, *who, sealed, writable_of(profile))
        await self._signed_in(profile.user_id)

    async def usable(self, user_id: int) -> Credential:
        """The user's credential, refreshed if it ends soon. Raises AuthRevoked, another OsmError, or Unreadable.

        Who goes away in the middle leaves the refresh to itself: its answer must not be lost.
        """
        stored = await self._read(user_id)
        if stored.left_seconds > EARLY_SECONDS:
            return await self._used(stored)
        task = self._refreshes.get(user_id)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._refreshed(user_id))
            self._refreshes[user_id] = task
            task.add_done_callback(lambda done: self._through(user_id, done))
        done, _ = await asyncio.wait([task], timeout=LONGEST_WAIT_SECONDS)
        return await (task if done else self._old(user_id))

    async def refused(self, credential: Credential) -> bool:
        """OSM no longer accepts it: revoked, unless the user has newer tokens by now. Whether they must sign in."""
        stored = await self._threads.call(self._stored.get, credential.user_id)
        if stored is None or stored.revoked_at is not None:
            return True
        return self._is_of(credential, stored) and await self._revoke(stored)

    async def leaders_of(self, section_id: int) -> list[int]:
        """Who is signed in and may write to that section, as their last sign-in said."""
        return await self._threads.call(self._stored.leaders_of, section_id)

    async def is_revoked(self, user_id: int) -> bool:
        """Whether the user must sign in again."""
        stored = await self._threads.call(self._stored.get, user_id)
        return stored is None or stored.revoked_at is not None

    async def close(self, grace_seconds: float = LONGEST_WAIT_SECONDS) -> None:
        """Wait for the refreshes under way: the tokens they use up must be replaced. Who is left then is told."""
        tasks = dict(self._refreshes)
        if not tasks:
            return
        _, late = await asyncio.wait(tasks.values(), timeout=max(grace_seconds, 0))
        for user_id, task in tasks.items():
            if task in late:
                remedy = "if OSM had given new tokens already, the user must sign in again"
                log.critical("credentials.refresh_cut_off", extra={"user_id": user_id, "remedy": remedy})
                task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    async def _refreshed(self, user_id: int) -> Credential:
        """Refresh, or wait for who does, until the tokens are new: however short they last, once is enough."""
        generation = (await self._read(user_id)).generation
        for _ in range(LOOKS):
            stored = await self._read(user_id)
            if stored.generation != generation or stored.left_seconds > EARLY_SECONDS:
                return await self._used(stored)
            holder = f"{self._instance_id}:{secrets.token_hex(4)}"
            held = await self._threads.call(
                self._stored.begin_refresh, user_id, stored.generation, holder, LEASE_SECONDS
            )
            if not held:
                await self._sleep(LOOK_SECONDS)
            elif not await self._refresh(stored, holder):
                return await self._old(user_id)
        return await self._old(user_id)

    async def _refresh(self, stored: StoredCredential, holder: str) -> bool:
        """Refresh under the lease; False when it came to nothing but the old token may still do."""
        user_id = stored.osm_user_id
        try:
            token = self._keys.unseal(stored.osm_refresh_token, place_of(user_id, "refresh"))
            tokens = await self._client.refresh(token)
        except errors.AuthRevoked:
            if await self._revoke(stored):
                raise
            return True  # somebody has newer tokens
        except BaseException as error:
            await self._threads.call(self._stored.drop_refresh, user_id, holder)
            if not isinstance(error, errors.OsmError) or stored.left_seconds <= STILL_GOOD_SECONDS:
                raise
            log.warning("credentials.not_refreshed", extra={"user_id": user_id, "error": str(error)})
            return False
        await self._keep(stored, self._sealed(user_id, tokens))
        return True

    async def _keep(self, stored: StoredCredential, tokens: SealedTokens) -> None:
        """Write the new tokens, however long the database is away: the old ones are used up.

        Another replica may have taken the old ones for revoked meanwhile. With these that is over.
        """
        user_id, pause = stored.osm_user_id, 0.5
        while True:
            try:
                await self._threads.call(self._stored.end_refresh, user_id, stored.generation, tokens)
                break
            except StoreError as error:
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
                log.error(
                    "credentials.not_kept",
                    extra={"user_id": user_id, "error": str(error), "again_in_seconds": pause},
                )
                await self._sleep(pause)
        log.info("credentials.refreshed", extra={"user_id": user_id})
        await self._signed_in(user_id)

    async def _old(self, user_id: int) -> Credential:
        """The token that could not be refreshed, while it is good. Raises Unavailable."""
        stored = await self._read(user_id)
        if stored.left_seconds > STILL_GOOD_SECONDS:
            return await self._used(stored)
        raise errors.Unavailable("not_refreshed", "the sign-in could not be renewed in time")

    async def _read(self, user_id: int) -> StoredCredential:
        stored = await self._threads.call(self._stored.get, user_id)
        if stored is None or stored.revoked_at is not None:
            raise errors.AuthRevoked
        return stored

    async def _used(self, stored: StoredCredential) -> Credential:
        if stored.last_used_at is None or stored.now_at - stored.last_used_at >= USED_EVERY:
            await self._threads.call(self._stored.used, stored.osm_user_id)
        token = self._keys.unseal(stored.osm_access_token, place_of(stored.osm_user_id, "access"))
        return Credential(stored.osm_user_id, token)

    async def _revoke(self, stored: StoredCredential) -> bool:
        """Whether these were the user's tokens still."""
        revoked = await self._threads.call(self._stored.revoke, stored.osm_user_id, stored.generation)
        if revoked:
            log.warning("credentials.revoked", extra={"user_id": stored.osm_user_id})
            await self._revoked(stored.osm_user_id)
        return revoked

    def _is_of(self, credential: Credential, stored: StoredCredential) -> bool:
        token = self._keys.unseal(stored.osm_access_token, place_of(stored.osm_user_id, "access"))
        return hmac.compare_digest(token.encode(), credential.access_token.encode())

    def _sealed(self, user_id: int, tokens: Tokens) -> SealedTokens:
        return SealedTokens(
            self._keys.seal(tokens.access_token, place_of(user_id, "access")),
            self._keys.seal(tokens.refresh_token, place_of(user_id, "refresh")),
            min(max(tokens.expires_in, 0), LONGEST_SECONDS),
        )

    def _through(self, user_id: int, task: asyncio.Task[Credential]) -> None:
        del self._refreshes[user_id]
        if not task.cancelled() and (error := task.exception()) is not None:  # whoever waited may have gone
            log.warning("credentials.refresh_failed", extra={"user_id": user_id, "error": str(error)})


def writable_of(profile: Profile) -> list[WritableSection] | None:
    """The sections where the profile's tokens may write: OSM lists those where the user has every scope of them."""
    if WRITE not in profile.scopes:
        return None
    return [
        WritableSection(id=section.id, name=section.name, group_name=section.group_name) for section in profile.sections
    ]


def place_of(user_id: int, kind: str) -> str:
    """What a sealed token is bound to: one user, one kind."""
    return f"credential:{user_id}:{kind}"
