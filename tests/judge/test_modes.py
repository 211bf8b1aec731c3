"""Repetitions that fall into two speeds: found when noise cannot explain them, and scored slow."""

import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.base.records import Verdict
from grader.judge import scoring
from grader.labs.lab import Case
from grader.labs.scoring_rules import Scoring, Start, Stretch
from grader.report import html
from grader.results import store
from grader.results.case import Modes, Timing
from grader.run.statistics import Pair, find_modes, summarise
from ptxsim.plan import Size
from tests.support.pages import gpu_result, printed, timed
from tests.support.product import flops, speed

SIZE = Size.of(m=8192, n=8192, k=8192)
RUNS = (20, 20, 20)
Times = Callable[[int, int], float]  # repetition, run → relative time


class Machine:
    """Made-up measurements: the submission takes 22 ms and the baseline 20, times noise."""

    def __init__(self) -> None:
        self.random = random.Random(20261121)

    def normal(self, sigma: float) -> Times:
        return lambda _i, _run: math.exp(self.random.gauss(0, sigma))

    def exponential(self, mean: float) -> Times:
        """A tail to one side, as interrupts make it."""
        return lambda _i, _run: 1 + self.random.expovariate(1 / mean)

    def now_and_then(self, share: float, factor: float) -> Times:
        return lambda _i, _run: factor if self.random.random() < share else 1.0

    def found(self, counts: Sequence[int], bench: Times, baseline: Times) -> Modes | None:
        runs = [
            [Pair(bench_ms=22 * bench(i, run), baseline_ms=20 * baseline(i, run)) for i in range(n)]
            for run, n in enumerate(counts)
        ]
        return find_modes(runs, speed(SIZE))

    def rate(self, counts: Sequence[int], bench: Times, baseline: Times, times: int = 200) -> float:
        return sum(self.found(counts, bench, baseline) is not None for _ in range(times)) / times


def both(*factors: Times) -> Times:
    return lambda i, run: math.prod(factor(i, run) for factor in factors)


@pytest.fixture
def machine() -> Machine:
    return Machine()


# The spread of single times that was measured, by size, and the repetitions a run makes there.
HONEST = {
    "8192": ((5, 5, 5), 0.005),
    "2048": ((100, 100, 100), 0.005),
    "1024": ((60, 60, 60), 0.03),
    "512": ((400, 400, 400), 0.10),
    "256": ((400, 400, 400), 0.20),
}


def clock(i: int, run: int) -> float:
    """It explains itself: both sides slow down."""
    return 1.15 if run == 1 or i > 12 else 1.0


Sides = Callable[[Machine], tuple[Times, Times]]
# Measurements of one speed, and how often two may be seen in them.
ONE_SPEED: dict[str, tuple[tuple[int, ...], Sides, float]] = {
    **{
        f"noise at {size}": (counts, lambda m, s=sigma: (m.normal(s),) * 2, 0.01)
        for size, (counts, sigma) in HONEST.items()
    },
    **{
        f"a tail at {size}": (counts, lambda m, s=sigma: (m.exponential(s),) * 2, 0.02)
        for size, (counts, sigma) in HONEST.items()
    },
    **{
        f"{sigma}, noisier than cuBLAS, {counts[0]} a run": (
            counts,
            lambda m, s=sigma: (m.normal(s), m.normal(0.001)),
            0.02,
        )
        for counts in ((5, 5, 5), (60, 60, 60))
        for sigma in (0.01, 0.02, 0.03)
    },
    "outliers": (
        (60, 60, 60),
        lambda m: (both(m.now_and_then(0.03, 2.0), m.normal(0.003)), m.normal(0.003)),
        0.01,
    ),
    **{  # An honest kernel at 3072 on an H200 has them.
        f"{apart} apart": (
            (60, 60, 60),
            lambda m, a=apart: (
                both(m.now_and_then(0.4, 1 + a), m.normal(0.004)),
                m.normal(0.0015),
            ),
            0.01,
        )
        for apart in (0.02, 0.03, 0.04)
    },
    "the clock": (RUNS, lambda m: (both(clock, m.normal(0.003)), both(clock, m.normal(0.003))), 0),
    "modes of the baseline": (
        RUNS,
        lambda m: (m.normal(0.003), both(m.now_and_then(0.5, 1.2), m.normal(0.003))),
        0,
    ),
}


@pytest.mark.parametrize(("counts", "sides", "most"), ONE_SPEED.values(), ids=ONE_SPEED.keys())
def test_one_speed_is_left_alone(
    counts: tuple[int, ...], sides: Sides, most: float, machine: Machine
) -> None:
    times = 40 if sum(counts) > 500 else 200
    assert machine.rate(counts, *sides(machine), times) <= most


def test_honest_speeds_further_apart_cost_no_more_than_the_difference(machine: Machine) -> None:
    bench = both(machine.now_and_then(0.4, 1.065), machine.normal(0.004))
    modes = machine.found((60, 60, 60), bench, machine.normal(0.0015))
    assert modes
    assert modes.slow.speed >= modes.fast.speed / 1.08


def test_what_the_host_adds_to_a_short_launch_is_no_mode(machine: Machine) -> None:
    """cuBLAS at 256 on an H200: 12 µs, or 24 when the GPU waited for the host."""
    late = both(machine.now_and_then(0.4, 2.0), machine.normal(0.01))
    runs = [
        [Pair(bench_ms=0.012 * late(i, r), baseline_ms=0.012) for i in range(300)] for r in range(3)
    ]
    assert find_modes(runs, Size.of(m=256, n=256, k=256)) is None


