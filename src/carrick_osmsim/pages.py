"""The pages that OSM shows to people: sign-in, consent, and those that say what is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus

from carrick_osmsim.html import hidden, page, text
from carrick_osmsim.world import App, User

NOTE = '<p class="note">This is a simulator for demos and tests. The people and places are made up.</p>'
MEANING = {"read": "look at", "write": "look at and change"}
AREAS = {"member": "members, patrols and points"}


def sign_in(app: App, people: Sequence[User], fields: Mapping[str, str], problem: str = "", email: str = "") -> str:
    """Pick one of the people, or type an e-mail address and password."""
    said = f'<p class="problem" role="alert">{text(problem)}</p>' if problem else ""
    cards = "".join(
        f'<li><button name="pick" value="{user.user_id}" class="person"><strong>{text(user.full_name)}</strong>'
        f"<span>{text(user.about)}</span></button></li>"
        for user in people
    )
    form = '<form method="post" action="/oauth/authorize">'
    return _small(
        "Sign in - Online Scout Manager (simulator)",
        f"<h1>Sign in</h1><p><strong>{text(app.name)}</strong> would like to use your Online Scout Manager account."
        f"</p>{said}<h2>Who are you today?</h2>{form}{hidden(fields)}<ul class='people'>{cards}</ul></form>"
        f"<h2>Or type it</h2>{form}{hidden(fields)}"
        f'<label>E-mail address<input name="email" type="email" autocomplete="username" required value="{text(email)}">'
        '</label><label>Password<input name="password" type="password" autocomplete="current-password" required>'
        '</label><p class="hint">Everybody\'s password is <code>campfire</code>.</p>'
        '<button class="main">Sign in</button></form>',
    )


def consent(app: App, user: User, scopes: Sequence[str], ticket: str) -> str:
    """What the application will be allowed to do; yes or no."""
    wishes = "".join(f"<li>{text(_wish(scope))}</li>" for scope in scopes)
    wishes = wishes or "<li>know your name and e-mail address, and see no section</li>"
    return _small(
        "Allow access? - Online Scout Manager (simulator)",
        f"<h1>Allow access?</h1><p>You are signed in as <strong>{text(user.full_name)}</strong>.</p>"
        f"<p><strong>{text(app.name)}</strong> would like to:</p><ul>{wishes}</ul>"
        f'<form method="post" action="/oauth/authorize">{hidden({"ticket": ticket})}<div class="pair">'
        '<button class="main" name="decision" value="allow">Allow</button>'
        '<button name="decision" value="deny">Cancel</button></div></form>',
    )


def wrong_request(problem: str) -> str:
    """The application has made a mistake; the person cannot go on."""
    return _small(
        "Something is wrong - Online Scout Manager (simulator)",
        f'<h1>Something is wrong</h1><p class="problem" role="alert">{text(problem)}</p>',
    )


def blocked(reason: str) -> str:
    """What a blocked application gets, with HTTP 200 and on any call. Clients know it by its title."""
    return (
        "<!DOCTYPE html><html><head><title>Online Scout Manager (OSM): Blocked</title></head><body>"
        f"<h1>Blocked</h1><p>{text(reason)}</p>"
        "<p>Do not try again: applications that go on while they are blocked are blocked for good.</p></body></html>"
    )


def server_error(status: int) -> str:
    """What stands in front of OSM when OSM does not answer."""
    phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else "Error"
    return f"<html><head><title>{status} {phrase}</title></head><body><h1>{status} {phrase}</h1></body></html>"


def _wish(scope: str) -> str:
    _, area, level = scope.split(":")
    return f"{MEANING[level]} {AREAS.get(area, area)} of your sections"


def _small(title: str, body: str) -> str:
    return page(
        title,
        f'<main class="small"><p class="brand">Online Scout Manager <span>simulator</span></p>{body}{NOTE}</main>',
    )
