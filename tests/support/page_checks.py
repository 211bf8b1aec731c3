"""Whether a page can be read: by eye on a phone, a desktop and paper, by keyboard and by ear.

Every kind of page goes through ``assert_readable``. axe-core, which judges accessibility, comes
from npm: tests/run.sh calls ``npm ci`` in tests/support/axe.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.support.browser import Browser

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
