"""ptxsim's interpreter as the grader compiles and caches it."""

from __future__ import annotations

from grader.toolchain.native import Native
from ptxsim.engine import FLAGS, engine_sources


def engine_library(flags: tuple[str, ...] = FLAGS) -> Native:
    """The library, which may not be compiled yet."""
    return Native(name="simulator", sources=engine_sources(), shared=True, flags=flags)


if __name__ == "__main__":  # compile it beside other work
    engine_library().compiled()
