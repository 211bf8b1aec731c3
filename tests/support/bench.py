"""The bench that tests grade on without a GPU."""

from __future__ import annotations

from functools import cache

import msgspec

from grader.grading.pipeline import Bench
from grader.labs.lab import load_lab
from grader.sandbox.running import Sandbox
from grader.toolchain.discovery import find_toolchain


@cache
def bench() -> Bench:
    lab = load_lab()
    limits = msgspec.structs.replace(lab.limits, record_s=2, simulate_s=5)
    return Bench(
        lab=msgspec.structs.replace(lab, limits=limits),
        toolchain=find_toolchain(),
        sandbox=Sandbox.open("auto"),
        explain=False,
    )
