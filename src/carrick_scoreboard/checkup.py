"""The doctor's questions about the scoreboard: its block by OSM, and whether its keys open what is sealed."""

from __future__ import annotations

from collections.abc import Callable

from carrick.ops.configuration import shown
from carrick.ops.doctor import Check, Finding, failed, fine, warned
from carrick.variables import Secret
from carrick_scoreboard.credentials import place_of
from carrick_scoreboard.sealing import KeyRing, Unreadable
from carrick_scoreboard.settings import ScoreboardSettings
from carrick_scoreboard.store.blocks import Blocks
from carrick_scoreboard.store.credentials import SealedRow, StoredCredentials
from carrick_scoreboard.store.tables import Tables

KEYS_REMEDY = (
    "give CARRICK_SECRET_KEYS the key that sealed them as well (the newest first), or let these users sign in again"
)

FindKeys = Callable[[], KeyRing | None]
"""The keys that there are; None where there are none. Raises SettingsError."""


def checks(tables: Tables, find_keys: FindKeys) -> list[Check]:
    """What is asked of the scoreboard's tables."""
    return [
        Check("osm_block", lambda: osm_block(Blocks(tables))),
        Check("osm_endings", lambda: osm_endings(Blocks(tables))),
        Check("keys", lambda: keys(StoredCredentials(tables), find_keys), KEYS_REMEDY),
    ]


def osm_block(blocks: Blocks) -> Finding:
    """OSM has not blocked the application."""
    block = blocks.standing()
    if block is None:
        return fine("osm_block", "OSM has not blocked the application")
    detail = f"OSM has blocked the application since {block.blocked_at.isoformat(timespec='seconds')}: no call leaves"
    remedy = 'find out why with OSM and put it right; then: carrick osm unblock --reason "…"'
    return failed("osm_block", detail, remedy)


def osm_endings(blocks: Blocks) -> Finding:
    """OSM has not said that it will end a call."""
    endings = [ending.in_words for ending in blocks.endings()]
    if not endings:
        return fine("osm_endings", "OSM has not said that it will end a call")
    remedy = "install a newer release of Carrick before then"
    return warned("osm_endings", f"OSM will end: {'; '.join(endings)}", remedy)


def keys(stored: StoredCredentials, find_keys: FindKeys) -> Finding:
    """Every credential can be opened. Raises SettingsError for keys that are none."""
    ring = find_keys()
    rows = list(stored.all_sealed())
    if ring is None:
        if rows:
            return failed("keys", f"there is no key, and {len(rows)} users' credentials are sealed", KEYS_REMEDY)
        return fine("keys", "there are none, and nothing is sealed")
    closed = [row.osm_user_id for row in rows if not _opens(ring, row)]
    if closed:
        some = ", ".join(map(str, closed[:10]))
        return failed("keys", f"{len(closed)} of {len(rows)} users' credentials do not open: {some}", KEYS_REMEDY)
    return fine("keys", f"key {ring.newest!r} seals; all of {len(rows)} users' credentials open")


def _opens(ring: KeyRing, row: SealedRow) -> bool:
    try:
        ring.unseal(row.osm_access_token, place_of(row.osm_user_id, "access"))
        ring.unseal(row.osm_refresh_token, place_of(row.osm_user_id, "refresh"))
    except Unreadable:
        return False
    return True


def configuration(own: ScoreboardSettings) -> Finding:
    """Every setting of the scoreboard as it is in effect, one a line."""
    return fine("scoreboard", "\n".join(f"{name}={value}" for name, value in effective(own).items()))


def effective(own: ScoreboardSettings) -> dict[str, str]:
    """Every variable with its value, fit to be shown."""
    limits, authorize, entry = own.thresholds, own.authorize_rate, own.entry_rate
    values = {
        "OSM_DOMAIN": own.osm.domain,
        "OSM_CLIENT_ID": own.osm.client_id,
        "OSM_CLIENT_SECRET": own.osm.client_secret,
        "EXPOSED_DOMAIN": own.exposed_domain,
        "CARRICK_SECRET_KEYS": Secret("given" if own.keys else ""),
        "CACHE_FALLBACK_TTL": own.cache_fallback_seconds,
        "RATE_LIMIT_CAUTION": limits.caution,
        "RATE_LIMIT_WARNING": limits.warning,
        "RATE_LIMIT_CRITICAL": limits.critical,
        "SCORE_DEBOUNCE_SECONDS": own.debounce_seconds,
        "SCORE_POLL_SECONDS": own.poll_seconds,
        "SCORE_WORKERS": own.workers,
        "SCORE_MERGE_LEADERS": own.merge_leaders,
        "DEVICE_CODE_EXPIRY": own.device_code_seconds,
        "DEVICE_POLL_INTERVAL": own.device_poll_seconds,
        "DEVICE_AUTHORIZE_RATE_LIMIT": f"{authorize.count}/{authorize.seconds}",
        "DEVICE_ENTRY_RATE_LIMIT": f"{entry.count}/{entry.seconds}",
        "TRUSTED_PROXIES": ", ".join(map(str, own.trusted_proxies)),
        "COUNTRY_HEADER": own.country_header,
        "SCORE_RETENTION_DAYS": own.score_retention_days,
        "BOARD_RETENTION_DAYS": own.board_retention_days,
        "DEVICE_RETENTION_DAYS": own.device_retention_days,
        "AUDIT_RETENTION_DAYS": own.audit_retention_days,
    }
    return {name: shown(name, value) for name, value in values.items()}
