"""Statistics of an interleaved measurement: pairs of times, their ratio, its uncertainty.

Submission and baseline are timed alternately on the same inputs (A B B A …), so that
changes of the machine over time affect both. The score uses their ratio; absolute TFLOPS are for
readers.
"""

import itertools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence

from grader.results import TARGET_HALF_WIDTH, Mode, Modes, Run, RunnerUp, Timing, Watched, few
from ptxsim.plan import Record

Speed = Callable[[float], float]  # milliseconds → the speed in the problem's unit

_IN_EACH_ORDER = 4  # repetitions after which each variant has had each place

# When two groups of repetitions are two modes; docs/verification.md derives the figures.
MODES_APART = 0.05  # relative, at least
_LEAST_APART_MS = 0.025  # submitting a launch may take the host about as long
_SMALLEST_SHARE = 0.15  # of the repetitions in either group; fewer are outliers
_OF_THE_BASELINE = 3.0  # its noise, in standard deviations
_OF_ITS_OWN = 3.0  # scatter within the groups explains as many standard deviations …
_OWN_AT_MOST = 0.15  # … and no more than this: the submission itself makes it
_POINTS = 300  # repetitions used, from all runs together

_SIGMA = 1.4826  # standard deviation / median deviation, of normal noise


class Repetition(Record):
    """The submission and the variants of the baseline, each once. Milliseconds."""

    bench_ms: float
    baselines_ms: Mapping[str, float]  # by name; a surely slower one has no later repetitions


class Pair(Record):
    """One repetition beside the variant of the baseline that counts. Milliseconds."""

    bench_ms: float
    baseline_ms: float

    @property
    def ratio(self) -> float:
        """Speed of the submission against the baseline."""
        return self.baseline_ms / self.bench_ms


class Clocked(Record):
    """One launch by two clocks. Milliseconds."""

    gpu_ms: float  # between two events
    host_ms: float  # from an idle GPU to the second event, including work before the first


def find_fastest(runs: Sequence[Sequence[Repetition]]) -> str:
    """Return the variant of the baseline whose median is the least, of those timed to the end."""
    repetitions = list(itertools.chain(*runs))
    return min(
        repetitions[-1].baselines_ms,
        key=lambda name: statistics.median(each.baselines_ms[name] for each in repetitions),
    )


def pair_with(runs: Sequence[Sequence[Repetition]], variant: str) -> list[list[Pair]]:
    return [
        [Pair(bench_ms=each.bench_ms, baseline_ms=each.baselines_ms[variant]) for each in run]
        for run in runs
    ]


def compare_variants(runs: Sequence[Sequence[Repetition]], best: str) -> dict[str, list[float]]:
    """Return the speed of each other variant beside ``best``, in each repetition that has both."""
    ratios: dict[str, list[float]] = {}
    for each in itertools.chain(*runs):
        for name in each.baselines_ms.keys() - {best}:
            ratios.setdefault(name, []).append(each.baselines_ms[best] / each.baselines_ms[name])
    return ratios


def find_slower(runs: Sequence[Sequence[Repetition]]) -> set[str]:
    """Return the variants that need no more repetitions: they are surely not the fastest."""
    ratios = compare_variants(runs, find_fastest(runs)).items()
    return {name for name, each in ratios if not few(len(each)) and median_interval(each)[1] < 1}


def find_runner_up(runs: Sequence[Sequence[Repetition]], best: str) -> RunnerUp | None:
    """Return how the next best variant did beside the best one; None if there is no other."""
    ratios = {name: statistics.median(e) for name, e in compare_variants(runs, best).items()}
    name = max(ratios, key=ratios.__getitem__, default=None)
    return None if name is None else RunnerUp(name=name, ratio=ratios[name])


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """A 95 % confidence interval of the median from order statistics; no shape is assumed. With
    fewer than six values the interval is their whole range, and covers less than 95 %."""
    ordered = sorted(values)
    n = len(ordered)
    if n < 6:
        return ordered[0], ordered[-1]
    # Ranks l and n+1-l with a binomial tail of at most 2.5 % on each side; the normal law is exact
    # enough, and does not underflow, where there are many.
    if n > 100:
        rank = max(1, math.floor(n / 2 - 0.98 * math.sqrt(n)))
    else:
        tail, chance, rank = 0.0, 0.5**n, 0
        while tail + chance <= 0.025:
            tail += chance
            rank += 1
            chance = chance * (n - rank + 1) / rank
    return ordered[rank - 1], ordered[n - rank]


def certain(pairs: Sequence[Pair]) -> bool:
    """Whether more repetitions would add nothing."""
    if few(len(pairs)):
        return False
    ratios = [pair.ratio for pair in pairs]
    low, high = median_interval(ratios)
    return (high - low) / 2 <= TARGET_HALF_WIDTH * statistics.median(ratios)


def settled(runs: Sequence[Sequence[Pair]]) -> bool:
    """Whether more repetitions of the last run would add nothing: it is known well enough by
    itself, or all runs together are."""
    last = runs[-1]
    pairs = [pair for run in runs for pair in run]
    return certain(last) or (len(last) >= _IN_EACH_ORDER and certain(pairs))


