from __future__ import annotations

import subprocess
import sys

import pytest

# The description of Outer is half built while Inner's annotation is evaluated, which takes a while.
_TWO_THREADS = """
from __future__ import annotations
import resource, threading, time
import msgspec
from grader.base.records import convert, decode
from ptxsim.records import Record

resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
begun = threading.Event()

def slow():
    begun.set()
    time.sleep(0.3)
    return int

class Inner(Record):
    x: slow()

class Outer(Record):
    inner: Inner
    name: str

def first():
    {call}

thread = threading.Thread(target=first)
thread.start()
begun.wait()
found = {call}
thread.join()
assert found == Outer(inner=Inner(x=1), name="a"), found
"""
_JSON, _BUILTINS = """b'{"inner": {"x": 1}, "name": "a"}'""", """{"inner": {"x": 1}, "name": "a"}"""


def run(call: str) -> int:
    program = _TWO_THREADS.replace("{call}", call)
    return subprocess.run([sys.executable, "-c", program], stderr=subprocess.DEVNULL).returncode


@pytest.mark.parametrize("call", [f"decode({_JSON}, Outer)", f"convert({_BUILTINS}, Outer)"])
def test_two_threads_may_need_a_type_for_the_first_time_at_once(call: str) -> None:
    assert run(call) == 0


def test_msgspec_alone_cannot_do_that() -> None:
    """Should this fail, msgspec has learnt it, and ``decoding`` can go."""
    assert run(f"msgspec.json.decode({_JSON}, type=Outer)") != 0
