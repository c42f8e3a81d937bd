"""What people see on their way to let a display in: type the code, confirm, sign in at OSM, choose the section."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any
from urllib.parse import quote

import msgspec
from aiohttp import web

from carrick.errors import StoreError
from carrick.relay.threads import Threads
from carrick.state.kv import Kv
from carrick.web.headers import CSP, PagePolicy
from carrick.web.routes import Call, Route
from carrick_scoreboard.notes import Notes
from carrick_scoreboard.pages import device as pages
from carrick_scoreboard.pages import troubles
from carrick_scoreboard.pages.render import Html, style, style_path
from carrick_scoreboard.routes.parameters import BadParameters, form_of
from carrick_scoreboard.sealing import KeyRing, digest, short
from carrick_scoreboard.settings import Rate, ScoreboardSettings
from carrick_scoreboard.sign_in import DEVICE, NotSignedIn, SignedIn, SignIn
from carrick_scoreboard.store.clients import Clients
from carrick_scoreboard.store.devices import MAX_NAME, DeviceCode, Devices
from carrick_scoreboard.user_codes import MAX_TYPED, read_user_code, shown
from carrick_scoreboard.web_security import Cookies, ForgedForm, Forms, Limits, new_secret, visitor

log = logging.getLogger("carrick.scoreboard.pages")

BROWSER = "carrick_browser"
"""The cookie of a browser that has seen a form."""
CHOICE_SECONDS = 600
"""How long a person may take to choose."""
MAX_SECTIONS = 1_000
SIGN_IN_RATE = Rate(20, 60)
FLOW = re.compile(r"[0-9a-f]{8}")

NO_CODE = "That is no code: it has eight letters, none of them a vowel or Y. Please look again."
WRONG_CODE = "This code does not work. It may be mistyped, or too old: look at the display for the one it shows now."


class Chooser(msgspec.Struct, frozen=True, kw_only=True):
    """A person who has signed in and may let one display in. Found by a secret that is new after the sign-in."""

    code_id: int
    user_code: str
    user_id: int
    person: str
    choices: tuple[pages.Choice, ...]
    done: tuple[str, str] | None = None
    """The display's name and its section, once they have."""


class Stop(Exception):
    """Answer with this page instead."""

    def __init__(self, page: Html, status: int, retry_after: int | None = None) -> None:
        super().__init__(status)
        self.page = page
        self.status = status
        self.retry_after = retry_after