def summarise(
    runs: Sequence[Sequence[Pair]],
    speed: Speed,
    baseline: str | None = None,
    *,
    runner_up: RunnerUp | None = None,
    disturbed: int = 0,
    watched: Watched | None = None,
    device_ms: float | None = None,
) -> Timing:
    """The result of a case's runs; every run has at least one pair."""
    pairs = [pair for run in runs for pair in run]
    ratios = [pair.ratio for pair in pairs]
    ratio = statistics.median(ratios)
    deviation = statistics.median(abs(r - ratio) for r in ratios)
    took = statistics.median(pair.bench_ms for pair in pairs)
    return Timing(
        runs=tuple(
            Run(
                speed=speed(statistics.median(p.bench_ms for p in run)),
                baseline_speed=speed(statistics.median(p.baseline_ms for p in run)),
            )
            for run in runs
        ),
        ratio=ratio,
        ratio_ci=median_interval(ratios),
        noise=_SIGMA * deviation / ratio,
        samples=len(pairs),
        baseline=baseline,
        runner_up=runner_up,
        stopped="certain" if all(settled(runs[:i]) for i in range(1, len(runs) + 1)) else "budget",
        disturbed=disturbed,
        watched=watched,
        modes=find_modes(runs, speed),
        device_ms=device_ms,
        host_ms=None if device_ms is None else max(0.0, took - device_ms),
    )


def find_modes(runs: Sequence[Sequence[Pair]], speed: Speed) -> Modes | None:
    """Two speeds of one size, or None if the repetitions agree within the noise.

    Repetitions are compared by their ratio to the baseline in the same pair: a clock that changes
    slows both. They must also differ in the submission's own times, so that modes of the baseline
    do not count against the submission.
    """
    groups = _split_of_repetitions(runs) or _split_of_runs(runs)
    if groups is None:
        return None
    *pairs, share = groups
    fast, slow = (
        Mode(
            speed=speed(statistics.median(pair.bench_ms for pair in group)),
            ratio=statistics.median(pair.ratio for pair in group),
            share=own,
        )
        for group, own in zip(pairs, (share, 1 - share), strict=True)
    )
    return Modes(fast=fast, slow=slow)


_Groups = tuple[Sequence[Pair], Sequence[Pair], float]  # fast, slow, share of the fast


def _split_of_repetitions(runs: Sequence[Sequence[Pair]]) -> _Groups | None:
    """The two groups that scatter least, if there is a gap between them."""
    pairs = sorted(_equal_say(runs), key=_slowness)
    slowness = [_slowness(pair) for pair in pairs]
    least = math.ceil(_SMALLEST_SHARE * len(pairs))
    cuts = range(least, len(pairs) - least + 1)
    if not cuts:
        return None
    sums = list(itertools.accumulate(slowness, initial=0.0))
    cut = min(cuts, key=lambda at: _scatter(sums, 0, at) + _scatter(sums, at, len(pairs)))
    parts = ((values, statistics.median(values)) for values in (slowness[:cut], slowness[cut:]))
    within = statistics.median(abs(value - middle) for values, middle in parts for value in values)
    noise = max(
        math.log1p(MODES_APART),
        _OF_THE_BASELINE * _baseline_noise(runs),
        min(_OF_ITS_OWN * _SIGMA * within, math.log1p(_OWN_AT_MOST)),
    )
    times = [math.log(pair.bench_ms) for pair in pairs]
    # From the slowest quarter of one group to the fastest of the other: outliers make no mode.
    groups = ((sorted(values[:cut]), sorted(values[cut:])) for values in (slowness, times))
    apart = min(slow[len(slow) // 4] - fast[3 * len(fast) // 4] for fast, slow in groups)
    fast, slow = pairs[:cut], pairs[cut:]
    return (fast, slow, cut / len(pairs)) if apart >= noise and _tells(fast, slow) else None


def _split_of_runs(runs: Sequence[Sequence[Pair]]) -> _Groups | None:
    """The runs that are slower than the fastest, if the intervals of their medians are apart."""
    fastest = min(runs, key=lambda run: statistics.median(map(_slowness, run)))
    others: list[Sequence[Pair]] = []
    slower: list[Sequence[Pair]] = []
    for run in runs:
        gaps = (
            median_interval(list(map(measure, run)))[0]
            - median_interval(list(map(measure, fastest)))[1]
            for measure in (_slowness, lambda pair: math.log(pair.bench_ms))
        )
        (slower if min(gaps) >= math.log1p(MODES_APART) else others).append(run)
    if not slower:
        return None
    fast, slow = _equal_say(others), _equal_say(slower)
    return (fast, slow, 1 - len(slower) / len(runs)) if _tells(fast, slow) else None


def _tells(fast: Sequence[Pair], slow: Sequence[Pair]) -> bool:
    """Whether the difference is more than submitting a launch can explain."""
    middles = [statistics.median(pair.bench_ms for pair in group) for group in (fast, slow)]
    return middles[1] - middles[0] >= _LEAST_APART_MS


def _slowness(pair: Pair) -> float:
    return -math.log(pair.ratio)


def _equal_say(runs: Sequence[Sequence[Pair]]) -> list[Pair]:
    """The same number of repetitions of every run, evenly spaced by their ratio. Otherwise a run
    that needs few repetitions would not count beside one that takes many."""
    each = max(1, min(max(map(len, runs)), _POINTS // len(runs)))
    chosen: list[Pair] = []
    for run in runs:
        ordered = sorted(run, key=lambda pair: pair.ratio)
        chosen += (ordered[(2 * i + 1) * len(run) // (2 * each)] for i in range(each))
    return chosen


def _scatter(sums: Sequence[float], start: int, end: int) -> float:
    """Sum of the distances from the median of sorted values; ``sums`` are their running sums."""
    half = (end - start) // 2
    return (sums[end] - sums[end - half]) - (sums[start + half] - sums[start])


def _baseline_noise(runs: Sequence[Sequence[Pair]]) -> float:
    """Standard deviation of the logarithm of one of the baseline's times. From neighbours in time,
    whose difference a slow change of the clock hardly affects."""
    logs = [[math.log(pair.baseline_ms) for pair in run] for run in runs]
    steps = [abs(after - before) for run in logs for before, after in itertools.pairwise(run)]
    return _SIGMA * statistics.median(steps) / math.sqrt(2) if steps else 0.0
