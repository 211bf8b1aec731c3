from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.files import beside

_JSON, _BUILTINS = """b'{"inner": {"x": 1}, "name": "a"}'""", """{"inner": {"x": 1}, "name": "a"}"""


def run(call: str) -> int:
    program = beside(__file__, "two_threads.py.in", call=call)
    return subprocess.run([sys.executable, "-c", program], stderr=subprocess.DEVNULL).returncode


@pytest.mark.parametrize("call", [f"decode({_JSON}, Outer)", f"convert({_BUILTINS}, Outer)"])
def test_two_threads_may_need_a_type_for_the_first_time_at_once(call: str) -> None:
    assert run(call) == 0


def test_msgspec_alone_cannot_do_that() -> None:
    """Should this fail, msgspec has learnt it, and ``decoding`` can go."""
    assert run(f"msgspec.json.decode({_JSON}, type=Outer)") != 0
