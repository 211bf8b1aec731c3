"""The explanation of a submission, begun while it is still being judged."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from grader.backends.protocol import Progress
from grader.backends.simulator.device import CpuDevice
from grader.errors import GraderError, MachineError, OutOfTime, Rejected
from grader.grading.preparing import Bench
from grader.hardware.gpus import Gpu
from grader.labs.lab import Lab
from grader.model import Build, Explanation, Plan, Submission, phrase
from grader.performance.explanation import explain_speed, unexplained
from grader.performance.explanation_cache import explanation_key, keep, recall
from grader.performance.sass import Function, disassemble


class Explaining:
    """Why a kernel is as fast as it is, at the largest timed size; nothing if that has no plan.

    The machine code is read beside whatever else happens until ``result``. Explanations are kept
    in the cache: they do not depend on the inputs.
    """

    def __init__(
        self,
        build: Build,
        plans: Iterable[Plan | Rejected],
        submission: Submission,
        bench: Bench,
        card: Gpu | None = None,
        code: Callable[[], tuple[Function, ...]] | None = None,
    ) -> None:
        """card: graded on, if known. code: its machine code, if somebody reads it anyway."""
        self._build, self._submission, self._bench, self._card = build, submission, bench, card
        self._plan = _largest(plans, bench.lab) if bench.explain else None
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._known: Explanation | None = None
        self._key = ""
        self._code = code

    def __enter__(self) -> Explaining:
        bench = self._bench
        if self._plan is not None:
            self._key = explanation_key(
                self._build, self._plan, bench.lab.problem, bench.toolchain, self._card
            )
            self._known = recall(self._key)
            if self._known is None and self._code is None:
                reading = self._pool.submit(
                    disassemble, self._build.cubin, self._bench.toolchain, self._bench.sandbox
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
                str(self._submission.folder),
                self._plan,
                self._bench.lab.problem,
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
            missing = failure.message
        except OSError as failure:
            missing = MachineError.of(failure).message
        except Exception as fault:  # of ours
            traceback.print_exc()
            missing = phrase(
                "a fault of the grader: {fault}", fault=f"{type(fault).__name__}: {fault}"
            )
        return unexplained(self._build, self._bench.lab.problem.at(self._plan.size), missing)


def _largest(plans: Iterable[Plan | Rejected], lab: Lab) -> Plan | None:
    """The plan of the largest timed size."""
    size = max((case.size for case in lab.performance), key=lab.problem.amount)
    found = (plan for plan in plans if isinstance(plan, Plan))
    return next((plan for plan in found if plan.size == size), None)


def quietly(_stage: str, _detail: str) -> None:
    """Progress that nobody follows."""
