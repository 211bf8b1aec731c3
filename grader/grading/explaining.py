"""The explanation of a submission, begun while it is still being judged."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from grader.backends.protocol import Progress
from grader.backends.simulator.device import CpuDevice
from grader.errors import GraderError, MachineError, OutOfTime
from grader.hardware.gpus import Gpu
from grader.model import Build, Explanation, Plan
from grader.performance.explanation import explain_speed, unexplained
from grader.performance.explanation_cache import explanation_key, keep, recall
from grader.performance.sass import Function, disassemble
from grader.sandbox.running import Sandbox
from grader.toolchain.discovery import Toolchain


class Explaining:
    """Why a kernel is as fast as it is, at the size of ``plan``; nothing without a plan.

    The machine code is read beside whatever else happens until ``result``. Explanations are kept
    in the cache: they do not depend on the inputs.
    """

    def __init__(
        self,
        build: Build,
        source_root: str,
        plan: Plan | None,
        toolchain: Toolchain,
        sandbox: Sandbox,
        *,
        card: Gpu | None = None,
        code: Callable[[], tuple[Function, ...]] | None = None,
    ) -> None:
        self._build, self._source_root, self._plan = build, source_root, plan
        self._toolchain, self._sandbox, self._card = toolchain, sandbox, card
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._known: Explanation | None = None
        self._key = ""
        self._code = code

    def __enter__(self) -> Explaining:
        if self._plan is not None:
            self._key = explanation_key(self._build, self._plan, self._toolchain, self._card)
            self._known = recall(self._key)
            if self._known is None and self._code is None:
                reading = self._pool.submit(
                    disassemble, self._build.cubin, self._toolchain, self._sandbox
                )
                self._code = reading.result
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=False)  # nobody waits for an explanation that is not wanted

    def result(self, simulator: CpuDevice, progress: Progress) -> Explanation | None:
        """The explanation, which says in ``missing`` why it is none; None without a plan."""
        if self._plan is None or self._known is not None:
            return self._known
        assert self._code is not None
        progress("explaining", "")
        try:
            found = explain_speed(
                self._build,
                self._source_root,
                self._plan,
                self._code,
                simulator,
                gpu=self._card,
            )
            if found.missing is None:
                with suppress(OSError):
                    keep(self._key, found)
            return found
        except OutOfTime:
            raise
        except GraderError as failure:  # the verdict stands, whatever cannot be explained
            missing = str(failure)
        except OSError as failure:
            missing = str(MachineError.of(failure))
        except Exception as fault:  # of ours
            traceback.print_exc()
            missing = f"a fault of the grader: {type(fault).__name__}: {fault}"
        return unexplained(self._build, self._plan.size, missing)
