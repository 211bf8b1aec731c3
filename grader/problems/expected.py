"""What a problem's outputs should hold: the ways in which they can be right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grader.problems.operands import Element, Operand
from ptxsim.plan import Record
from ptxsim.text import Message


class Expected(Record):
    """Expected contents of one output, in an array of the operand's shape. An element is right if
    ``|got - want| / scale <= tolerance``: ``want`` is in float64, and a scale of ``ulp`` makes the
    tolerance one in units of the last place. Without a scale an element is right if it equals
    ``want``, which is as stored."""

    want: Any
    scale: Any = None  # an array, or one number
    # Only the root of the mean square of these errors must be within the tolerance. With the root
    # of the mean square of ``want`` as scale that is the relative error in L2.
    together: bool = False
    length: int | None = None  # only so many elements count, from the first on
    # The wrong ones of an output, flat and as stored, where one right answer of several is asked
    # for: ``any_order`` and ``any_sorting`` make such.
    wrong: Callable[[Any], Any] | None = None

    def at(self, target: Operand, places: Any) -> Expected:
        """Return what is expected at these places of the memory: nothing where only all elements
        show what is right, elsewhere so much that what is right as a whole passes."""
        import numpy as np

        want = target.flat(self.want)[places]
        if self.wrong is not None:
            return Expected(want=want, wrong=lambda got: np.zeros(got.shape, bool))
        if self.scale is None:
            counted = places < (target.count if self.length is None else self.length)
            return Expected(want=want, wrong=lambda got: counted & (got != want))
        scale = target.flat(np.broadcast_to(self.scale, target.shape))[places]
        return Expected(want=want, scale=scale * (target.count**0.5 if self.together else 1))


def ulp(xp: Any, want: Any, element: Element) -> Any:
    """The unit in the last place of each value, in an element's type other than BF16."""
    return xp.spacing(xp.abs(want).astype(element.dtype)).astype(xp.float64)


def any_order(xp: Any, values: Any) -> Expected:
    """The values, in any order."""
    ordered = xp.sort(values)
    return Expected(want=ordered, wrong=lambda got: xp.sort(got) != ordered)


def any_sorting(xp: Any, keys: Any) -> Expected:
    """The places of keys in ascending order, each once; those of equal keys in any order."""
    want = xp.argsort(keys, kind="stable")

    def wrong(got: Any) -> Any:
        inside = (got >= 0) & (got < keys.size)
        at = xp.where(inside, got, 0).astype(xp.int64)
        times = xp.bincount(at[inside], minlength=keys.size)
        return ~inside | (keys[at] != keys[want]) | (times[at] > 1)

    return Expected(want=want, wrong=wrong)


class Recomputed(Record):
    """Expected values of some elements of each output, and the GPU comparison's limit for their
    errors."""

    outputs: tuple[Expected, ...]  # arrays as flat as the places asked for
    tolerance: float


class Cause(Record):
    """A likely mistake, and what a program that makes it computes."""

    words: Message | str  # "A was read as if column-major: …"
    outputs: tuple[Expected, ...]
    tolerance: float
