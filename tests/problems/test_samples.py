"""Elements that the host computes again: right ones pass, wrong ones are seen, in every format."""

from __future__ import annotations

import itertools
from typing import Any, get_args

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.verification_16_bits import FORMATS, SUMS_IN_FP16
from grader.base.finding import Kind
from grader.problems.comparison import Differing, OutputSample, differing, take
from grader.problems.gemm.gemm import REFERENCE_MARGIN, Gemm, Options
from grader.problems.inputs import Floats, Places, fresh_key, make_inputs, values
from grader.problems.operands import Operand, Order
from grader.problems.problem import Problem
from grader.problems.reduction.reduction import UNIT, Reduction
from ptxsim.records import Size

LAYOUTS = [
    dict(zip("ABC", each, strict=True)) for each in itertools.product(get_args(Order), repeat=3)
]
ALL = [
    *({"layout": layout} for layout in LAYOUTS),
    *({**form, "layout": layout} for form in (*FORMATS, SUMS_IN_FP16) for layout in LAYOUTS[1::3]),
]
SIZE = Size.of(m=21, n=70, k=33)


class FromKey:
    """An input that NumPy makes as a whole."""

    def __init__(self, key: bytes, operand: Operand) -> None:
        self._all = values(key, operand.count, operand.values)

    def at(self, places: Places) -> Floats:
        return self._all[places]


class Ran:
    """A right program's outputs, on inputs of its own."""

    def __init__(self, problem: Problem, size: Size) -> None:
        self.problem, self.size = problem, size
        operands = problem.operands(size)
        given = [each for each in operands if each.role == "in"]
        keys = [fresh_key() for _ in given]
        self.sources = [FromKey(key, each) for key, each in zip(keys, given, strict=True)]
        (self.expected,) = problem.reference(np, size, make_inputs(operands, keys))
        self.target = operands[-1]

    def stored(self, values: NDArray[np.float64]) -> NDArray[Any]:
        """As the output's memory holds them, rounded once."""
        flat = np.ascontiguousarray(self.target.flat(values)).astype(np.float32)
        if self.target.element.upper:  # to the nearest BF16
            flat = ((flat.view(np.uint32) + 0x8000) & 0xFFFF0000).view(np.float32)
        return self.target.element.packed(flat)

    def sample(self, memory: NDArray[Any]) -> OutputSample:
        return take(self.target, lambda first, end: memory[first:end])

    def seen(self, *samples: OutputSample) -> Differing | None:
        return differing(self.problem, self.size, self.sources, samples)


def ran(options: dict[str, Any], size: Size = SIZE) -> Ran:
    return Ran(Gemm(msgspec.convert(options, Options)), size)


@pytest.mark.parametrize("options", ALL, ids=lambda each: " ".join(map(str, each.values())))
def test_a_wrong_element_among_the_sampled_is_found(options: dict[str, Any]) -> None:
    run = ran(options)
    sample = run.sample(run.stored(run.expected.want))
    assert sample.got.size == 64 and run.seen(sample) is None
    limit = run.problem.tolerance(SIZE) * run.expected.scale
    too_large = run.stored(run.expected.want + (REFERENCE_MARGIN + 2) * limit)
    for at in (0, 63, 27):
        place = int(sample.places[at])
        for bad in (run.target.element.packed(np.array([np.nan], np.float32))[0], too_large[place]):
            wrong = sample.got.copy()
            wrong[at] = bad
            found = run.seen(msgspec.structs.replace(sample, got=wrong))
            assert found is not None and found.error.wrong == 1
            first = found.error.first_mismatch
            assert first is not None and first.index == run.target.index(place)
            assert first.want == run.expected.want[first.index]
            assert found.finding.kind is Kind.CHECKS_DIFFER
            assert first.element in str(found.finding.message)


def test_what_the_gpu_lets_pass_is_never_held_against_a_program() -> None:
    """The GPU compares with a reference that may itself be off by the tolerance."""
    run = ran({})
    limit = run.problem.tolerance(SIZE) * run.expected.scale
    for factor, right in ((REFERENCE_MARGIN + 0.9, True), (REFERENCE_MARGIN + 1.1, False)):
        found = run.seen(run.sample(run.stored(run.expected.want + factor * limit)))
        assert (found is None) is right


def test_products_of_a_lower_precision_are_found_at_any_depth() -> None:
    for k in (1, 64, 4096):
        run = ran({}, Size.of(m=9, n=9, k=k))
        coarse = [
            source.at(np.arange(9 * k)).view(np.uint32) & ~np.uint32(0x1FFF)
            for source in run.sources
        ]
        a, b, _ = run.problem.operands(run.size)
        wide = [x.wide(each.view(np.float32)) for x, each in zip((a, b), coarse, strict=True)]
        found = run.seen(run.sample(run.stored(wide[0] @ wide[1])))
        assert found is not None and found.error.wrong > 32


def test_places_are_the_corners_and_others_that_nobody_knows() -> None:
    run = ran({}, Size.of(m=3000, n=2000, k=1))
    memory = np.arange(3000 * 2000)
    samples = [run.sample(memory) for _ in range(3)]
    for sample in samples:
        assert (sample.got == sample.places).all() and len(set(sample.places.tolist())) == 64
        assert {0, 2999, 3000 * 1999, 3000 * 2000 - 1} <= set(sample.places.tolist())
    assert len({tuple(sample.places.tolist()) for sample in samples}) == 3


@pytest.mark.parametrize("extents", [(1, 1, 1), (1, 9, 2), (300, 1, 2), (3, 200, 1)], ids=str)
def test_small_outputs_have_samples_too(extents: tuple[int, int, int]) -> None:
    for layout in (LAYOUTS[0], LAYOUTS[-1]):
        run = ran({"layout": layout}, Size.of(**dict(zip("mnk", extents, strict=True))))
        sample = run.sample(run.stored(run.expected.want))
        assert len(set(sample.places.tolist())) == sample.got.size
        assert sample.got.size >= min(run.target.count, 60) and run.seen(sample) is None


@pytest.mark.parametrize("n", [1, 100_003])
def test_a_sum_is_added_up_again(n: int) -> None:
    run = Ran(Reduction(), Size.of(n=n))
    memory = run.stored(run.expected.want)
    assert run.seen(run.sample(memory)) is None
    step = np.float32(2 * run.problem.tolerance(run.size) * UNIT)
    for wrong in (memory + step, memory * np.nan):
        found = run.seen(run.sample(wrong))
        assert found is not None
        assert str(found.message) == "1 of 1 elements that the host computed again are wrong"


class Doubled(Reduction):
    """A problem that says nothing of how to compute a part of its output."""

    recomputed = Problem.recomputed

    def operands(self, size: Size) -> tuple[Operand, ...]:
        given, out = super().operands(size)
        return given, msgspec.structs.replace(out, shape=given.shape)

    def reference(self, xp: Any, size: Size, inputs: Any) -> Any:
        (total,) = super().reference(xp, size, inputs)
        return (msgspec.structs.replace(total, want=2.0 * inputs[0].astype(np.float64)),)


def test_a_problem_is_computed_again_as_a_whole_while_that_takes_no_time() -> None:
    run = Ran(Doubled(), Size.of(n=1000))
    sample = run.sample(run.stored(run.expected.want))
    assert sample.got.size == 64 and run.seen(sample) is None
    assert run.seen(msgspec.structs.replace(sample, got=sample.got[::-1])) is not None
    assert Doubled().recomputed(Size.of(n=1 << 23), run.sources, [sample.places]) is None
