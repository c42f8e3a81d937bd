"""Templates: the files `*.html` beside this one. What is put into a place `{name}` is escaped unless it is Html."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from html import escape
from importlib import resources

PACKAGE = "carrick_scoreboard.pages"


class Html(str):
    """Text that is HTML already. Only templates make it."""

    __slots__ = ()


def render(template: str, /, **values: object) -> Html:
    """The template with the values in its places, each of which stands between tags or in a quoted attribute."""
    shown = {name: value if isinstance(value, Html) else escape(str(value)) for name, value in values.items()}
    return Html(_template(template).format_map(shown))


def joined(parts: Iterable[Html]) -> Html:
    """One after the other."""
    return Html("".join(parts))


def page(title: str, body: Html) -> Html:
    """A whole page."""
    return render("layout", title=title, body=body, style=style_path())


@cache
def style() -> bytes:
    """The style sheet of all pages."""
    return resources.files(PACKAGE).joinpath("pages.css").read_bytes()


@cache
def style_path() -> str:
    """Its address: another content is another address, so browsers may keep it for ever."""
    return f"/static/pages-{hashlib.sha256(style()).hexdigest()[:16]}.css"


@cache
def _template(name: str) -> str:
    return resources.files(PACKAGE).joinpath(f"{name}.html").read_text(encoding="utf-8")
