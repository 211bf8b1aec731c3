"""A headless Chromium, driven over its DevTools pipe, and whether it finds a page readable."""

import base64
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_CHECKS = Path(__file__).with_name("page_checks.js").read_text()
PROGRAMS = ("chromium", "google-chrome", "chromium-browser")


class Browser:
    """One page at a time. What it complains of is kept in ``complaints``."""

    def __init__(self, process: subprocess.Popen[bytes], send: int, receive: int) -> None:
        self._process, self._send, self._receive = process, send, receive
        self._pending, self._number = b"", 0
        self.complaints: list[str] = []
        self._loaded = False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session: str | None = None
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def open(
        self,
        path: Path,
        *,
        width: int,
        height: int = 900,
        dark: bool = False,
        script: bool = True,
        paper: bool = False,
    ) -> None:
        """Show a file at this width, as a reader with these settings sees it."""
        self.complaints.clear()
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        media = "print" if paper else ""
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self.call("Emulation.setScriptExecutionDisabled", value=not script)
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 500,
        )
        self._loaded = False
        self.call("Page.navigate", url=path.resolve().as_uri())
        while not self._loaded:
            self._hear()

    def evaluate(self, expression: str) -> Any:
        reply = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in reply, reply
        return reply["result"].get("value")

    def ask(self, function: str) -> list[Any]:
        """The complaints of a function of page_checks.js."""
        complaints: list[Any] = self.evaluate(f"(() => {{\n{_CHECKS}\nreturn {function}()\n}})()")
        return complaints

    def press(self, key: str) -> None:
        """A key such as "Tab" or "Enter" on whatever has the focus."""
        code = {"Tab": 9, "Enter": 13}[key]
        words = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        text = {"text": "\r"} if key == "Enter" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", **words, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **words)

    def faults(self) -> list[str]:
        """Errors on the console, network requests, what overflows or is cut, poor contrast."""
        overflow = [f"{what}: {item}" for what in ("overflow", "cut") for item in self.ask(what)]
        contrast = [f"contrast {item}" for item in self.ask("poorContrast")]
        return self.complaints + overflow + contrast

    def screenshot(self, path: Path) -> None:
        """What is in view, as PNG."""
        path.parent.mkdir(parents=True, exist_ok=True)
        reply = self.call("Page.captureScreenshot")
        path.write_bytes(base64.b64decode(reply["data"]))

    def print_pages(self) -> bytes:
        """The page as PDF."""
        return base64.b64decode(self.call("Page.printToPDF", preferCSSPageSize=True)["data"])

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """A command of the DevTools protocol, and its reply."""
        self._number += 1
        message: dict[str, object] = {"id": self._number, "method": method, "params": parameters}
        if getattr(self, "_session", None):
            message["sessionId"] = self._session
        os.write(self._send, json.dumps(message).encode() + b"\0")
        while True:
            reply = self._hear()
            if reply.get("id") == self._number:
                assert "error" not in reply, reply
                return reply["result"]

    def _hear(self) -> dict[str, Any]:
        while b"\0" not in self._pending:
            chunk = os.read(self._receive, 1 << 20)
            assert chunk, "the browser has gone"
            self._pending += chunk
        line, self._pending = self._pending.split(b"\0", 1)
        message: dict[str, Any] = json.loads(line)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, event: str | None, detail: dict[str, Any]) -> None:
        if event == "Page.loadEventFired":
            self._loaded = True
        elif event == "Runtime.exceptionThrown":
            self.complaints.append(f"exception: {detail['exceptionDetails']['text']}")
        elif event == "Log.entryAdded" and detail["entry"]["level"] in ("error", "warning"):
            self.complaints.append(f"log: {detail['entry']['text']}")
        elif event == "Runtime.consoleAPICalled":
            self.complaints.append(f"console: {detail['type']}")
        elif event == "Network.requestWillBeSent":
            url = detail["request"]["url"]
            if not url.startswith(("file:", "data:", "about:")):
                self.complaints.append(f"network: {url}")


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser of its own; skips the test where none is installed, except in CI."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        assert "CI" not in os.environ, "chromium is missing: apt-get install chromium"
        pytest.skip("no page is looked at: no chromium (apt-get install chromium)")
    to_browser, from_us = os.pipe()
    to_us, from_browser = os.pipe()
    with tempfile.TemporaryDirectory() as profile:
        command = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        flags = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
        flags += ("--remote-debugging-pipe", "--hide-scrollbars")
        process = subprocess.Popen(
            ["bash", "-c", command, "chromium", program, *flags, f"--user-data-dir={profile}"],
            pass_fds=(to_browser, from_browser),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        try:
            yield Browser(process, from_us, to_us)
        finally:
            os.close(from_us)  # the browser ends when its pipe does
            os.close(to_us)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


SMALL_PHONE, PHONE, DESKTOP = 360, 390, 1280
A4 = 703  # CSS pixels between the margins of print.css
MOST_BYTES = 400_000
AXE = Path(__file__).parent / "axe" / "node_modules" / "axe-core" / "axe.min.js"

_RUN = """
axe.run(document, {resultTypes: ['violations']}).then(found => JSON.stringify(
  found.violations.map(({id, help, nodes}) => [id, help, nodes.map(node => node.html)])
))
"""
_UNFOLD = "document.querySelectorAll('details').forEach(each => each.open = true)"
_GROUND = "getComputedStyle(document.body).backgroundColor"


def assert_readable(
    browser: Browser, file: Path, *, script: bool = True, thorough: bool = False
) -> None:
    """A page of at most 400 KB without faults on every screen and on paper.

    script: whether the page's own scripts run. thorough: ask axe-core on every screen; otherwise on
    two, which between them have both widths and both colour schemes. Where axe-core is missing, its
    own test (tests/report/test_html.py) says so.
    """
    assert file.stat().st_size <= MOST_BYTES
    for width in (SMALL_PHONE, PHONE, DESKTOP):
        for dark in (False, True):
            browser.open(file, width=width, dark=dark, script=script)
            browser.evaluate(_UNFOLD)
            faults = browser.faults() + browser.ask("brokenLines")
            if AXE.exists() and (thorough or dark == (width < DESKTOP)):
                faults += accessibility(browser)
            assert faults == [], (file.name, width, dark)
    assert browser.ask("deadContents") == []
    browser.open(file, width=A4, dark=True, script=script, paper=True)
    assert browser.faults() == [], (file.name, "on paper")
    assert browser.ask("folded") == []
    assert browser.evaluate(_GROUND) == "rgb(255, 255, 255)"


def sheets(browser: Browser) -> int:
    """How many pages of A4 the page takes on paper."""
    return len(re.findall(rb"/Type\s*/Page\b", browser.print_pages()))


def fonts(browser: Browser, selector: str) -> dict[str, int]:
    """The fonts that an element's text is drawn in, and how many glyphs are of each."""
    for domain in ("DOM", "CSS"):
        browser.call(f"{domain}.enable")
    root = browser.call("DOM.getDocument")["root"]["nodeId"]
    node = browser.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
    used = browser.call("CSS.getPlatformFontsForNode", nodeId=node)["fonts"]
    return {font["familyName"]: int(font["glyphCount"]) for font in used}


def accessibility(browser: Browser) -> list[str]:
    """What axe-core finds on the page that is open."""
    if not AXE.exists():
        assert "CI" not in os.environ, "axe-core is missing: npm ci in tests/support/axe"
        pytest.skip("no page's accessibility is checked: no axe-core (npm ci in tests/support/axe)")
    browser.evaluate(AXE.read_text())
    return [
        f"{rule} ({words}): {element}"
        for rule, words, elements in json.loads(browser.evaluate(_RUN))
        for element in elements
    ]
