"""The softmax's tolerance: every way to compute in FP32 passes, what is less exact does not, and
mistakes are named."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from grader.problems.comparison import OutputCheck, check
from grader.problems.inputs import KEY_BYTES, make_inputs
from grader.problems.softmax.softmax import Softmax
from ptxsim.plan import Size

Array = np.ndarray[Any, Any]
PROBLEM = Softmax()
SIZES = [
    Size.of(rows=1, columns=1),
    Size.of(rows=300, columns=7),
    Size.of(rows=20, columns=1023),
    Size.of(rows=2, columns=9001),
    Size.of(rows=1, columns=100_000),
    Size.of(rows=30, columns=33, inputs="low"),
]
FACTOR = np.float32(1.44269504)  # log2(e)
KEY = bytes(range(KEY_BYTES))


def checked(size: Size, softmax: Callable[[Array], Array]) -> OutputCheck:
    (values,) = make_inputs(PROBLEM.operands(size), [KEY])
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        got = softmax(values.reshape(size.extents)).reshape(-1)
    assert got.dtype == np.float32
    return check(PROBLEM, size, [values], [got])


def most(x: Array, axis: int | None = 1) -> Any:
    return x.max(axis=axis, keepdims=True)


def quotients(terms: Array, axis: int | None = 1) -> Array:
    return terms / terms.sum(axis=axis, keepdims=True)


def one_by_one(x: Array) -> Array:
    terms = np.exp(x - most(x))
    return terms / np.add.accumulate(terms, axis=1)[:, -1:]


def folded(x: Array) -> Array:
    terms = np.exp2(x * FACTOR - most(x) * FACTOR)
    return terms * (np.float32(1) / terms.sum(axis=1, keepdims=True))


def online(x: Array) -> Array:
    """In four parts of each row, whose pairs join at the end."""
    parts = np.pad(x, ((0, 0), (0, -x.shape[1] % 4)), constant_values=-1e30)
    parts = parts.reshape(len(x), -1, 4).swapaxes(0, 1)
    top, total = np.full_like(parts[0], -1e30), np.zeros_like(parts[0])
    for each in parts:
        new = np.maximum(top, each)
        total = total * np.exp(top - new) + np.exp2(each * FACTOR - new * FACTOR)
        top = new
    total = (total * np.exp(top - most(top))).sum(axis=1, keepdims=True)
    return np.exp2((x - most(top)) * FACTOR) / total


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("softmax", [one_by_one, folded, online])
def test_every_way_to_compute_in_fp32_is_right(
    size: Size, softmax: Callable[[Array], Array]
) -> None:
    error = checked(size, softmax).error
    assert error.wrong == 0 and error.max is not None and error.max <= 0.3 * error.tolerance


def in_fp16(x: Array) -> Array:
    return quotients(np.exp(x - most(x)).astype(np.float16).astype(np.float32))


def without_the_last(x: Array) -> Array:
    terms = np.exp(x - most(x))
    return terms / terms[:, :-1].sum(axis=1, keepdims=True)


@pytest.mark.parametrize("size", SIZES[1:3], ids=str)
def test_anything_less_is_wrong(size: Size) -> None:
    halves = checked(size, in_fp16).error
    assert (
        halves.wrong > 0.4 * size["rows"] * size["columns"] and halves.max > 10 * halves.tolerance
    )
    assert checked(size, without_the_last).error.wrong


@pytest.mark.parametrize(
    ("place", "softmax", "words"),
    [
        (0, lambda x: quotients(np.exp(x)), "as if the row's maximum was not subtracted"),
        (2, lambda x: quotients(np.exp(x)), "as if the row's maximum was not subtracted"),
        (-1, lambda x: quotients(np.exp(x - np.maximum(most(x), 0))), "its search began at 0"),
        (2, lambda x: np.exp(x - most(x)), "what exp gave was not divided by the row's sum"),
        (1, lambda x: quotients(np.exp(x - most(x, 0)), 0), "the softmax along columns"),
        (2, lambda x: quotients(np.exp(x - most(x, None)), None), "that of the whole matrix"),
    ],
)
def test_mistakes_are_named(place: int, softmax: Callable[[Array], Array], words: str) -> None:
    assert words in str(checked(SIZES[place], softmax).message)
