"""What tests of several rooms share."""

import signal
import subprocess
import zlib
from collections.abc import Iterator

import pytest

from tests.support.browser import Browser, chromium
from tests.support.places import ROOT

# Each commit selects another part of the tests marked ``sampled``, by its hash, so a few days of
# work cover all of them.
EVERY = 20


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--sample", action="store_true", help="one in twenty of the tests marked so")


def pytest_configure() -> None:
    # A shell starts what it runs in the background with Ctrl-C ignored, and children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--sample"):
        return
    command = ["git", "rev-parse", "--short=8", "HEAD"]
    head = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    turn = int(head or "0", 16) % EVERY  # 0 outside a checkout
    out = {
        item
        for item in items
        if item.get_closest_marker("sampled") and zlib.crc32(item.nodeid.encode()) % EVERY != turn
    }
    config.hook.pytest_deselected(items=list(out))
    items[:] = [item for item in items if item not in out]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found