class DevicePages:
    """The pages, in the order in which a person sees them. No GET changes anything but counters."""

    def __init__(
        self,
        settings: ScoreboardSettings,
        devices: Devices,
        clients: Clients,
        threads: Threads,
        kv: Kv,
        keys: KeyRing,
        sign_in: SignIn,
        now: Callable[[], datetime],
    ) -> None:
        self._settings = settings
        self._devices = devices
        self._clients = clients
        self._threads = threads
        self._kv = kv
        self._limits = Limits(kv)
        self._forms = Forms(keys, settings.exposed_domain)
        self._cookies = Cookies(is_https=settings.is_https)
        self._choosers = Notes(kv, keys, "device_choice", Chooser, seconds=CHOICE_SECONDS)
        self._sign_in = sign_in
        self._now = now
        self._to_osm = PagePolicy(form_action=("'self'", settings.osm.domain))

    async def start(self, request: web.Request) -> web.Response:
        """Type the code, or with one in the query: is it your display?"""
        typed = request.query.get("user_code", "")
        if not typed.strip():
            return html_answer(pages.entry())
        code = await self._open_code(request, typed)
        client = await self._threads.call(self._clients.get, code.client_id)
        holder = self._cookies.get(request, BROWSER) or new_secret()
        page = pages.confirm(
            code,
            (client.comment if client else "") or code.client_id,
            visitor(request, self._settings),
            self._now(),
            self._forms.mark(holder, "confirm", code.user_code),
        )
        answer = html_answer(page, policy=self._to_osm)
        self._cookies.put(answer, BROWSER, holder)
        return answer

    async def short(self, request: web.Request) -> web.Response:
        """The short address on a display: the same page."""
        typed = request.match_info["code"][:MAX_TYPED]
        code = read_user_code(typed)
        return redirect(f"{pages.START}?user_code={shown(code) if code else quote(typed, safe='')}")

    async def confirm(self, request: web.Request) -> web.Response:
        """Yes, it is mine: off to OSM."""
        form = await form_of(request)
        holder = self._cookies.get(request, BROWSER)
        user_code = self._own_code(request, form, holder, "confirm")
        await self._pass_limit(request, "sign_in", SIGN_IN_RATE, pages.code_link(user_code))
        code = await self._still_open(user_code)
        return redirect(await self._sign_in.begin(DEVICE, holder or "", "section", code.user_code))

    async def callback(self, request: web.Request) -> web.Response:
        """Back from OSM."""
        try:
            signed_in = await self._sign_in.finish(DEVICE, self._cookies.get(request, BROWSER), request.query)
        except NotSignedIn as refused:
            page, status, retry_after = troubles.not_signed_in(refused, self._now())
            raise Stop(page, status, retry_after) from None
        code = await self._still_open(signed_in.matter)
        if not signed_in.profile.sections:
            raise Stop(troubles.no_sections(signed_in.profile.full_name, code.user_code), 403)
        secret = new_secret()
        await self._choosers.keep(secret, self._chooser(code, signed_in))
        answer = redirect(f"{signed_in.path}?flow={short(secret)}")
        self._cookies.put(answer, _flow_cookie(short(secret)), secret, seconds=CHOICE_SECONDS)
        return answer

    async def section(self, request: web.Request) -> web.Response:
        """Choose the section."""
        flow = request.query.get("flow", "")
        secret, chooser = await self._chooser_of(request, flow)
        return self._finished(flow) if chooser.done else html_answer(self._section_page(flow, secret, chooser))

    async def select(self, request: web.Request) -> web.Response:
        """Let the display in for that section. What is not in the person's profile is refused."""
        form = await form_of(request)
        flow = form.get("flow", "")
        holder = self._flow_secret(request, flow)
        self._forms.check(request, form, holder, "section", flow)
        secret, chooser = await self._chooser_of(request, flow)
        if chooser.done:
            return self._finished(flow)
        choice = _chosen(chooser, form.get("section_id", ""))
        name = _clean(form.get("name", ""))
        if name is None:
            said = f"Give the display a name of 1 to {MAX_NAME} ordinary characters."
            raise Stop(self._section_page(flow, secret, chooser, chosen=choice.id, problem=said), 400)
        await self._approve(chooser, choice, name)
        await self._choosers.keep(secret, msgspec.structs.replace(chooser, done=(name, choice.name)))
        return self._finished(flow)

    async def done(self, request: web.Request) -> web.Response:
        """The display is let in."""
        flow = request.query.get("flow", "")
        _, chooser = await self._chooser_of(request, flow)
        return html_answer(pages.done(*chooser.done)) if chooser.done else redirect(_at(DEVICE.places["section"], flow))

    async def ask_cancel(self, request: web.Request) -> web.Response:
        """Turn it away? Only asks."""
        typed = request.query.get("user_code", "")
        if not typed.strip():
            return redirect(pages.START)
        code = await self._open_code(request, typed)
        holder = self._cookies.get(request, BROWSER) or new_secret()
        answer = html_answer(pages.cancel(code.user_code, self._forms.mark(holder, "cancel", code.user_code)))
        self._cookies.put(answer, BROWSER, holder)
        return answer

    async def cancel(self, request: web.Request) -> web.Response:
        """Turn it away."""
        form = await form_of(request)
        user_code = self._own_code(request, form, self._cookies.get(request, BROWSER), "cancel")
        code = await self._still_open(user_code)
        if not await self._threads.call(self._devices.deny, code):
            raise Stop(troubles.used_code(), 409)
        log.info("device.deny", extra={"client_id": code.client_id})
        return html_answer(troubles.turned_away())

    async def _open_code(self, request: web.Request, typed: str) -> DeviceCode:
        """The sign-in that somebody has typed the code of. Guesses are few; the right one may be asked for again."""
        user_code = read_user_code(typed)
        if user_code is None:
            raise Stop(pages.entry(typed[:MAX_TYPED], NO_CODE), 400)
        known = f"entered:{digest(visitor(request, self._settings).neighbourhood + ' ' + user_code)}"
        if await self._kv.get(known) is None:
            await self._pass_limit(request, "entry", self._settings.entry_rate, pages.code_link(user_code))
        code = await self._threads.call(self._devices.code, user_code)
        if code is None:
            raise Stop(pages.entry(shown(user_code), WRONG_CODE), 404)
        await self._kv.set(known, b"1", ttl=self._settings.device_code_seconds)
        return _open(code)

    async def _still_open(self, user_code: str) -> DeviceCode:
        """The sign-in of a code that this person has been shown before."""
        code = await self._threads.call(self._devices.code, user_code)
        if code is None:
            raise Stop(troubles.old_code(), 410)
        return _open(code)

    def _own_code(self, request: web.Request, form: dict[str, str], holder: str | None, name: str) -> str:
        """The code in a form that this browser was shown. Raises ForgedForm."""
        user_code = read_user_code(form.get("user_code", "")) or ""
        self._forms.check(request, form, holder, name, user_code)
        return user_code

    async def _pass_limit(self, request: web.Request, what: str, rate: Rate, link: pages.Link) -> None:
        seconds = await self._limits.wait(what, visitor(request, self._settings), rate)
        if seconds:
            raise Stop(troubles.too_many(seconds, link), 429, seconds)

    def _chooser(self, code: DeviceCode, signed_in: SignedIn) -> Chooser:
        profile = signed_in.profile
        choices = pages.choices_of(profile, self._now().date())
        if len(choices) > MAX_SECTIONS:
            log.warning("device.many_sections", extra={"user_id": profile.user_id, "sections": len(choices)})
        return Chooser(
            code_id=code.id,
            user_code=code.user_code,
            user_id=profile.user_id,
            person=profile.full_name or "there",
            choices=choices[:MAX_SECTIONS],
        )

    async def _chooser_of(self, request: web.Request, flow: str) -> tuple[str, Chooser]:
        secret = self._flow_secret(request, flow)
        chooser = await self._choosers.read(secret) if secret else None
        if secret is None or chooser is None:
            raise Stop(troubles.old_page(), 410)
        return secret, chooser

    def _flow_secret(self, request: web.Request, flow: str) -> str | None:
        return self._cookies.get(request, _flow_cookie(flow)) if FLOW.fullmatch(flow) else None

    def _section_page(self, flow: str, secret: str, chooser: Chooser, **more: Any) -> Html:
        mark = self._forms.mark(secret, "section", flow)
        return pages.section(flow, chooser.user_code, chooser.person, chooser.choices, mark, **more)

    async def _approve(self, chooser: Chooser, choice: pages.Choice, name: str) -> None:
        code = await self._still_open(chooser.user_code)
        if code.id != chooser.code_id:
            raise Stop(troubles.old_code(), 410)
        device = await self._threads.call(
            self._devices.approve,
            code,
            osm_user_id=chooser.user_id,
            section_id=choice.id,
            name=name,
            term_id=choice.term_id,
            term_end_date=choice.term_ends,
        )
        if device is None:
            raise Stop(troubles.used_code(), 409)
        log.info("device.approve", extra={"device": device.id, "user_id": chooser.user_id, "section": choice.id})

    def _finished(self, flow: str) -> web.Response:
        return redirect(_at("/device/done", flow))


