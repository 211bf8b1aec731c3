"""Statistics, scores and peaks: the parts of a GPU grade that need no GPU."""

from __future__ import annotations

import random

import msgspec
import pytest

from grader.base.gpus import least_ms
from grader.base.records import Verdict
from grader.base.result import CaseResult, Run, Timing
from grader.judge import launches as times
from grader.judge import scoring
from grader.labs.lab import Case
from grader.labs.scoring_rules import Checkpoint, Scoring
from grader.report.measurement import measurements, sentence
from grader.run import statistics as timing
from grader.run.statistics import Pair
from ptxsim.records import Size
from tests.support.pages import H200
from tests.support.product import GEMM, flops, speed
from tests.support.results import RIGHT, make_result

SIZE = Size.of(m=8192, n=8192, k=8192)


def measured(*runs: tuple[float, float]) -> Timing:
    ratio = runs[0][0] / runs[0][1]
    return Timing(
        runs=tuple(Run(speed=b, baseline_speed=c) for b, c in runs),
        ratio=ratio,
        ratio_ci=(ratio, ratio),
        noise=0.0,
        samples=len(runs),
    )


def result(case: str, time: Timing | None) -> CaseResult:
    return msgspec.structs.replace(RIGHT, id=case, error=None, timing=time)


def score_of(
    *results: CaseResult, verdict: Verdict = Verdict.AC, weight: float = 1
) -> float | None:
    """weight: of the first size, against 1 of each other one."""
    cases = [Case(id=each.id, size=SIZE, weight=1) for each in results]
    cases[0] = msgspec.structs.replace(cases[0], weight=weight)
    found = scoring.score(verdict, cases, results, Scoring())
    return found.total if found else None


def test_the_interval_of_a_median_covers_it_as_often_as_promised() -> None:
    random.seed(3)
    for count, rounds in ((6, 2000), (11, 2000), (40, 2000), (101, 2000), (3000, 300)):
        hits = 0
        for _ in range(rounds):
            low, high = timing.median_interval([random.gauss(1.0, 0.1) for _ in range(count)])
            hits += low <= 1.0 <= high
        assert hits / rounds >= 0.93, count


def test_few_values_give_their_range() -> None:
    assert timing.median_interval([3.0, 1.0, 2.0]) == (1.0, 3.0)


def test_measuring_stops_when_the_ratio_is_known() -> None:
    steady = [Pair(bench_ms=2.0, baseline_ms=1.0 + 0.0001 * i) for i in range(10)]
    noisy = [Pair(bench_ms=2.0, baseline_ms=1.0 + 0.05 * (i % 3)) for i in range(10)]
    assert timing.certain(steady)
    assert not timing.certain(noisy)
    assert not timing.certain(steady[:3])


def test_a_later_run_may_rest_on_the_runs_before_it() -> None:
    steady = [Pair(bench_ms=2.0, baseline_ms=1.0 + 0.0001 * i) for i in range(20)]
    noisy = [Pair(bench_ms=2.0, baseline_ms=1.0 + 0.02 * (i % 3)) for i in range(6)]
    assert not timing.settled([noisy])
    assert timing.settled([steady, noisy])
    assert not timing.settled([steady, noisy[:5]])
    assert not timing.settled([noisy, noisy])


def test_a_summary_gives_the_runs_medians_and_the_ratio_of_all() -> None:
    runs = [
        [Pair(bench_ms=40.0, baseline_ms=20.0)] * 3,
        [Pair(bench_ms=50.0, baseline_ms=20.0)] * 3,
    ]
    summary = timing.summarise(runs, speed(SIZE))
    assert [round(r.speed, 2) for r in summary.runs] == [27.49, 21.99]
    assert summary.runs[0].baseline_speed == pytest.approx(flops(SIZE) / 20e-3 / 1e12)
    assert summary.samples == 6
    assert summary.ratio == pytest.approx(0.45)
    assert summary.ratio_ci == (0.4, 0.5)


