"""What measured times prove: untimed launches that take too long, times that cannot be."""

from __future__ import annotations

import msgspec
import pytest

from grader.base.records import Verdict
from grader.judge import verdicts as judge
from grader.judge.launches import held_to_the_clock
from grader.labs.lab import Case
from grader.labs.shape import Rules
from grader.run.protocol import CaseOutcome
from grader.run.statistics import Clocked
from ptxsim.records import Size
from tests.support.pages import H200
from tests.support.product import GEMM
from tests.support.results import outcome as outcome_of

LARGE = Size.of(m=8192, n=8192, k=8192)
GPU = msgspec.structs.replace(H200, fp32_peak_tflops=60.0)


def outcome(name: str, size: Size, untimed_ms: float, timed_ms: float | None = None) -> CaseOutcome:
    times = None if timed_ms is None else (timed_ms, 20.0)
    return outcome_of(Case(id=name, size=size), untimed_ms=untimed_ms, times=times)


def verdicts(*outcomes: CaseOutcome) -> list[str]:
    held = held_to_the_clock(outcomes, GEMM, GPU)
    cases = [Case(id=each.id, size=each.size) for each in outcomes]
    return [
        each.verdict.value for each in judge.judge_cases(cases, held, GEMM, Rules()) if each.verdict
    ]


def test_a_long_warm_up_is_a_time_limit() -> None:
    """20 ms timed: 10 times that and a tenth of a second are 300 ms."""
    (held,) = held_to_the_clock([outcome("performance-0", LARGE, 301.0, 20.0)], GEMM, GPU)
    (finding,) = held.findings
    assert finding.kind == "untimed-work"
    assert "took 301 ms" in str(finding.message) and "may take 300 ms" in str(finding.message)
    assert judge.judge_case(held, Rules())[0] is Verdict.TLE
    assert (
        held_to_the_clock([outcome("performance-0", LARGE, 299.0, 20.0)], GEMM, GPU)[0].findings
        == ()
    )


@pytest.mark.parametrize(
    ("size", "ms"),
    [((1, 1, 1), 95.0), ((3, 4096, 3), 95.0), ((1, 1, 65536), 95.0), ((8191, 8192, 8192), 295.0)],
)
def test_honest_launches_of_other_sizes_are_far_below(
    size: tuple[int, int, int], ms: float
) -> None:
    m, n, k = size
    small = outcome("correctness-0", Size.of(m=m, n=n, k=k), ms)
    assert verdicts(small, outcome("performance-0", LARGE, 30.0, 20.0)) == ["AC", "AC"]


def test_work_in_a_verified_launch_is_found_once_the_pace_is_known() -> None:
    """The case is over its limit; those that ran after it have their own verdicts."""
    small = outcome("correctness-0", Size.of(m=1, n=1, k=1), 105.0)
    other = outcome("correctness-1", Size.of(m=2, n=1, k=1), 1.0)
    timed = outcome("performance-0", LARGE, 30.0, 20.0)
    assert verdicts(small, other, timed) == ["TLE", "AC", "AC"]


def test_the_slowest_pace_counts_where_a_size_is_not_timed() -> None:
    slow_small = outcome("performance-0", Size.of(m=256, n=256, k=256), 1.0, 1.0)
    timed = outcome("performance-1", LARGE, 30.0, 20.0)
    middle = outcome("correctness-0", Size.of(m=1024, n=1024, k=1024), 400.0)
    assert verdicts(middle, timed) == ["TLE", "AC"]
    assert verdicts(middle, slow_small, timed) == ["AC", "AC", "AC"]


def test_without_a_timed_case_there_is_no_pace() -> None:
    assert verdicts(outcome("correctness-0", LARGE, 9000.0)) == ["AC"]


def clocked(*times: tuple[float, float]) -> CaseOutcome:
    """Repetitions by the GPU's events and by the host's clock; the baseline always takes 20 ms."""
    baseline = Clocked(gpu_ms=20.0, host_ms=20.2)
    seen = outcome("performance-0", LARGE, 30.0, 20.0)
    clocks = tuple((Clocked(gpu_ms=gpu, host_ms=host), baseline) for gpu, host in times)
    return msgspec.structs.replace(seen, clocks=clocks)


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ([(20.0, 20.2), (12.3, 12.5)], ""),
        (
            [(20.0, 20.2), (12.1, 12.3), (20.0, 20.2)],
            "nothing of this size takes",
        ),
        ([(20.0, 20.2), (float("nan"), 20.2), (20.0, 20.2)], "a repetition took nan ms"),
        ([(14.0, 34.0)] * 3, "took 19.8 ms more than the GPU's events say"),
        ([(14.0, 34.0), (20.0, 20.2), (20.0, 20.2)], ""),
    ],
)
def test_times_that_cannot_be_are_forbidden_and_no_timing(
    times: list[tuple[float, float]], words: str
) -> None:
    """60 TFLOPS make two thirds of 8192³ multiplications and additions in 12.2 ms."""
    (held,) = held_to_the_clock([clocked(*times)], GEMM, GPU)
    verdict, message = judge.judge_case(held, Rules())
    assert (verdict is Verdict.RF) == (held.timing is None) == bool(words)
    assert words in str(message)


def test_nothing_is_held_against_times_of_a_gpu_that_never_ran() -> None:
    assert held_to_the_clock([clocked((1e-3, 9.0))], GEMM, None)[0].findings == ()