# Times of the slower repetitions are 3.7 times those of the fast ones, as 97 to 26 TFLOPS.
TWO_SPEEDS: dict[str, tuple[Sequence[int], Times, float]] = {
    "fast in the first run only": (RUNS, lambda _i, run: 1 if run == 0 else 3.7, 1 / 3),
    "and that run is the longest": ((400, 6, 6), lambda _i, run: 1 if run == 0 else 3.7, 1 / 3),
    "fast in the first two runs": (RUNS, lambda _i, run: 3.7 if run == 2 else 1, 2 / 3),
    "fast in every third": (RUNS, lambda i, _run: 1 if i % 3 == 0 else 3.7, 7 / 20),
    "slow in every fifth": (RUNS, lambda i, _run: 3.7 if i % 5 == 0 else 1, 0.8),
    "one repetition a run": ((1, 1, 1), lambda _i, run: 1 if run == 0 else 3.7, 1 / 3),
}


@pytest.mark.parametrize(("counts", "bench", "share"), TWO_SPEEDS.values(), ids=TWO_SPEEDS.keys())
def test_two_speeds_are_found(
    counts: Sequence[int], bench: Times, share: float, machine: Machine
) -> None:
    noise = machine.normal(0.003)
    modes = machine.found(counts, both(bench, noise), noise)
    assert modes
    assert modes.fast.share == pytest.approx(share, abs=0.02)
    assert modes.fast.share + modes.slow.share == pytest.approx(1)
    assert modes.fast.speed / modes.slow.speed == pytest.approx(3.7, rel=0.02)
    assert modes.fast.ratio / modes.slow.ratio == pytest.approx(3.7, rel=0.02)


def test_hiding_the_gap_does_not_help(machine: Machine) -> None:
    """Times spread out between the modes, rare giants, jitter on top of the fast run."""
    noise = machine.normal(0.003)

    def spread(_i: int, run: int) -> float:
        return 1.0 if run == 0 else 1 + 3 * machine.random.random()

    def giants(i: int, _run: int) -> float:
        return 20.0 if i % 20 == 7 else 1.2 if i % 2 else 1.0

    def first_run(_i: int, run: int) -> float:
        return 1.0 if run == 0 else 1.2

    assert machine.rate(RUNS, both(spread, noise), noise) == 1
    assert machine.rate(RUNS, both(giants, noise), noise) == 1
    assert machine.rate(RUNS, both(first_run, machine.normal(0.07)), noise) >= 0.9


# --- what becomes of it -----------------------------------------------------------------------


def timing() -> Timing:
    """97 TFLOPS in the first run and 26 in the others, beside 50."""
    runs = [
        [Pair(bench_ms=flops(SIZE) / speed / 1e9, baseline_ms=flops(SIZE) / 50e9)] * 6
        for speed in (97.0, 26.0, 26.0)
    ]
    return summarise(runs, speed(SIZE))


def test_every_policy_scores_the_slower_mode() -> None:
    seen = timing()
    assert scoring.place(seen, Scoring()).points == pytest.approx(52)
    pieces = (Stretch(name="all", to=1.0, points=100),)
    curve = Scoring(policy="curve", start=Start(at=0.1, points=10), pieces=pieces)
    assert scoring.place(seen, curve).points == pytest.approx(52)


def test_one_speed_is_scored_by_the_published_rule() -> None:
    runs = [[Pair(bench_ms=ms, baseline_ms=20.0)] * 6 for ms in (20.0, 20.2, 20.4)]
    seen = summarise(runs, speed(SIZE))
    assert seen.modes is None
    assert seen.scored_speed == max(run.speed for run in seen.runs)
    assert seen.scored_ratio == seen.ratio


def test_document_page_and_terminal_say_so(tmp_path: Path) -> None:
    case = msgspec.structs.replace(timed(8192, 97, 50), id="performance-0", timing=timing())
    asked = [Case(id="performance-0", size=SIZE)]
    score = scoring.score(Verdict.AC, asked, {case.id: case.timing}, Scoring())
    result = gpu_result(cases=(case,), score=score)
    said = (
        "two speeds, 97 TFLOPS in 33 % of the repetitions and 26 in the others, further apart "
        "than noise explains: the slower one is scored"
    )
    shown = printed(result, width=400)
    assert said in shown and "Score 52.00" in shown
    assert said in html.render(result, {})
    document = store.save(tmp_path, result)
    assert store.load(document) == result


TIMES = st.floats(1e-4, 1e4)
RUN = st.lists(st.tuples(TIMES, TIMES), min_size=1, max_size=20)


@given(st.lists(RUN, min_size=1, max_size=5))
@settings(max_examples=100, deadline=None)
def test_whatever_the_times_the_score_never_gains(times: list[list[tuple[float, float]]]) -> None:
    runs = [[Pair(bench_ms=bench, baseline_ms=base) for bench, base in run] for run in times]
    seen = summarise(runs, speed(SIZE))
    assert seen.scored_speed <= max(run.speed for run in seen.runs)
    assert seen.scored_ratio <= seen.ratio
    if seen.modes:
        assert seen.modes.fast.speed > seen.modes.slow.speed
        assert seen.modes.fast.share + seen.modes.slow.share == pytest.approx(1)
        assert 0 < seen.modes.fast.share < 1
