"""Who may do what on a GPU: three locks of this user on the first GPU of this machine.

Machines may share caches and results, so the locks lie in the machine's own temporary folder.
"""

from __future__ import annotations

from contextlib import ExitStack
from enum import Enum
from pathlib import Path

from grader.backends.probe import first_gpu_uuid
from grader.toolchain.native import lock_folder, locked


class Right(Enum):
    """In the order in which they are taken. A worker that times has all of them, so no other makes
    a context, runs a kernel or ends meanwhile."""

    TURN = "turn"  # to make a context; kept until everything is timed
    KERNELS = "gpu"  # to run kernels
    ALONE = "alone"  # to time; kept until the worker's context is gone


class Locks:
    def __init__(self) -> None:
        self._held: dict[Right, ExitStack] = {}

    def take(self, right: Right, *, wait: bool = True) -> bool:
        """Whether it is held now; without ``wait`` somebody else may hold it."""
        if right not in self._held:
            with ExitStack() as held:
                path = _path(right)
                if not held.enter_context(locked(path, wait=wait)):
                    return False
                self._held[right] = held.pop_all()
        return True

    def give(self, *rights: Right) -> None:
        """Give back those of them that are held."""
        for right in rights:
            if held := self._held.pop(right, None):
                held.close()


def _path(right: Right) -> Path:
    return lock_folder() / f"{first_gpu_uuid() or 'none'}.{right.value}.lock"
