"""Displays and their sign-ins (RFC 8628). Codes and tokens are kept as digests."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import date, datetime
from typing import Literal

import msgspec

from carrick.errors import InvalidInput
from carrick_scoreboard.store.audit import write_audit
from carrick_scoreboard.store.clients import check_let_in
from carrick_scoreboard.store.tables import Row, Tables, first_of, fitting, value_of

MAX_NAME = 100
MAX_ADDRESS = 100

CodeStatus = Literal["pending", "approved", "denied", "fetched"]


class Device(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A display, and whose credential shows it which section.

    `code_hash` is how a log may name the code that it has just shown: the first 8 digits of its digest.
    """

    id: int
    client_id: str
    name: str
    osm_user_id: int
    section_id: int
    term_id: int | None
    term_checked_at: datetime | None
    term_end_date: date | None
    created_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None
    code_hash: str | None = None


class DeviceCode(msgspec.Struct, frozen=True, kw_only=True):
    """The sign-in of a device that is under way, and where it was asked for."""

    id: int
    user_code: str
    client_id: str
    status: CodeStatus
    address: str
    country: str
    poll_seconds: int
    device_id: int | None
    created_at: datetime
    expires_at: datetime
    last_polled_at: datetime | None


class Polled(msgspec.Struct, frozen=True):
    """What a device is told that asks for its token; `device` when it gets one."""

    answer: Literal["authorization_pending", "slow_down", "access_denied", "expired_token", "invalid_grant", "approved"]
    device: Device | None = None


EARLY_SECONDS = 1.0
"""A poll so much too early is no reason to complain: networks are not that even."""
SLOWER_SECONDS = 5


def decide(code: DeviceCode, now: datetime) -> str:
    """What to tell a device that asks at that time. Pure."""
    if code.expires_at <= now:
        return "invalid_grant" if code.status == "fetched" else "expired_token"
    if code.status == "denied":
        return "access_denied"
    if code.status != "pending":
        return "approved"
    waited = code.poll_seconds if code.last_polled_at is None else (now - code.last_polled_at).total_seconds()
    return "slow_down" if waited + EARLY_SECONDS < code.poll_seconds else "authorization_pending"


