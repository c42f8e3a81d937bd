"""A real browser for tests: Chromium behind the bridge in web/tools/browser.ts, spoken to in JSON lines."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from tests.browser import NODE, ROOT

BRIDGE = ROOT / "web" / "tools" / "browser.ts"
PICTURES = Path(__file__).parent / "pictures"

PHONE = {"width": 390, "height": 844}
DESKTOP = {"width": 1280, "height": 800}


class BrowserError(AssertionError):
    """The browser could not do what the test asked for."""


class Bridge:
    """Owns the Node process with the browser. Calls may be sent together and awaited together."""

    def __init__(self) -> None:
        self._process = subprocess.Popen([NODE, BRIDGE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._next = 0
        self._answers: dict[int, dict[str, Any]] = {}

    def send(self, target: int, method: str, *args: Any, steps: Sequence[Sequence[Any]] = ()) -> int:
        """Ask for something without waiting; the number of the request."""
        assert self._process.stdin is not None
        self._next += 1
        request = {"id": self._next, "target": target, "steps": steps, "method": method, "args": args}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._next

    def receive(self, number: int) -> Any:
        """The answer to that request, or its handle. Raises BrowserError with what the browser said."""
        assert self._process.stdout is not None
        while number not in self._answers:
            line = self._process.stdout.readline()
            if not line:
                raise BrowserError("the browser is gone")
            answer = json.loads(line)
            self._answers[answer["id"]] = answer
        answer = self._answers.pop(number)
        if "error" in answer:
            raise BrowserError(answer["error"])
        return answer.get("handle", answer.get("value"))

    def call(self, target: int, method: str, *args: Any, steps: Sequence[Sequence[Any]] = ()) -> Any:
        return self.receive(self.send(target, method, *args, steps=steps))

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(20)


@dataclass(frozen=True)
class Found:
    """Something on a page, looked up anew with every call; the browser waits until it is there."""

    bridge: Bridge
    page: int
    steps: tuple[tuple[Any, ...], ...]

    def call(self, method: str, *args: Any) -> Any:
        try:
            return self.bridge.call(self.page, method, *args, steps=self.steps)
        except BrowserError as error:
            shown = self.bridge.call(self.page, "evaluate", "document.body.innerText")
            raise BrowserError(f"{error}\nThe page shows:\n{shown}") from None

    def click(self) -> None:
        self.call("click")

    def fill(self, text: str) -> None:
        self.call("fill", text)

    def choose(self, option: str) -> None:
        self.call("selectOption", {"label": option})

    def wait(self) -> None:
        self.call("waitFor")

    def wait_gone(self) -> None:
        self.call("waitFor", {"state": "hidden"})

    def count(self) -> int:
        return cast(int, self.call("count"))

    def text(self) -> str:
        return cast(str, self.call("innerText"))

    def containing(self, text: str) -> Found:
        return replace(self, steps=(*self.steps, ("filter", {"hasText": text})))


@dataclass(frozen=True)
class Page:
    """One tab."""

    bridge: Bridge
    handle: int
    base: str

    def call(self, method: str, *args: Any) -> Any:
        return self.bridge.call(self.handle, method, *args)

    def goto(self, path: str) -> None:
        self.call("goto", self.base + path)

    def reload(self) -> None:
        self.call("reload")

    def close(self) -> None:
        self.call("close")

    def evaluate(self, expression: str) -> Any:
        return self.call("evaluate", expression)

    def press(self, key: str) -> None:
        """Press a key, whatever has the focus."""
        self.bridge.call(0, "press", self.handle, key)

    def role(self, role: str, name: str) -> Found:
        return Found(self.bridge, self.handle, (("getByRole", role, {"name": name, "exact": True}),))

    def button(self, name: str) -> Found:
        return self.role("button", name)

    def link(self, name: str) -> Found:
        return self.role("link", name)

    def label(self, name: str) -> Found:
        return Found(self.bridge, self.handle, (("getByLabel", name, {"exact": True}),))

    def css(self, selector: str) -> Found:
        return Found(self.bridge, self.handle, (("locator", selector),))

    def sees(self, text: str) -> None:
        """Wait until this text can be seen."""
        Found(self.bridge, self.handle, (("getByText", text), ("first",))).wait()

    def axe(self) -> list[str]:
        """What axe finds wrong with the page as it is."""
        return cast(list[str], self.bridge.call(0, "axe", self.handle))

    def picture(self, name: str) -> None:
        """Keep what the page looks like, for people."""
        self.call("screenshot", {"path": str(PICTURES / f"{name}.png"), "animations": "disabled"})


@dataclass
class Device:
    """A browser of its own: cookies, storage and service worker are nobody else's."""

    bridge: Bridge
    handle: int
    base: str
    failures_expected: bool = False
    pages: list[Page] = field(default_factory=list)

    def page(self, path: str = "") -> Page:
        """A new tab, at this path if one is given."""
        page = Page(self.bridge, self.bridge.call(self.handle, "newPage"), self.base)
        self.pages.append(page)
        if path:
            page.goto(path)
        return page

    def begin_with(self, script: str) -> None:
        """Run this in every page before its own scripts."""
        self.bridge.call(self.handle, "addInitScript", {"content": script})

    def offline(self, now: bool) -> None:
        self.bridge.call(self.handle, "setOffline", now)

    def sync(self, scope: str, tag: str) -> None:
        """The network is back: wake the service worker as a browser with Background Sync does."""
        self.bridge.call(0, "sync", self.page().handle, self.base + scope, tag)

    def answer_with(
        self, method: str, end: str, status: int, body: Any, headers: dict[str, str] | None = None, times: int = 1
    ) -> None:
        """The pages get this for requests whose path ends so; the server does not hear of them."""
        answer = {"status": status, "json": body, "headers": headers or {}}
        self.bridge.call(0, "intercept", self.handle, method, end, answer, times)

    def keep_waiting(self, method: str, end: str) -> None:
        """The next request of the pages whose path ends so does not leave until `let_go`."""
        self.bridge.call(0, "intercept", self.handle, method, end, None, 1)

    def keep_answer(self, method: str, end: str) -> None:
        """What the server says to the next request of the pages whose path ends so arrives after `let_go` only."""
        self.bridge.call(0, "intercept", self.handle, method, end, "late", 1)

    def kept_waiting(self) -> int:
        """How many requests or answers wait."""
        return cast(int, self.bridge.call(0, "keptWaiting", self.handle))

    def let_go(self) -> None:
        self.bridge.call(0, "letGo", self.handle)

    def problems(self) -> list[str]:
        """What the pages complained about; requests that failed are left out where a test makes them fail."""
        found: list[str] = self.bridge.call(0, "problems", self.handle)
        return [one for one in found if not (self.failures_expected and "Failed to load resource" in one)]

    def close(self) -> None:
        self.bridge.call(self.handle, "close")


def open_device(bridge: Bridge, base: str, **options: Any) -> Device:
    """A phone, unless the options say otherwise."""
    chosen = {"viewport": PHONE, "hasTouch": True, "locale": "en-GB", "timezoneId": "Europe/London", **options}
    return Device(bridge, bridge.call(0, "open", chosen), base)