def _open(code: DeviceCode) -> DeviceCode:
    """The sign-in, unless somebody has decided about it."""
    if code.status != "pending":
        raise Stop(troubles.used_code(), 409)
    return code


def _chosen(chooser: Chooser, given: str) -> pages.Choice:
    """One of the sections that the person sees; anything else is refused without asking OSM."""
    for choice in chooser.choices:
        if str(choice.id) == given:
            return choice
    log.warning("device.foreign_section", extra={"user_id": chooser.user_id, "section": given[:20]})
    raise Stop(troubles.foreign_section(), 403)


def _clean(name: str) -> str | None:
    """The name with single spaces; None for one that cannot be shown or kept."""
    name = " ".join(name.split())
    return name if 1 <= len(name) <= MAX_NAME and name.isprintable() else None


def _flow_cookie(flow: str) -> str:
    """One for each flow, so that two tabs do not disturb each other."""
    return f"carrick_flow_{flow}"


def _at(path: str, flow: str) -> str:
    return f"{path}?flow={quote(flow, safe='')}"


def html_answer(page: Html, status: int = 200, *, policy: PagePolicy = PagePolicy()) -> web.Response:  # noqa: B008  immutable
    """A page, which no browser keeps."""
    headers = {CSP: policy.header, "Cache-Control": "no-store"}
    return web.Response(text=page, status=status, content_type="text/html", charset="utf-8", headers=headers)


