"""Small pieces of HTML: text is escaped, everything is one string."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from html import escape
from importlib import resources

STYLE = "/static/osmsim.css"


def text(value: object) -> str:
    """As text between tags or in an attribute."""
    return escape(str(value), quote=True)


def hidden(fields: Mapping[str, object]) -> str:
    """Fields that a form sends along."""
    return "".join(f'<input type="hidden" name="{text(name)}" value="{text(value)}">' for name, value in fields.items())


def options(choices: Iterable[tuple[object, str]], chosen: object = "") -> str:
    """The choices of a select, value and label."""
    return "".join(
        f'<option value="{text(value)}"{" selected" if value == chosen else ""}>{text(label)}</option>'
        for value, label in choices
    )


def button(action: str, label: str, fields: Mapping[str, object] | None = None, style: str = "") -> str:
    """A form of one button that does one thing of the control API."""
    kind = f' class="{style}"' if style else ""
    return (
        f'<form method="post" action="/control/{action}">{hidden(fields or {})}'
        f"<button{kind}>{text(label)}</button></form>"
    )


def page(title: str, body: str, *, head: str = "") -> str:
    """A whole page. It needs no script."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f'{head}<title>{text(title)}</title><link rel="stylesheet" href="{STYLE}"></head><body>{body}</body></html>'
    )


@cache
def stylesheet() -> bytes:
    """The one style sheet of all pages."""
    return resources.files("carrick_osmsim").joinpath("osmsim.css").read_bytes()
