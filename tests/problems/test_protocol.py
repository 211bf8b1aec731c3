"""What a problem may say beyond FP32 inputs and outputs: types, scalars, operands that are changed
in place, inputs that a size asks for, and several ways to be right."""

import dataclasses
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from grader.base.errors import LabError
from grader.base.records import Verdict
from grader.judge.pipeline import grade
from grader.labs.lab import load_lab
from grader.problems import catalogue
from grader.problems.comparison import check, compare, differing, poisoned, take
from grader.problems.expected import Expected, any_order, ulp
from grader.problems.inputs import make_inputs
from grader.problems.operands import FLOAT, INT32, Operand
from grader.report import formatting as text
from grader.run.gpu.host_check import HostInput
from grader.run.protocol import quietly
from ptxsim.plan import Size
from tests.support.bench import bench

DATA = Path(__file__).parent / "data"
LAB = load_lab(DATA / "mixed.yaml")
SIZE = Size.of(n=300)
KEYS = [bytes(range(32)), bytes(range(1, 33))]
Array = np.ndarray[Any, Any]


def test_a_program_of_many_types_is_graded() -> None:
    asked = msgspec.structs.replace(bench(), lab=LAB)
    result = grade(DATA / "right", asked, quietly).result
    assert result.verdict is Verdict.AC, (result.error, result.cases, result.findings)
    sizes = {str(Size(dims=case.size)) for case in result.cases}
    assert {"n = 7", "n = 40", "n = 40, skewed", "n = 33, equal"} < sizes


def test_a_size_says_which_inputs_it_has() -> None:
    assert [str(case.size) for case in LAB.performance] == ["n = 1000", "n = 1000, skewed"]
    operands = LAB.problem.operands(Size.of(n=1000, inputs="skewed"))
    (values, _) = make_inputs(operands)
    assert (values < 2).mean() > 0.9
    (values, _) = make_inputs(LAB.problem.operands(Size.of(n=1000, inputs="equal")))
    assert np.unique(values).size == 1


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("inputs: equal", "inputs: odd", "cpu[3].inputs"),
        ("{n: 40}", "{n: 40, inputs: skewed}", "cpu[4]: 40, skewed is already"),
        ("inputs: skewed, weight", "input: skewed, weight", "performance[1]"),
        ("[1]", "['1']", "or {n: n, inputs: skewed} with inputs of skewed and equal"),
    ],
)
def test_a_mistake_in_such_a_size_is_one_line(
    old: str, new: str, words: str, tmp_path: Path
) -> None:
    (tmp_path / "mixed.py").write_text((DATA / "mixed.py").read_text())
    (tmp_path / "mixed.yaml").write_text((DATA / "mixed.yaml").read_text().replace(old, new, 1))
    with pytest.raises(LabError) as caught:
        load_lab(tmp_path / "mixed.yaml")
    assert words in str(caught.value) and "\n" not in str(caught.value)


GROUPS = """
groups:
  public: {weight: 1}
  hidden:
    weight: 1
    seed_file: seed
    cpu: [{ranges: [[8, 9]], inputs: skewed, count: 2}, {ranges: [[8, 9]], count: 2}]
    performance: [{ranges: [2000], inputs: equal}]
"""


def test_hidden_sizes_may_have_other_inputs(tmp_path: Path) -> None:
    """The same two sizes twice: with other inputs they are others."""
    (tmp_path / "mixed.py").write_text((DATA / "mixed.py").read_text())
    (tmp_path / "seed").write_text("sixteen bytes or more")
    lab, text = tmp_path / "lab.yaml", (DATA / "mixed.yaml").read_text() + GROUPS
    lab.write_text(text)
    hidden = load_lab(lab).hidden
    assert hidden is not None
    drawn = {str(case.size) for case in (*hidden.cpu, *hidden.performance)}
    plain = {"n = 8", "n = 9"}
    assert drawn == {*plain, *(f"{each}, skewed" for each in plain), "n = 2000, equal"}
    lab.write_text(text.replace("inputs: skewed, c", "inputs: odd, c"))
    words = r"hidden.cpu\[0\].inputs: expected skewed or equal, got 'odd'"
    with pytest.raises(LabError, match=words):
        load_lab(lab)


# --- ways to be right


@cache
def right() -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """The inputs of a call, and what a right one leaves."""
    numbers, y = make_inputs(LAB.problem.operands(SIZE), KEYS)
    kept = poisoned(LAB.problem.operands(SIZE)[3])
    few = numbers[numbers < 128]
    kept[: few.size] = few
    order = np.argsort(numbers[::-1], kind="stable")
    outputs = (
        y + 300.5 * numbers,
        (299 - order).astype(np.int32),
        kept,
        np.array([few.size], np.uint32),
    )
    return (numbers, y), outputs


def twice(order: Array) -> None:
    order[7] = order[8]


def outside(order: Array) -> None:
    order[0] = -1


def swapped(order: Array) -> None:
    order[[0, 299]] = order[[299, 0]]


def one_less(kept: Array) -> None:
    kept[5] ^= 1


def one_more(count: Array) -> None:
    count[0] += 1


def tail(y: Array) -> None:
    y[-3:] = right()[0][1][-3:]