def test_the_hosts_part_of_a_call_is_told_apart() -> None:
    pairs = [Pair(bench_ms=ms, baseline_ms=1.0) for ms in (2.0, 2.5, 3.0)]
    alone = timing.summarise([pairs], speed(SIZE))
    assert (alone.device_ms, alone.host_ms) == (None, None)
    both = timing.summarise([pairs], speed(SIZE), device_ms=1.5)
    assert (both.device_ms, both.host_ms) == (1.5, 1.0)
    assert timing.summarise([pairs], speed(SIZE), device_ms=2.6).host_ms == 0.0

    cases = (result("performance-0", both),)
    (shown,) = measurements(make_result(cases=cases))
    said = str(sentence(shown, GEMM.info(), None))
    assert "1.5 ms" in said and "1 ms on top (40 %)" in said


def test_the_published_judge_log_gives_its_score() -> None:
    log = measured((16.183, 18.6725), (16.1785, 18.7723), (16.1763, 18.8029))
    assert score_of(result("performance-0", log)) == 86.07


def test_a_score_never_exceeds_the_cap_and_needs_acceptance() -> None:
    fast = result("performance-0", measured((60.0, 50.0)))
    assert score_of(fast) == 100
    assert score_of(fast, verdict=Verdict.WA) == 0
    assert score_of(result("performance-0", None)) is None


def test_sizes_count_by_weight_and_none_earns_more_than_its_share() -> None:
    """A geometric mean of the times would be next to nothing."""
    slow, none = result("slow", measured((15.0, 50.0))), result("none", measured((1e12, 50.0)))
    assert score_of(slow, none) == 65
    whole, half = result("a", measured((50.0, 50.0))), result("b", measured((25.0, 50.0)))
    assert score_of(whole, half, weight=3) == 87.5


@pytest.mark.parametrize(
    ("policy", "ratio", "points"),
    [
        ("linear", 0.05, 10.0),
        ("linear", 0.55, 55.0),
        ("linear", 2.0, 100.0),
        ("log", 0.1, 10.0),
        ("log", 10**-0.5, 55.0),
    ],
)
def test_checkpoints(policy: str, ratio: float, points: float) -> None:
    marks = (Checkpoint(ratio=1.0, score=100), Checkpoint(ratio=0.1, score=10))
    rule = Scoring(policy=policy, checkpoints=marks)  # type: ignore[arg-type]
    assert scoring.place(measured((ratio, 1.0)), rule).points == pytest.approx(points)


def test_no_product_takes_less_than_the_gpu_can() -> None:
    gpu = msgspec.structs.replace(H200, dram_gb_s=4814.0)
    # The peak's time for two thirds of the operations; for a thin product that of reading A.
    assert least_ms(*GEMM.least(SIZE), gpu) == pytest.approx(2 / 3 * flops(SIZE) / 66.9e9)
    thin = Size.of(m=8192, n=1, k=8192)
    assert least_ms(*GEMM.least(thin), gpu) == pytest.approx(4 * 8193 * 8192 / 4814e6)
    unknown = msgspec.structs.replace(gpu, fp32_peak_tflops=None, dram_gb_s=None)
    assert least_ms(*GEMM.least(SIZE), unknown) == 0


def test_why_measuring_stopped_and_how_few_samples_are_few() -> None:
    steady = [Pair(bench_ms=2.0, baseline_ms=1.0)] * 6
    assert timing.summarise([steady, steady], speed(SIZE)).stopped == "certain"
    assert timing.summarise([steady, steady[:3]], speed(SIZE)).stopped == "budget"
    assert timing.few(5)
    assert not timing.few(6)


def test_two_clocks_agree_unless_somebody_forged_an_event() -> None:
    def clocked(gpu_ms: float, host_ms: float) -> timing.Clocked:
        return timing.Clocked(gpu_ms=gpu_ms, host_ms=host_ms)

    baseline = clocked(21.5, 21.7)
    honest = [(clocked(34.0, 34.2 + 5 * (k % 4 == 0)), baseline) for k in range(12)]
    forged = [(clocked(10.0, 34.2), baseline) for _ in range(12)]
    busy = [(clocked(34.0, 37.2), clocked(21.5, 24.7)) for _ in range(12)]
    assert times.unseen_ms(honest) == times.unseen_ms(busy) == 0
    assert times.unseen_ms(forged) == pytest.approx(24.0)
