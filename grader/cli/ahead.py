"""Work that begins ahead of its need, or that is left out at the end, to save time.

The figures are what a grade of submissions/alice on the CPU takes more without it, with a changed
source and again, on 2 cores (docs/measurements/2026-11-29-tricks.txt). A trick that saves less than
3 % goes.
"""

from __future__ import annotations

import atexit
import gc
import time
from collections.abc import Iterable
from importlib import import_module
from threading import Thread

_COMPILER_STARTS_S = 0.1


def leave_garbage() -> None:
    """Make no last search for cycles, for which nobody waits: 3 and 4 %."""
    atexit.register(gc.freeze)


def start_driver() -> None:
    """Ask the driver for the GPUs' names while modules are imported; not timed."""
    from grader.run import gpu_names

    Thread(target=gpu_names).start()


def load(modules: Iterable[str]) -> None:
    """Import modules of ours beside the compiler, once that has started: 6 and 25 %. Imported at
    once, they would hold it up, and save nothing."""

    def later() -> None:
        time.sleep(_COMPILER_STARTS_S)
        for each in modules:
            import_module(f"grader.{each}")

    Thread(target=later, daemon=True).start()
