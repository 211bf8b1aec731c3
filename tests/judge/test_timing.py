"""Statistics, scores and peaks, and what measured times prove: a GPU grade without a GPU."""

import random
from pathlib import Path

import msgspec
import pytest

from grader.base.errors import LabError
from grader.base.records import Verdict
from grader.judge import scoring
from grader.judge import verdicts as judge
from grader.judge.launches import held_to_the_clock, unseen_ms
from grader.judge.scoring import measures
from grader.labs.lab import Case, Hidden, Lab, find_lab, load_lab
from grader.labs.scoring_rules import Milliseconds, Scoring, Start, Stretch
from grader.labs.shape import Rules
from grader.report.measurement import measurements, sentence
from grader.results.case import CaseResult, Run, Timing
from grader.results.ladders import shipped_ladders
from grader.results.score import Piece, Score, points_at
from grader.run import statistics as timing
from grader.run.protocol import CaseOutcome
from grader.run.statistics import Clocked, Pair
from ptxsim.plan import Size
from tests.support.files import values
from tests.support.pages import H200, timed
from tests.support.product import GEMM, flops, shipped_ladder, speed
from tests.support.results import RIGHT, make_result
from tests.support.results import outcome as outcome_of

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
    found = scoring.score(verdict, cases, {each.id: each.timing for each in results}, Scoring())
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
    assert timing.settled([steady, noisy[:4]])
    assert not timing.settled([steady, noisy[:3]])
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


def test_no_product_takes_less_than_the_gpu_can() -> None:
    gpu = msgspec.structs.replace(H200, dram_gb_s=4814.0)
    # The peak's time for two thirds of the operations; for a thin product that of reading A.
    assert GEMM.at(SIZE).least_ms(gpu) == pytest.approx(2 / 3 * flops(SIZE) / 66.9e9)
    thin = Size.of(m=8192, n=1, k=8192)
    assert GEMM.at(thin).least_ms(gpu) == pytest.approx(4 * 8193 * 8192 / 4814e6)
    unknown = msgspec.structs.replace(gpu, fp32_peak_tflops=None, dram_gb_s=None)
    assert GEMM.at(SIZE).least_ms(unknown) == 0


def test_why_measuring_stopped_and_how_few_samples_are_few() -> None:
    steady = [Pair(bench_ms=2.0, baseline_ms=1.0)] * 6
    assert timing.summarise([steady, steady], speed(SIZE)).stopped == "certain"
    assert timing.summarise([steady, steady[:4]], speed(SIZE)).stopped == "certain"
    assert timing.summarise([steady, steady[:3]], speed(SIZE)).stopped == "budget"
    assert timing.summarise([steady[:4], steady], speed(SIZE)).stopped == "budget"
    assert timing.few(5)
    assert not timing.few(6)


def test_two_clocks_agree_unless_somebody_forged_an_event() -> None:
    def clocked(gpu_ms: float, host_ms: float) -> timing.Clocked:
        return timing.Clocked(gpu_ms=gpu_ms, host_ms=host_ms)

    baseline = clocked(21.5, 21.7)
    honest = [(clocked(34.0, 34.2 + 5 * (k % 4 == 0)), baseline) for k in range(12)]
    forged = [(clocked(10.0, 34.2), baseline) for _ in range(12)]
    busy = [(clocked(34.0, 37.2), clocked(21.5, 24.7)) for _ in range(12)]
    assert unseen_ms(honest) == unseen_ms(busy) == 0
    assert unseen_ms(forged) == pytest.approx(24.0)


LARGE = Size.of(m=8192, n=8192, k=8192)
GPU = msgspec.structs.replace(H200, fp32_peak_tflops=60.0)


def outcome(name: str, size: Size, untimed_ms: float, timed_ms: float | None = None) -> CaseOutcome:
    times = None if timed_ms is None else (timed_ms, 20.0)
    return outcome_of(Case(id=name, size=size), untimed_ms=untimed_ms, times=times)


def verdicts(*outcomes: CaseOutcome) -> list[str]:
    held = held_to_the_clock(outcomes, GEMM, GPU)
    judged = judge.judge_cases(outcomes, held, Rules(), GEMM.arithmetic)
    return [each.verdict.value for each in judged if each.verdict]


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
        ([(20.0, 20.2), (12.1, 12.3), (20.0, 20.2)], "nothing of this size takes"),
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


# --- curves


SHIPPED = load_lab(find_lab("sgemm-curve")).scoring
PARITY = SHIPPED.pieces[1].rate


def shipped(ratio: float) -> float:
    return points_at(scoring.beside_the_baseline(SHIPPED).pieces, ratio)


@pytest.mark.parametrize(("ratio", "points"), values(__file__, "courses_points.txt"))
def test_the_shipped_curve_gives_the_courses_points(ratio: float, points: float) -> None:
    assert shipped(ratio) == pytest.approx(points, abs=1e-9)


SHAPES = [("linear", 0.0), ("exp", 1.5), ("exp", -3.0), ("exp", 40.0)]


@pytest.mark.parametrize(("shape", "rate"), SHAPES)
@pytest.mark.parametrize(("start", "end"), [(0.2, 0.9), (80.0, 25.0)])
def test_a_piece_grows_between_its_ends_and_back(
    shape: str, rate: float, start: float, end: float
) -> None:
    piece = Piece(name="", shape=shape, rate=rate, start=start, end=end, low=10, high=70)  # type: ignore[arg-type]
    spots = [start + (end - start) * i / 50 for i in range(51)]
    points = [points_at([piece], spot) for spot in spots]
    assert points == sorted(points)
    assert (points[0], points[-1]) == (10, pytest.approx(70))


