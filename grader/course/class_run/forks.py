"""The process that a class's workers are forked from: it imports what they need, once for all.

A fork of the command itself would have its signal handlers and its CUDA driver.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing import forkserver

CONTEXT = multiprocessing.get_context("forkserver")


def warm_up() -> None:
    """Begin while the command still imports its own modules and looks at its arguments."""
    CONTEXT.set_forkserver_preload(["grader.course.class_run.class_worker"])
    forkserver.ensure_running()