def untouched(y: Array) -> None:
    y[:] = right()[0][1]


def last_place(y: Array) -> None:
    y[11] = np.nextafter(y[11], np.inf)


@pytest.mark.parametrize(
    ("place", "change", "wrong", "words"),
    [
        (0, last_place, 1, ""),
        (0, tail, 3, "from element 297 on y is as it was given"),
        (0, untouched, 298, "y is as it was given"),
        (1, twice, 2, ""),
        (1, outside, 1, ""),
        (1, swapped, 2, ""),
        (2, one_less, 1, ""),
        (3, one_more, 1, ""),
    ],
)
def test_what_is_wrong_is_seen(
    place: int, change: Callable[[Array], None], wrong: int, words: str
) -> None:
    inputs, outputs = right()
    assert not check(LAB.problem, SIZE, inputs, outputs).message
    changed = [each.copy() for each in outputs]
    change(changed[place])
    found = check(LAB.problem, SIZE, inputs, changed)
    assert found.error.wrong == wrong and words in str(found.message), found
    assert found.error.operand == LAB.problem.operands(SIZE)[place + 1].name


def sampled(outputs: Sequence[Array]) -> int:
    """How many of the elements that the host looks at it finds wrong."""
    operands = LAB.problem.operands(SIZE)
    samples = [
        take(each, lambda a, b, array=array: array[a:b])
        for each, array in zip(operands[1:], outputs, strict=True)
    ]
    sources = [HostInput(*each) for each in zip(KEYS, operands[:2], strict=True)]
    found = differing(LAB.problem, SIZE, sources, samples)
    return found.error.wrong if found else 0


def test_the_host_checks_elements_of_each_type() -> None:
    outputs = [each.copy() for each in right()[1]]
    assert sampled(outputs) == 0
    outputs[2][-1] ^= 1  # behind those that count
    assert sampled(outputs) == 0
    outputs[2][0] ^= 1
    assert sampled(outputs) == 1
    outputs[0][-1] += 1
    assert sampled(outputs) == 1


def errors(got: Any, expected: Expected, tolerance: float, element: Any = FLOAT) -> int:
    operand = Operand(name="out", role="out", shape=np.shape(got), element=element)
    return compare(np, operand, np.asarray(got, element.dtype), expected, tolerance).wrong


def test_errors_may_count_together_or_in_units_of_the_last_place() -> None:
    want = np.linspace(1, 2, 100)
    got = want.copy()
    got[3] += 0.01
    norm = np.sqrt(np.mean(want**2))
    assert errors(got, Expected(want=want, scale=norm), 1e-3) == 1
    assert errors(got, Expected(want=want, scale=norm, together=True), 1e-3) == 0
    got[4] = np.nan
    assert errors(got, Expected(want=want, scale=norm, together=True), 1e-3) == 2
    off = np.nextafter(np.float32(want), np.float32(9))
    assert errors(off, Expected(want=want, scale=ulp(np, want, FLOAT)), 1.6) == 0
    assert errors(off, Expected(want=want, scale=ulp(np, want, FLOAT)), 0.4) > 90


def test_a_multiset_and_large_whole_numbers() -> None:
    values = np.array([5, 5, 2, 1], np.int32)
    assert errors([1, 5, 2, 5], any_order(np, values), 0, INT32) == 0
    assert errors([1, 5, 2, 2], any_order(np, values), 0, INT32) == 1
    (case,) = load_lab(DATA / "mixed.yaml").correctness
    inputs, outputs = right()
    changed = [each.copy() for each in outputs]
    changed[3][0] = 123_456_789
    error = check(LAB.problem, SIZE, inputs, changed).error
    shown = dataclasses.make_dataclass("Seen", ["error", "size"])(error, case.size.dims)
    said = str(text.mismatch(shown))
    assert f"is 123456789, should be {outputs[3][0]}" in said


# --- structure


SMALL = {
    "gemm": Size.of(m=5, n=7, k=6),
    "stencil": Size.of(nx=9, ny=6, nz=5, steps=3),
    "transpose": Size.of(rows=5, columns=9),
}


@pytest.mark.parametrize("name", catalogue.names())
def test_outputs_are_linear_in_the_inputs_that_say_so(name: str) -> None:
    problem = catalogue.problem_class(name)()
    size = SMALL.get(name, Size.of(n=50))
    operands = [each for each in problem.operands(size) if each.given]
    one, other = ([each.astype(np.float64) for each in make_inputs(operands)] for _ in range(2))
    for group in problem.linear:
        # What is not in the group is held.
        pairs = list(zip(operands, one, other, strict=True))
        held = [b if each.name in group else a for each, a, b in pairs]
        both = [a + b if each.name in group else a for each, a, b in pairs]
        ours, theirs, sums = (
            problem.reference(np, size, [each.copy() for each in inputs])[0].want
            for inputs in (one, held, both)
        )
        assert np.allclose(ours + theirs, sums, rtol=1e-12)
    assert {name for group in problem.linear for name in group} <= {o.name for o in operands}
    assert set(problem.moved) <= {each.name for each in operands}
    if problem.moved:
        (want,) = problem.reference(np, size, one)
        assert (np.sort(want.want.reshape(-1)) == np.sort(one[0])).all()