def redirect(place: str) -> web.Response:
    """Go on there, with a GET."""
    return web.Response(status=303, headers={"Location": place, "Cache-Control": "no-store"})


Handler = Callable[[web.Request], Awaitable[web.Response]]


def friendly(handler: Handler) -> Callable[[Call[Any, Any]], Awaitable[web.Response]]:
    """What is wrong is told on a page, too."""

    async def handle(call: Call[Any, Any]) -> web.Response:
        try:
            return await handler(call.request)
        except Stop as stop:
            answer = html_answer(stop.page, stop.status)
            if stop.retry_after is not None:
                answer.headers["Retry-After"] = str(stop.retry_after)
            return answer
        except ForgedForm:
            log.warning("web.forged_form", extra={"path": call.request.path})
            return html_answer(troubles.forged(), 403)
        except BadParameters as bad:
            return html_answer(troubles.unreadable(str(bad)), bad.status)
        except StoreError:
            log.exception("web.store_failed", extra={"path": call.request.path})
            return html_answer(troubles.store_away(), 503)

    return handle


async def _style(_: web.Request) -> web.Response:
    headers = {"Cache-Control": "public, max-age=31536000, immutable"}
    return web.Response(body=style(), content_type="text/css", charset="utf-8", headers=headers)


def routes(
    settings: ScoreboardSettings,
    devices: Devices,
    clients: Clients,
    threads: Threads,
    kv: Kv,
    keys: KeyRing,
    sign_in: SignIn,
    now: Callable[[], datetime],
) -> list[Route]:
    """The pages and their style sheet. `now` tells the time in the zone of the sections."""
    people = DevicePages(settings, devices, clients, threads, kv, keys, sign_in, now)
    described: list[tuple[str, str, str, Handler]] = [
        ("GET", "/device", "Type the code, or confirm it", people.start),
        ("GET", "/d/{code}", "The short address on a display", people.short),
        ("POST", "/device/confirm", "Go on to OSM", people.confirm),
        ("GET", DEVICE.callback, "Back from OSM", people.callback),
        ("GET", DEVICE.places["section"], "Choose the section", people.section),
        ("POST", DEVICE.places["section"], "Let the display in", people.select),
        ("GET", "/device/done", "The display is let in", people.done),
        ("GET", "/device/cancel", "Turn the display away?", people.ask_cancel),
        ("POST", "/device/cancel", "Turn the display away", people.cancel),
        ("GET", style_path(), "The style sheet", _style),
    ]
    return [
        Route(method=method, path=path, summary=summary, handle=friendly(handler), gives=str)
        for method, path, summary, handler in described
    ]
