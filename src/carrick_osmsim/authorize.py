"""`/oauth/authorize`: checks what an application asks for, signs a person in, asks for consent, sends the code back."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from urllib.parse import urlencode, urlsplit

import msgspec

from carrick_osmsim import pages
from carrick_osmsim.clock import Clock
from carrick_osmsim.profile import SCOPES
from carrick_osmsim.reply import Reply, as_html, sent_to
from carrick_osmsim.tokens import Tokens
from carrick_osmsim.world import App, User, World

TICKET_SECONDS = 600
KEPT_TICKETS = 200


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What an application asks for, checked."""

    app: App
    redirect_uri: str
    scopes: tuple[str, ...]
    state: str | None
    challenge: str | None
    method: str
    fields: dict[str, str]
    """As they were sent, for the next form."""


class Ticket(msgspec.Struct, frozen=True):
    """A person who has signed in and looks at the consent page until then (Unix seconds)."""

    asked: Asked
    user_id: int
    until: float


class Refused(Exception):
    """The answer to a request that is not as it should be."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.effect)
        self.reply = reply


class Authorize:
    """The pages a person goes through. Who has signed in is known by a ticket in the consent form, good once."""

    def __init__(self, world: World, clock: Clock, tokens: Tokens) -> None:
        self._world = world
        self._clock = clock
        self._tokens = tokens
        self._tickets: dict[str, Ticket] = {}

    def show(self, query: Mapping[str, str]) -> Reply:
        """The sign-in page, or what is wrong with the request."""
        try:
            asked = self._asked(query)
        except Refused as refused:
            return refused.reply
        page = pages.sign_in(asked.app, list(self._world.users.values()), asked.fields)
        return as_html(page, effect=f"sign-in page for {asked.app.name}")

    def submit(self, form: Mapping[str, str]) -> Reply:
        """A form that was sent: sign in, allow or deny."""
        if "ticket" in form:
            return self._decide(form)
        try:
            asked = self._asked(form)
        except Refused as refused:
            return refused.reply
        user = self._signed_in(form)
        if user is None:
            people = list(self._world.users.values())
            said = "That e-mail address and password do not go together. Pick somebody from the list, or try again."
            page = pages.sign_in(asked.app, people, asked.fields, said, form.get("email", ""))
            return as_html(page, 401, effect="refused: wrong password")
        page = pages.consent(asked.app, user, asked.scopes, self._ticket(asked, user))
        return as_html(page, effect=f"{user.full_name} signed in")

    def _signed_in(self, form: Mapping[str, str]) -> User | None:
        """Picked from the list, or typed in."""
        for user in self._world.users.values():
            if str(user.user_id) == form.get("pick"):
                return user
            typed = form.get("password", "").encode()
            same = user.email == form.get("email", "").strip().lower()
            if same and hmac.compare_digest(typed, user.password.encode()):
                return user
        return None

    def _ticket(self, asked: Asked, user: User) -> str:
        name = f"ticket-{self._world.next_serial()}"
        self._tickets[name] = Ticket(asked, user.user_id, self._clock.now() + TICKET_SECONDS)
        for old in list(self._tickets)[:-KEPT_TICKETS]:
            del self._tickets[old]
        return name

    def _decide(self, form: Mapping[str, str]) -> Reply:
        ticket = self._tickets.pop(form["ticket"], None)
        if ticket is None or ticket.until <= self._clock.now():
            return _wrong("This page has been used or is too old. Go back to the application and start again.")
        asked, user = ticket.asked, self._world.users[ticket.user_id]
        if form.get("decision") != "allow":
            said = {"error": "access_denied", "error_description": "The user denied the request"}
            return _back(asked.redirect_uri, asked.state, said, f"{user.full_name} said no")
        code = self._tokens.issue_code(
            asked.app, asked.redirect_uri, user.user_id, asked.scopes, asked.challenge, asked.method
        )
        return _back(asked.redirect_uri, asked.state, {"code": code.code}, f"{user.full_name} said yes")

    def _asked(self, fields: Mapping[str, str]) -> Asked:
        """Raises Refused. Until the application and its address are known, nobody is sent anywhere."""
        app = self._world.apps.get(fields.get("client_id", ""))
        if app is None:
            raise Refused(_wrong(f"There is no application with the client_id {fields.get('client_id', '')!r}."))
        address = fields.get("redirect_uri", app.redirect_uris[0] if len(app.redirect_uris) == 1 else "")
        if address not in app.redirect_uris:
            raise Refused(_wrong(f"The redirect_uri {address!r} is not registered for {app.name}."))
        state = fields.get("state")
        scopes = tuple(fields.get("scope", "").split())
        method = fields.get("code_challenge_method", "plain")
        problem = _problem(fields, scopes, method)
        if problem is not None:
            raise Refused(_back(address, state, problem, f"refused: {problem['error_description']}"))
        return Asked(
            app=app,
            redirect_uri=address,
            scopes=scopes,
            state=state,
            challenge=fields.get("code_challenge"),
            method=method,
            fields={name: fields[name] for name in _FIELDS if name in fields},
        )


_FIELDS = ("response_type", "client_id", "redirect_uri", "scope", "state", "code_challenge", "code_challenge_method")


def _problem(fields: Mapping[str, str], scopes: tuple[str, ...], method: str) -> dict[str, str] | None:
    """What is wrong with a request whose application is known, as OAuth names it."""
    unknown = [scope for scope in scopes if scope not in SCOPES]
    if fields.get("response_type") != "code":
        error, said = "unsupported_response_type", "response_type must be code"
    elif unknown:
        error, said = "invalid_scope", f"{unknown[0]} is not a scope"
    elif method not in ("plain", "S256"):
        error, said = "invalid_request", "code_challenge_method must be plain or S256"
    else:
        return None
    return {"error": error, "error_description": said}


def _back(address: str, state: str | None, answer: dict[str, str], effect: str) -> Reply:
    """Send the browser back to the application, with its state."""
    fields = answer if state is None else {**answer, "state": state}
    joint = "&" if urlsplit(address).query else "?"
    return sent_to(f"{address}{joint}{urlencode(fields)}", effect=effect)


def _wrong(said: str) -> Reply:
    return as_html(pages.wrong_request(said), 400, effect=f"refused: {said}")
