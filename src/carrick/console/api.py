"""The console of one service: its page, its endpoints, and what they share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

from aiohttp import web

from carrick.console import answers
from carrick.console.actions import Actions
from carrick.console.broadcast import Broadcast
from carrick.console.door import COOKIE, PATH, SIGNED_IN_SECONDS, Door
from carrick.console.history import History
from carrick.console.lists import dead_look, listed, searched
from carrick.console.overview import Looker
from carrick.console.plug import NoPlug, Plug
from carrick.errors import InvalidInput
from carrick.outbox.explain import explain
from carrick.outbox.store import Store
from carrick.outbox.story import story_of
from carrick.relay.threads import Threads
from carrick.settings import Settings
from carrick.web import files
from carrick.web.routes import Call, Route, as_json
from carrick.web.tokens import AdminToken

PAYLOAD_CHARACTERS = 65_536


class Console:
    """Mounted by every service: give `routes` to its application, then `attach` it."""

    def __init__(
        self,
        store: Store,
        threads: Threads,
        settings: Settings,
        token: AdminToken,
        *,
        service: str,
        history: History | None = None,
        plug: Plug | None = None,
        is_demo: bool = False,
    ) -> None:
        self._store = store
        self._threads = threads
        self._service = service
        self._instance = settings.instance_id
        self._enabled = settings.internal_admin_enabled
        self._is_demo = is_demo and not settings.admin_token
        self._plug: Plug = plug or NoPlug()
        self._door = Door(token, enabled=settings.internal_admin_enabled, is_demo=is_demo)
        self._looker = Looker(store, threads, history or History(), settings.instance_id)
        self._broadcast = Broadcast(self._looker.look)

    def attach(self, app: web.Application) -> None:
        """Measure depths while the application runs, where the console is enabled; let watchers go when it stops."""
        if self._enabled:
            app.cleanup_ctx.append(self._measuring)
        app.on_shutdown.append(self.close)

    async def close(self, _: web.Application | None = None) -> None:
        """Let everybody who watches go."""
        await self._broadcast.close()

    async def _measuring(self, _: web.Application) -> AsyncIterator[None]:
        measuring = asyncio.create_task(self._looker.keep_measuring())
        yield
        measuring.cancel()
        await asyncio.gather(measuring, return_exceptions=True)

    def routes(self) -> list[Route]:
        """Every endpoint, there in any case: they answer 404 unless the console is enabled."""
        door = self._door
        actions = Actions(self._store, self._threads, door, self._plug)
        return [
            _page("/console", "To the console", _to_page, door),
            _page("/console/", "The console", _file, door),
            _page("/console/{path:.+}", "A file of the console", _file, door),
            Route(method="GET", path=f"{PATH}/session", summary="Who is signed in", handle=self.session,
                  gives=answers.SessionLook, guards=[door.exists]),
            Route(method="POST", path=f"{PATH}/session", summary="Sign in", handle=self.sign_in, takes=answers.SignIn,
                  gives=None, status=204, guards=[door.exists]),
            Route(method="DELETE", path=f"{PATH}/session", summary="Sign out", handle=self.sign_out, gives=None,
                  status=204, guards=[door.act]),
            self._read("overview", "Everything at a glance", self.overview, answers.Overview),
            self._read("events", "The overview every two seconds", self.events, str),
            self._read("entries", "Entries, page by page", self.entries, answers.EntryLines, answers.EntriesQuery),
            self._read("search", "Entries by id, key, group, tenant", self.search, answers.Search, answers.SearchQuery),
            self._read("dead", "What dead entries died of", self.dead, answers.DeadLook, answers.DeadQuery),
            self._read("entries/{id}", "One entry and its story", self.entry, answers.EntryLook),
            *actions.routes(),
            *self._plug.routes(door),
        ]  # fmt: skip

    def _read(self, path: str, summary: str, handle: Any, gives: Any, query: Any = None) -> Route:
        return Route(
            method="GET",
            path=f"{PATH}/{path}",
            summary=summary,
            handle=handle,
            gives=gives,
            query=query,
            guards=[self._door.look],
        )

    async def session(self, call: Call[Any, Any]) -> web.Response:
        person = self._door.person(call.request)
        look = answers.SessionLook(
            signed_in=person is not None,
            name="" if person is None else person.name,
            mark="" if person is None else self._door.mark(call.request),
            service=self._service,
            instance=self._instance if person is not None else "",
            panels=self._plug.panels if person is not None else (),
            is_demo=self._is_demo,
        )
        return _not_kept(as_json(look))

    async def sign_in(self, call: Call[None, answers.SignIn]) -> web.Response:
        name = call.body.name.strip()
        if not name or not name.isprintable():
            raise InvalidInput("name", "is empty or not printable", "printable characters")
        response = web.Response(status=204)
        response.set_cookie(
            COOKIE,
            self._door.sign_in(call.request, call.body.token, name),
            max_age=SIGNED_IN_SECONDS,
            path=PATH,
            httponly=True,
            samesite="Strict",
            secure=call.request.secure or call.request.headers.get("X-Forwarded-Proto") == "https",
        )
        return response

    async def sign_out(self, call: Call[Any, Any]) -> web.Response:
        self._door.sign_out(call.request)
        response = web.Response(status=204)
        response.del_cookie(COOKIE, path=PATH)
        return response

    async def overview(self, _: Call[Any, Any]) -> web.Response:
        return _not_kept(as_json(await self._looker.look()))

    async def events(self, call: Call[Any, Any]) -> web.StreamResponse:
        return await self._broadcast.serve(call.request, self._door.look)

    async def entries(self, call: Call[answers.EntriesQuery, None]) -> web.Response:
        return _not_kept(as_json(await self._threads.call(listed, self._store, call.query)))

    async def search(self, call: Call[answers.SearchQuery, None]) -> web.Response:
        return _not_kept(as_json(await self._threads.call(searched, self._store, call.query)))

    async def dead(self, call: Call[answers.DeadQuery, None]) -> web.Response:
        return _not_kept(as_json(await self._threads.call(dead_look, self._store, call.query)))

    async def entry(self, call: Call[Any, Any]) -> web.Response:
        try:
            entry_id = UUID(call.request.match_info["id"])
        except ValueError:
            raise InvalidInput("id", f"{call.request.match_info['id'][:80]!r} is none", "the id of an entry") from None
        look = await self._threads.call(self._look_at, entry_id)
        return _not_kept(as_json(look))

    def _look_at(self, entry_id: UUID) -> answers.EntryLook:
        """In a thread."""
        standing = self._store.standing(entry_id)
        contents = self._store.contents(entry_id, characters=PAYLOAD_CHARACTERS)
        explanation = explain(standing)
        return answers.EntryLook(
            standing=standing,
            contents=contents,
            reason=explanation.reason,
            sentence=explanation.sentence,
            story=story_of(standing),
        )


def _page(path: str, summary: str, handle: Any, door: Door) -> Route:
    return Route(method="GET", path=path, summary=summary, handle=handle, gives=str, guards=[door.exists])


async def _to_page(_: Call[Any, Any]) -> web.Response:
    return web.Response(status=308, headers={"Location": "/console/"})


async def _file(call: Call[Any, Any]) -> web.Response:
    return files.answer(call.request, "carrick.web", "console", call.request.match_info.get("path") or "index.html")


def _not_kept(response: web.Response) -> web.Response:
    """No browser and no proxy keeps what the console tells."""
    response.headers["Cache-Control"] = "no-store"
    return response
