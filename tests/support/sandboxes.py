"""The sandboxes that tests run in: those that work on this machine."""

from __future__ import annotations

import pytest

from grader.sandbox import bubblewrap, landlock

needs_bubblewrap = pytest.mark.skipif(
    bubblewrap.working() is None, reason="nothing is tried in bubblewrap: it does not work here"
)
needs_landlock = pytest.mark.skipif(
    landlock.working() is None, reason="nothing is tried under Landlock: it does not work here"
)
# Modes of Sandbox.open. The first two show a program nothing but what is named.
CLOSED = (
    pytest.param("bubblewrap", marks=needs_bubblewrap),
    pytest.param("landlock", marks=needs_landlock),
)
MODES = (*CLOSED, "off")
