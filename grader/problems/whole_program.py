"""Whole programs, which have no operands: the lab file says what must come out."""

from collections.abc import Sequence
from typing import Any, NoReturn

from grader.problems.expected import Expected
from grader.problems.operands import Operand
from grader.problems.problem import GB_S, Dim, Interface, Problem
from ptxsim.plan import Size
from ptxsim.text import Message


class WholeProgram(Problem):
    """Answers to what other rooms ask of a problem. main: the first of the student's files."""

    name = "program"
    dims = (Dim(name="case", most=1),)
    unit = GB_S  # of no speed: nothing is timed
    baseline = output = ""
    questions = ()

    def __init__(self, main: str, title: Message | str) -> None:
        super().__init__()
        self._main, self._title = main, title

    @property
    def title(self) -> Message | str:
        return self._title

    @property
    def interface(self) -> Interface:
        return Interface(main=self._main, header="", text="", vectors=(), dims=0)

    def operands(self, size: Size) -> tuple[Operand, ...]:
        return ()

    def reference(self, xp: Any, size: Size, inputs: Sequence[Any]) -> tuple[Expected, ...]:
        self.tolerance(size)

    def tolerance(self, size: Size) -> NoReturn:
        raise NotImplementedError("a whole program is judged by its output")
