"""Times of the parts of a call, on a stream that is a clock the test turns on."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from grader.base.result import PartTime
from grader.report.measurement import measurements, sentence
from grader.run.gpu.measure import MOST_STEPS, REPETITIONS, Part, PartStep, part_of, time_parts
from ptxsim.records import Memset
from tests.support import product
from tests.support.pages import gpu_result, timed

GEMM, PAD, MEMSET = ("_Z4gemmPf", True), ("_Z3padPf", True), ("memset", False)


class Stream:
    """Each step takes its time; every repetition is a little slower than the one before."""

    def __init__(self) -> None:
        self.now = 0.0
        self.repetitions = 0

    def step(self, part: Part, milliseconds: float) -> PartStep:
        def launch() -> None:
            self.now += milliseconds + 0.01 * self.repetitions

        return part, launch

    def repeat(self, launch: Callable[[], None]) -> None:
        self.repetitions += 1
        self.now += 1000  # fresh inputs, which belong to no part
        launch()

    def parts(self, *steps: PartStep) -> tuple[PartTime, ...]:
        return time_parts(steps, self.repeat, lambda: self.now, lambda first, last: last - first)


def test_each_part_has_the_median_of_its_time() -> None:
    stream = Stream()
    times = stream.parts(
        stream.step(PAD, 1), stream.step(MEMSET, 0.5), stream.step(PAD, 2), stream.step(GEMM, 9)
    )
    assert stream.repetitions == REPETITIONS
    assert [(part.name, part.kernel, part.times) for part in times] == [
        ("_Z3padPf", True, 2),
        ("memset", False, 1),
        ("_Z4gemmPf", True, 1),
    ]
    assert [part.ms for part in times] == pytest.approx([3.04, 0.52, 9.02])


def test_a_single_operation_and_too_many_are_not_taken_apart() -> None:
    stream = Stream()
    assert stream.parts(stream.step(GEMM, 1)) == ()
    assert stream.parts(*[stream.step(GEMM, 1)] * (MOST_STEPS + 1)) == ()
    assert stream.repetitions == 0


def test_what_is_no_kernel_has_its_own_part() -> None:
    memset = Memset(allocation=0, delta=0, value=0, size=1)
    assert part_of(memset) == MEMSET
    assert part_of(object()) == ("host calls", False)


def test_the_report_gives_each_part_and_the_product_without_the_others() -> None:
    case = timed(1024, 0.4807, 1)
    assert case.timing
    whole = 2 * 1024**3 / 0.528e9  # milliseconds at 0.528 TFLOPS
    parts = (
        PartTime(name="_Z3padPf", kernel=True, times=2, ms=whole / 10),
        PartTime(name="_Z4gemm\x1b[31mPf", kernel=True, times=1, ms=whole),
        PartTime(name="memset", kernel=False, times=1, ms=2 * whole),
    )
    timing = msgspec.structs.replace(case.timing, parts=parts)
    result = gpu_result(cases=(msgspec.structs.replace(case, timing=timing),))
    (measured,) = measurements(result)
    words = str(sentence(measured, product.GEMM.info(), result.environment.gpu))
    assert "one call: pad ×2 0.4067 ms (3.2 %), gemm" in words
    assert "memset 8.134 ms (64.5 %)" in words
    assert "alone: 0.528 TFLOPS; the whole call: 0.4807" in words
    assert "\x1b" not in words
