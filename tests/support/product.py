"""The default problem, and its sizes."""

from __future__ import annotations

from grader.model import Size
from grader.problems.gemm.gemm import Gemm
from grader.problems.problem import Work

GEMM = Gemm()


def flops(size: Size) -> int:
    return GEMM.work(size)


def work(size: Size) -> Work:
    return GEMM.at(size)
