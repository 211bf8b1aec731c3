"""The default problem, and its sizes."""

from collections.abc import Callable
from functools import partial

from grader.labs.lab import DEFAULT_LAB
from grader.problems.catalogue import ProblemRef
from grader.problems.gemm.gemm import Gemm
from grader.problems.problem import Work
from grader.results.ladders import Ladder, shipped_ladders
from ptxsim.plan import Size

GEMM = Gemm()
GEMM_REF = ProblemRef(source=GEMM.name, options={})
MAIN = GEMM.interface.main


def flops(size: Size) -> int:
    return GEMM.work(size)


def speed(size: Size) -> Callable[[float], float]:
    return partial(GEMM.speed, size)


def work(size: Size) -> Work:
    return GEMM.at(size)


def shipped_ladder() -> Ladder:
    """The default lab's among those that ship with the package."""
    found = (each for each in shipped_ladders() if each.lab.id == DEFAULT_LAB.stem)
    return next(each for each in found if each.gpu and each.gpu.name == "NVIDIA H200")
