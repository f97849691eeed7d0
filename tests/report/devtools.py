"""A small client of Chromium's DevTools protocol, enough to open a page, use it and look at it."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import aiohttp

T = TypeVar("T")

FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--no-default-browser-check", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--disable-extensions", "--disable-dev-shm-usage", "--hide-scrollbars",
    "--force-color-profile=srgb", "--remote-debugging-port=0",
)  # fmt: skip
START_S = 20.0
ANSWER_S = 15.0

KEYS = {
    "Tab": 9, "Enter": 13, " ": 32, "ArrowUp": 38, "ArrowDown": 40, "Home": 36, "End": 35,
}  # fmt: skip


def find_chromium() -> str | None:
    """Path of an installed Chromium or Chrome."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next((path for name in names if (path := shutil.which(name))), None)


class Page:
    """One tab. Console lines, exceptions and requests are collected from the start."""

    def __init__(self, browser: Browser, session: str) -> None:
        self.browser, self.session = browser, session
        self.console: list[str] = []
        self.requests: list[str] = []

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self.browser.call(method, params, self.session)

    def open(self, url: str) -> None:
        """Load a page and wait until it is complete."""
        self.console.clear()
        self.requests.clear()
        self.browser.loaded.discard(self.session)
        self.call("Page.navigate", url=url)
        self.browser.wait_for(lambda: self.session in self.browser.loaded)

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"]["exception"].get("description"))
        return answer["result"].get("value")

    def size(self, width: int) -> None:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)

    def media(self, *, scheme: str = "light", kind: str = "") -> None:
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", media=kind, features=[feature])

    def scripts(self, *, enabled: bool) -> None:
        self.call("Emulation.setScriptExecutionDisabled", value=not enabled)

    def key(self, key: str) -> None:
        """Press a key."""
        code = {"windowsVirtualKeyCode": KEYS[key], "key": key, "code": key}
        text = {"Enter": "\r", " ": " "}.get(key)
        down = {"text": text} if text else {}
        kind = "keyDown" if text else "rawKeyDown"
        self.call("Input.dispatchKeyEvent", type=kind, **code, **down)
        self.call("Input.dispatchKeyEvent", type="keyUp", **code)

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def click(self, selector: str) -> None:
        """Click the middle of an element with the mouse."""
        self.evaluate(
            f"document.querySelector({json.dumps(selector)}).scrollIntoView({{block:'center',behavior:'instant'}})"
        )
        x, y = self.evaluate(
            f"(()=>{{const r=document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
            "return [r.x+r.width/2,r.y+r.height/2]})()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def pdf(self) -> bytes:
        """Print to PDF with the page's own size."""
        answer = self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
        return base64.b64decode(answer["data"])


class Browser:
    """A headless Chromium with a fresh profile, reached over its own local port."""

    def __init__(self, executable: str) -> None:
        self.profile = Path(tempfile.mkdtemp(prefix="unswayed-browser-"))
        self.process = subprocess.Popen(
            [executable, *FLAGS, f"--user-data-dir={self.profile}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.loop = asyncio.new_event_loop()
        self.numbers = itertools.count(1)
        self.answers: dict[int, dict[str, Any]] = {}
        self.pages: dict[str, Page] = {}
        self.loaded: set[str] = set()
        try:
            self.run(self._connect())
        except BaseException:
            self.close()
            raise

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    async def _connect(self) -> None:
        file = self.profile / "DevToolsActivePort"
        end = time.monotonic() + START_S
        while not (file.exists() and len(file.read_text().split()) == 2):
            if time.monotonic() > end or self.process.poll() is not None:
                raise RuntimeError("Chromium did not start")
            await asyncio.sleep(0.05)
        port, path = file.read_text().split()
        self.client = aiohttp.ClientSession()
        self.socket = await self.client.ws_connect(
            f"ws://127.0.0.1:{port}{path}", max_msg_size=0, autoping=True
        )

    async def _next(self) -> None:
        message = await asyncio.wait_for(self.socket.receive_json(), ANSWER_S)
        if "id" in message:
            self.answers[message["id"]] = message
            return
        page = self.pages.get(message.get("sessionId", ""))
        if page is None:
            return
        method, params = message["method"], message["params"]
        if method == "Runtime.consoleAPICalled":
            page.console.append(str(params["args"]))
        elif method == "Runtime.exceptionThrown":
            page.console.append(str(params["exceptionDetails"]))
        elif method == "Log.entryAdded":
            page.console.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            page.requests.append(params["request"]["url"])
        elif method == "Page.loadEventFired":
            self.loaded.add(page.session)

    async def _call(
        self, method: str, params: dict[str, Any], session: str | None
    ) -> dict[str, Any]:
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        await self.socket.send_json(message)
        while number not in self.answers:
            await self._next()
        answer = self.answers.pop(number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        result: dict[str, Any] = answer["result"]
        return result

    def call(
        self, method: str, params: dict[str, Any] | None = None, session: str | None = None
    ) -> dict[str, Any]:
        return self.run(self._call(method, params or {}, session))

    def wait_for(self, done: Any) -> None:
        while not done():
            self.run(self._next())

    def page(self) -> Page:
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})
        page = Page(self, session["sessionId"])
        self.pages[page.session] = page
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        return page

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self.run(self._close())
        self.loop.close()
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    async def _close(self) -> None:
        await self._call("Browser.close", {}, None)
        await self.socket.close()
        await self.client.close()