class Devices:
    """Devices and their sign-ins."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def begin(
        self,
        code_digest: str,
        user_code: str,
        client_id: str,
        *,
        address: str,
        country: str,
        poll_seconds: int,
        seconds: int,
    ) -> DeviceCode | None:
        """Begin a sign-in that lasts so long; None when one of the codes is taken: try others.

        Raises InvalidInput when the application is not let in.
        """
        with self._tables.writing() as ask:
            rows = ask(
                "code_add",
                code_digest=code_digest,
                user_code=user_code,
                client_id=client_id,
                address=fitting(address, MAX_ADDRESS),
                country=fitting(country, MAX_ADDRESS),
                poll_seconds=poll_seconds,
                seconds=seconds,
            )
            if not rows:
                check_let_in(ask, client_id)
        return first_of(rows, DeviceCode)

    def code(self, user_code: str) -> DeviceCode | None:
        """The sign-in that a person has typed the code of (8 letters), while it lasts."""
        with self._tables.reading() as ask:
            return first_of(ask("code_of_person", user_code=user_code), DeviceCode)

    def approve(
        self,
        code: DeviceCode,
        *,
        osm_user_id: int,
        section_id: int,
        name: str,
        term_id: int | None,
        term_end_date: date | None,
    ) -> Device | None:
        """Let the device in for that section; None when the sign-in is no longer open. Raises InvalidInput."""
        _check_name(name)
        with suppress(_Closed), self._tables.writing() as ask:
            device = value_of(
                ask(
                    "device_add",
                    client_id=code.client_id,
                    name=name,
                    osm_user_id=osm_user_id,
                    section_id=section_id,
                    term_id=term_id,
                    term_end_date=None if term_end_date is None else term_end_date.isoformat(),
                )[0],
                Device,
            )
            if not ask("code_end", id=code.id, status="approved", device_id=device.id):
                raise _Closed
            write_audit(ask, f"osm:{osm_user_id}", "device.approve", f"device:{device.id}", {"section": section_id})
            return device
        return None

    def deny(self, code: DeviceCode) -> bool:
        """A person said no; False when the sign-in was no longer open."""
        with self._tables.writing() as ask:
            return bool(ask("code_end", id=code.id, status="denied", device_id=None))

    def poll(self, code_digest: str, client_id: str, new_token_digest: str) -> Polled:
        """A device asks. When it was let in, the new token is its own from now on.

        An answer may be lost on its way, so a device that has not used its token yet may ask for another one.
        """
        with self._tables.writing() as ask:
            rows = ask("code_of_device", code_digest=code_digest)
            code = first_of(rows, DeviceCode)
            if code is None or code.client_id != client_id:
                return Polled("invalid_grant")
            answer = decide(code, rows[0]["now_at"])
            slower = SLOWER_SECONDS if answer == "slow_down" else 0
            ask("code_polled", id=code.id, poll_seconds=code.poll_seconds + slower)
            if answer != "approved":
                return msgspec.convert({"answer": answer}, Polled)
            device = first_of(ask("device_give_token", id=code.device_id, token_digest=new_token_digest), Device)
            ask("code_fetched", id=code.id)
            return Polled("approved", device) if device else Polled("invalid_grant")

    def of_token(self, token_digest: str) -> Device | None:
        """The device with that token, unless it was revoked."""
        with self._tables.reading() as ask:
            return first_of(ask("device_of_token", token_digest=token_digest), Device)

    def of_tokens(self, token_digests: Sequence[str]) -> dict[str, Device]:
        """The devices with those tokens, by digest; those that were revoked are not there."""
        with self._tables.reading() as ask:
            rows = ask("device_of_tokens", token_digests=msgspec.json.encode(token_digests).decode())
        return {row["token_digest"]: value_of({**row, "code_hash": row["token_digest"][:8]}, Device) for row in rows}

    def used(self, *device_ids: int) -> None:
        """These devices have come."""
        with self._tables.writing() as ask:
            for device_id in device_ids:
                ask("device_used", id=device_id)

    def set_term(self, osm_user_id: int, section_id: int, term_id: int | None, term_end_date: date | None) -> None:
        """The term of that section as the user sees it, for all the user's devices there."""
        end = None if term_end_date is None else term_end_date.isoformat()
        with self._tables.writing() as ask:
            ask("device_set_term", osm_user_id=osm_user_id, section_id=section_id, term_id=term_id, term_end_date=end)

    def of_user(self, osm_user_id: int) -> list[Device]:
        """The devices that a user has let in, without those that were revoked."""
        with self._tables.reading() as ask:
            return _devices(ask("device_list", osm_user_id=osm_user_id))

    def all(self, limit: int = 1_000) -> list[Device]:
        """The newest devices, revoked or not."""
        with self._tables.reading() as ask:
            return _devices(ask("device_list_all", limit=limit))

    def rename(self, device_id: int, osm_user_id: int, name: str) -> Device | None:
        """Another name; None where the user has no such device. Raises InvalidInput."""
        _check_name(name)
        with self._tables.writing() as ask:
            return first_of(ask("device_rename", id=device_id, osm_user_id=osm_user_id, name=name), Device)

    def move(self, device_id: int, osm_user_id: int, section_id: int) -> Device | None:
        """Another section; None where the user has no such device."""
        with self._tables.writing() as ask:
            return first_of(ask("device_move", id=device_id, osm_user_id=osm_user_id, section_id=section_id), Device)

    def revoke(self, device_id: int, osm_user_id: int | None, *, actor: str) -> Device | None:
        """Shut a device out; without a user, whosever it is. None where there is no such device."""
        with self._tables.writing() as ask:
            device = first_of(ask("device_revoke", id=device_id, osm_user_id=osm_user_id), Device)
            if device is not None:
                write_audit(ask, actor, "device.revoke", f"device:{device.id}", {"name": device.name})
            return device

    def tidy(self) -> list[Device]:
        """Forget old sign-ins, and shut out devices that nobody uses any more; those."""
        with self._tables.writing() as ask:
            ask("code_prune")
            expired = _devices(ask("device_expire"))
            for device in expired:
                write_audit(ask, "carrick", "device.expire", f"device:{device.id}", {"name": device.name})
            return expired

    def forget(self, *, days: int) -> int:
        """Forget devices that were shut out so many days ago; how many."""
        with self._tables.writing() as ask:
            return len(ask("device_prune", days=days))


class _Closed(Exception):
    """The sign-in was decided by somebody else."""


def _check_name(name: str) -> None:
    if not name.strip() or not name.isprintable() or len(name) > MAX_NAME:
        raise InvalidInput("name", f"{name[:40]!r} is none", f"1 to {MAX_NAME} printable characters")


def _devices(rows: list[Row]) -> list[Device]:
    return [value_of(row, Device) for row in rows]