# --- measures ---------------------------------------------------------------------------------

PIECES = (
    Stretch(name="first", points=60),
    Stretch(name="second", points=100, shape="exp", rate=2.0),
)
PLAIN = Timing(runs=(), ratio=1.0, ratio_ci=(0.0, 9.0), noise=0.01, samples=9)


def lab(rules: Scoring) -> Lab:
    return msgspec.structs.replace(load_lab(), scoring=rules)


def test_milliseconds_of_a_size_on_a_gpu_model() -> None:
    times = Milliseconds(gpu="NVIDIA H200", size=(8192, 8192, 8192), at=(100.0, 40.0, 20.0))
    rules = Scoring(policy="curve", measure="ms", pieces=PIECES, milliseconds=(times,))
    # 2·8192³ operations in 70 ms: half of the way from 100 ms to 40 ms.
    score = scored(rules, "NVIDIA H200", 2 * 8192**3 / 70e-3 / 1e12)
    assert (score.total, score.max) == (30, 100)
    assert score.curves[0].position == pytest.approx(70)
    with pytest.raises(LabError, match=r"scoring.milliseconds: .*NVIDIA H200, none for Tesla T4"):
        measures(lab(rules), "Tesla T4", ())


def test_a_share_of_the_roofline_is_of_the_longer_of_moving_and_computing() -> None:
    """8192³ computes for long; of a transpose only bytes count. Hidden sizes
    have a roofline, too, and a GPU without a data sheet has none."""
    pieces = (Stretch(name="a", to=0.5, points=60), Stretch(name="b", to=0.85, points=100))
    rules = Scoring(policy="curve", measure="roofline", pieces=pieces)
    score = scored(rules, "NVIDIA H200", 66.9 / 4)
    assert score.total == pytest.approx(30, abs=0.1)
    assert score.of_roofline == {"performance-0": pytest.approx(0.25, abs=1e-3)}
    moves = msgspec.structs.replace(load_lab(find_lab("transpose")), scoring=rules)
    by = measures(moves, "NVIDIA H200", ())
    assert by["performance-2"].roof == pytest.approx(4800)
    half = msgspec.structs.replace(PLAIN, runs=(Run(speed=2400.0, baseline_speed=4000.0),))
    assert scoring.place(half, rules, by["performance-2"]).points == pytest.approx(60)
    unseen = Hidden(
        unsealed="",
        weight=1,
        public_weight=1,
        seed_file=Path(),
        performance=(Case(id="unseen", size=moves.cpu[0].size),),
    )
    moves = msgspec.structs.replace(moves, hidden=unseen)
    assert "unseen" in measures(moves, "NVIDIA H200", ())
    for other in ("Some GPU", "NVIDIA H200 MIG 1g.18gb"):
        with pytest.raises(LabError, match=f"^scoring.measure: no data sheet is known of {other}"):
            measures(moves, other, ())


def case(speed: float) -> CaseResult:
    """The default lab's timed size, at this speed beside a baseline of 50."""
    timing = msgspec.structs.replace(
        PLAIN, runs=(Run(speed=speed, baseline_speed=50.0),), ratio=speed / 50
    )
    return msgspec.structs.replace(timed(8192, 1.0, 50.0), id="performance-0", timing=timing)


def scored(rules: Scoring, gpu: str, speed: float) -> Score:
    by = measures(lab(rules), gpu, shipped_ladders())
    times = {"performance-0": case(speed).timing}
    score = scoring.score(Verdict.AC, load_lab().performance, times, rules, by)
    assert score is not None
    return score


def test_the_ratio_to_a_rung_comes_from_its_gpus_ladder() -> None:
    ladder = shipped_ladder()
    assert ladder.gpu is not None
    step = next(each for each in ladder.steps if each.at(SIZE.dims))
    figure = step.at(SIZE.dims)
    assert figure is not None
    pieces = (
        Stretch(name="up to the rung", to=1, points=80),
        Stretch(name="beyond", to=2, points=90),
    )
    rules = Scoring(policy="curve", measure="rung", rung=step.rung.name, pieces=pieces)
    for factor, points in ((0.5, 40), (1.0, 80), (1.5, 85), (3.0, 90)):
        score = scored(rules, ladder.gpu.name, 50 * figure.ratio * factor)
        assert score.total == pytest.approx(points, abs=0.01)
        assert (score.curves[0].measure, score.curves[0].rung) == ("rung", step.rung.name)


@pytest.mark.parametrize(
    ("rung", "gpu", "size", "words"),
    [
        (None, "Tesla T4", SIZE, "scoring.rung: no ladder was measured on Tesla T4, only on N"),
        ("99_best", None, SIZE, "scoring.rung: no rung is named '99_best'; did you mean"),
        (None, None, Size.of(m=8, n=8, k=8), "was not timed at 8×8×8 on NVIDIA H200; time one of"),
    ],
)
def test_a_rung_without_a_figure_is_one_clear_line(
    rung: str | None, gpu: str | None, size: Size, words: str
) -> None:
    name = rung or shipped_ladder().steps[0].rung.name
    rules = Scoring(policy="curve", measure="rung", rung=name, pieces=PIECES, start=Start())
    other = msgspec.structs.replace(lab(rules), performance=(Case(id="a", size=size),))
    with pytest.raises(LabError) as caught:
        measures(other, gpu or "NVIDIA H200", shipped_ladders())
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
