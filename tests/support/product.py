"""The default problem, and its sizes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from grader.model import Size
from grader.problems.catalogue import ProblemRef
from grader.problems.gemm.gemm import Gemm
from grader.problems.problem import Work

GEMM = Gemm()
GEMM_REF = ProblemRef(source=GEMM.name, options={})
MAIN = GEMM.interface.main


def flops(size: Size) -> int:
    return GEMM.work(size)


def speed(size: Size) -> Callable[[float], float]:
    return partial(GEMM.speed, size)


def work(size: Size) -> Work:
    return GEMM.at(size)
