"""One variable of the environment at a time: reads it, and refuses what is not acceptable with one line.

A wrong value raises SettingsError with the variable, the value (secrets masked) and what is accepted.
A variable that is set to nothing counts as not set.
"""

from __future__ import annotations

import ipaddress
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from carrick.errors import SettingsError

PASSWORD = re.compile(r"(?P<before>://[^/?#@]*?:)[^/?#]*(?=@)|(?P<option>[?&](?:ssl)?password=)[^&#]*", re.IGNORECASE)
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
YES_AND_NO = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}

Choice = TypeVar("Choice", bound=str)
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Secret(str):
    """Text that does not show in a repr, so that settings can be printed and logged."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'" if self else "''"


def mask_url(url: str) -> str:
    """The URL with every password in it replaced, fit for a log or an error."""
    return PASSWORD.sub(lambda found: f"{found['before'] or found['option']}***", url)


def refused(variable: str, shown: str, accepted: str) -> SettingsError:
    """The one line about a wrong value; `shown` is already masked."""
    return SettingsError(f"{variable}={shown[:200]!r} is not acceptable; accepted: {accepted}")


def read_variables(environ: Mapping[str, str] | None = None, env_file: Path | None = None) -> dict[str, str]:
    """The environment over `.env` in the working directory, or what is given instead. Raises SettingsError."""
    file = Path(".env") if env_file is None else env_file
    return {**read_env_file(file), **(os.environ if environ is None else environ)}


def read_env_file(path: Path) -> dict[str, str]:
    """KEY=VALUE lines with comments, quotes and an optional `export`; no file is an empty one. Raises SettingsError."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} cannot be read: {error}") from None
    values: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            values.update(parse_env_line(line))
        except ValueError as error:
            raise SettingsError(f"{path}, line {number}: {error}; accepted: KEY=VALUE") from None
    return values


def parse_env_line(line: str) -> dict[str, str]:
    """One line as a mapping with one item, none for a blank line or a comment. Raises ValueError, showing no value."""
    text = line.strip()
    if not text or text.startswith("#"):
        return {}
    name, equals, value = text.partition("=")
    name = re.sub(r"^export\s+", "", name.strip())
    if not equals or not NAME.fullmatch(name):
        raise ValueError("not a KEY=VALUE line")
    value = value.strip()
    if value[:1] in ("'", '"'):
        return {name: _quoted(value)}
    return {name: re.sub(r"(^|\s)#.*$", "", value).rstrip()}


def _quoted(value: str) -> str:
    """What stands between quotes; backslashes mean something in double quotes only."""
    inner = r'"(?P<text>(?:[^"\\]|\\.)*)"' if value[0] == '"' else r"'(?P<text>[^']*)'"
    found = re.fullmatch(inner + r"\s*(?:#.*)?", value)
    if found is None:
        raise ValueError("the quotes do not end, or something follows them")
    if value[0] == "'":
        return found["text"]
    return re.sub(r"\\(.)", lambda escape: ESCAPES.get(escape[1], escape[1]), found["text"])


def listed(value: str) -> tuple[str, ...]:
    """The items of a list with commas, without those that are empty."""
    return tuple(item for item in map(str.strip, value.split(",")) if item)


def choice(values: Mapping[str, str], variable: str, accepted: tuple[Choice, ...]) -> Choice:
    """One of the accepted words; the first when the variable is not set."""
    text = values.get(variable, "").strip() or accepted[0]
    for choice in accepted:
        if text == choice:
            return choice
    raise refused(variable, text, ", ".join(accepted))


def yes(values: Mapping[str, str], variable: str) -> bool:
    text = values.get(variable, "").strip().lower() or "false"
    if text not in YES_AND_NO:
        raise refused(variable, text, "true or false")
    return YES_AND_NO[text]


def web_address(values: Mapping[str, str], variable: str) -> str:
    """An http or https address, or nothing."""
    text = values.get(variable, "").strip()
    if text and not re.fullmatch(r"https?://[^\s/?#]+([/?#]\S*)?", text):
        raise refused(variable, mask_url(text), "http://… or https://…")
    return text


def host(values: Mapping[str, str], variable: str) -> str:
    """The name or address of a machine, or nothing. Whether it is there is found out later."""
    text = values.get(variable, "").strip()
    try:
        text.encode("idna")
    except UnicodeError:
        pass
    else:
        if not re.search(r"[\s\x00-\x1f]", text):
            return text
    raise refused(variable, text, "an address or a host name, as in 127.0.0.1")


def region(values: Mapping[str, str], variable: str) -> str:
    """A country of two letters, or nothing."""
    text = values.get(variable, "").strip().upper()
    if text and not re.fullmatch(r"[A-Z]{2}", text):
        raise refused(variable, text, "a country of two letters, as in GB")
    return text


def networks(values: Mapping[str, str], variable: str) -> tuple[Network, ...]:
    """Addresses and networks, with commas."""
    found = []
    for item in listed(values.get(variable, "")):
        try:
            found.append(ipaddress.ip_network(item, strict=False))
        except ValueError:
            raise refused(variable, item, "addresses or networks with commas, as in 10.0.0.0/8, ::1") from None
    return tuple(found)


def existing_file(values: Mapping[str, str], variable: str) -> str:
    text = values.get(variable, "").strip()
    if text and not Path(text).is_file():
        raise refused(variable, text, "a file that exists")
    return text


def whole(values: Mapping[str, str], variable: str, default: int, low: int, high: int) -> int:
    text = values.get(variable, "").strip()
    if not text:
        return default
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", text) or not low <= int(text) <= high:
        raise refused(variable, text, f"a whole number from {low} to {high}")
    return int(text)


def number(values: Mapping[str, str], variable: str, default: float, low: float, high: float) -> float:
    text = values.get(variable, "").strip()
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not low <= value <= high:  # also refuses NaN
        raise refused(variable, text, f"a number from {low} to {high}")
    return value
