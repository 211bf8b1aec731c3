"""The baseline: what cublasLt is asked for, which two variants are chosen, and which one counts."""

import ctypes
import itertools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from grader.base.errors import MachineError
from grader.base.finding import Finding, Kind
from grader.base.result import ErrorStats, PartTime
from grader.problems.gemm import cublas
from grader.problems.gemm.layout import Layout
from grader.report.measurement import measurements, sentence
from grader.run.gpu.measure import (
    MOST_STEPS,
    REPETITIONS,
    Choices,
    Part,
    PartStep,
    close_to_the_fastest,
    part_of,
    time_case,
    time_parts,
)
from grader.run.gpu.messages import GpuJob, Measured, Taken
from grader.run.protocol import CaseOutcome
from grader.run.statistics import Clocked
from ptxsim.findings import Severity
from ptxsim.plan import Memset, Size
from ptxsim.text import verbatim
from tests.support.pages import H200, gpu_result, timed
from tests.support.product import GEMM
from tests.support.results import RIGHT

SIZE = Size.of(m=8192, n=8192, k=8192)


class Clock:
    """Launches that take the milliseconds that a test gives them, again and again."""

    def __init__(self, **times: float | tuple[float, ...]) -> None:
        given = {name: each if isinstance(each, tuple) else (each,) for name, each in times.items()}
        self._times: dict[str, Iterator[float]] = {
            name: itertools.cycle(each) for name, each in given.items()
        }
        self.launches: Mapping[str, Callable[[], None]] = {
            name: self._launch(name) for name in given
        }
        self.order: list[str] = []

    def _launch(self, name: str) -> Callable[[], None]:
        return lambda: self.order.append(name)

    def milliseconds(self, launch: Callable[[], None]) -> float:
        launch()
        return next(self._times[self.order[-1]])


# --- what cuBLAS is asked for --------------------------------------------------------------------


class Library:
    """cublasLt as far as ``candidates`` calls it; every function says that it worked."""

    def __init__(self) -> None:
        self.preferences: dict[int, int] = {}
        self.asked = 0

    def __getattr__(self, name: str) -> Callable[..., int]:
        own: dict[str, Callable[..., int]] = {
            "cublasLtMatmulPreferenceSetAttribute": self._prefer,
            "cublasLtMatmulAlgoGetHeuristic": self._advise,
        }
        return own.get(name, lambda *_: 0)

    def _prefer(self, _preference: object, name: Any, value: Any, _size: object) -> int:
        self.preferences[name.value] = value._obj.value
        return 0

    def _advise(self, *arguments: Any) -> int:
        self.asked, found, count = arguments[7].value, arguments[8], arguments[9]._obj
        assert len(found) == self.asked
        found[3].state = 1  # this one is not supported
        count.value = self.asked
        return 0


def test_sixteen_candidates_may_use_256_mb(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library()
    monkeypatch.setattr(cublas, "_library", lambda _: library)
    types = cublas.types_for("bf16", "bf16", "f32")
    found = cublas.Cublas(0, 0, types).candidates(Layout(), SIZE, 1, 2, 3)
    assert library.asked == 16
    assert library.preferences[1] == 256 << 20  # CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
    assert list(found) == [f"cublasLt {i}" for i in range(1, 17) if i != 4]
    assert ctypes.sizeof(cublas._Heuristic) == 96  # cublasLtMatmulHeuristicResult_t


# --- which are timed beside the submission -------------------------------------------------------


def test_the_two_best_are_chosen_where_they_are_close() -> None:
    times = {"cublasSgemm": [10.0], "cublasLt 1": [9.9], "cublasLt 2": [9.8], "cublasLt 9": [30.0]}
    assert close_to_the_fastest(times) == ("cublasLt 2", "cublasLt 1")
    assert close_to_the_fastest(times | {"cublasLt 2": [9.6]}) == ("cublasLt 2",)
    assert close_to_the_fastest({"copy": [1.0]}) == ("copy",)


def test_a_bad_turn_and_a_first_launch_decide_nothing(tmp_path: Path) -> None:
    """The median of three turns; before them each candidate's code is loaded."""
    clock = Clock(steady=10.0, best=(500.0, 9.5, 20.0, 9.5), lucky=(500.0, 12.0, 9.0, 12.0))
    choices = Choices(tmp_path, H200, "cuBLAS 1")
    assert choices.best("gemm", SIZE, clock.launches, clock.milliseconds) == ("best",)
    assert len(clock.order) == 4 * 3
    assert clock.order[3:6] == clock.order[8:5:-1] == clock.order[9:]  # by turns


def test_short_launches_are_timed_several_times_in_a_turn(tmp_path: Path) -> None:
    clock = Clock(steady=0.01, noisy=(0.5, 0.011, 0.011, 0.4, 0.011, 0.011))
    choices = Choices(tmp_path, H200, "cuBLAS 1")
    assert choices.best("gemm", SIZE, clock.launches, clock.milliseconds) == ("steady",)
    assert clock.order.count("noisy") == 1 + 3 * 5


def test_a_choice_is_kept_for_this_library_and_these_candidates(tmp_path: Path) -> None:
    clock = Clock(one=10.0, two=10.1)
    first = Choices(tmp_path, H200, "cuBLAS 1, 16 candidates")
    assert first.best("gemm", SIZE, clock.launches, clock.milliseconds) == ("one", "two")
    ran = len(clock.order)
    assert first.best("gemm", SIZE, clock.launches, clock.milliseconds) == ("one", "two")
    assert len(clock.order) == ran
    fewer = {"two": clock.launches["two"]}  # a lab that admits less
    assert first.best("gemm", SIZE, fewer, clock.milliseconds) == ("two",)
    ran = len(clock.order)
    other = Choices(tmp_path, H200, "cuBLAS 1, 8 candidates")
    other.best("gemm", SIZE, clock.launches, clock.milliseconds)
    assert len(clock.order) > ran


# --- which one counts ----------------------------------------------------------------------------

OUTCOME = CaseOutcome(
    id="performance-0", size=SIZE.dims, amount=GEMM.amount(SIZE), seconds=0.1, error=RIGHT.error
)


class Case:
    """A size on a GPU, as ``time_case`` uses it; it writes down what happens."""

    def __init__(self, clock: Clock, *, right: bool = True) -> None:
        self.size = SIZE
        self.first: list[Taken] = []
        self._clock, self._right = clock, right
        self.events = clock.order
        self.launch = clock.launches["mine"]
        self.proofs = 0
        self.modified: list[Finding] = []
        self.error: ErrorStats | None = RIGHT.error

    def set_up(self) -> tuple[float, None]:
        return 0.0, None

    def rivals(self, beat: Callable[[], None]) -> dict[str, Callable[[], None]]:
        beat()
        return {name: each for name, each in self._clock.launches.items() if name != "mine"}

    def fresh(self) -> tuple[bytes, ...]:
        self.events.append("fresh")
        return (b"",)

    def timed(self, _charged: bool) -> Clocked:
        return clocked(self._clock, self.launch)

    def sample(self, keys: tuple[bytes, ...]) -> Taken:
        return Taken(keys=keys, outputs=())

    def make_ready(self, _keys: tuple[bytes, ...]) -> list[Finding]:
        self.events.append("ready")
        return self.modified

    def refer_beside(self, baseline: Callable[[], None], *, launched: bool) -> None:
        if not launched:
            baseline()

    def check(self, _keys: object, seconds: float, modified: list[Finding]) -> CaseOutcome:
        self.events.append("check")
        return msgspec.structs.replace(
            OUTCOME, seconds=seconds, error=self.error, findings=tuple(modified)
        )

    def prove_reference(self) -> None:
        self.proofs += 1
        if not self._right:
            raise MachineError("the reference itself is wrong")

    def device_ms(self) -> None:
        return None

    def parts(self, _beat: object) -> tuple[()]:
        return ()


def clocked(clock: Clock, launch: Callable[[], None]) -> Clocked:
    taken = clock.milliseconds(launch)
    return Clocked(gpu_ms=taken, host_ms=taken)


def run(case: Case, clock: Clock, seconds: float = 5.0) -> Measured:
    bench: Any = SimpleNamespace(
        problem=GEMM,
        gpu=H200,
        watch=SimpleNamespace(look=lambda: None),
        time=clock.milliseconds,
        clocked=lambda launch: clocked(clock, launch),
    )
    job = GpuJob(cubin="", cases=(), runs=2, run_seconds=seconds)
    measured_case: Any = case
    return time_case(bench, measured_case, job, lambda: None)


def turns(case: Case) -> list[list[str]]:
    """The events of each repetition."""
    found: list[list[str]] = [[]]
    for event in case.events[case.events.index("mine") + 1 :]:  # after the warm-up
        if event == "check":
            found.append([])
        else:
            found[-1].append(event)
    return found[:-1]


def test_the_better_of_two_counts_and_both_are_named() -> None:
    clock = Clock(mine=30.0, chosen=(20.0, 20.2), other=19.8)
    case = Case(clock)
    timing = run(case, clock).outcome.timing
    assert timing is not None and timing.runner_up is not None
    assert (timing.baseline, timing.runner_up.name) == ("other", "chosen")
    assert timing.ratio == pytest.approx(19.8 / 30)
    assert timing.runner_up.ratio == pytest.approx(19.8 / 20.1, rel=0.006)
    assert timing.stopped == "certain" and timing.samples == 10
    assert case.proofs == 2  # each was the reference
    ready = ["fresh", "mine", "ready"]
    assert turns(case)[:4] == [
        [*ready, "chosen", "other"],
        ["fresh", "chosen", *ready, "other"],
        [*ready, "other", "chosen"],
        ["fresh", "other", *ready, "chosen"],
    ]
    assert ["chosen" in each for each in turns(case)] == [True] * 6 + [False] * 4


def test_two_that_are_as_fast_are_both_timed_to_the_end() -> None:
    case = Case(clock := Clock(mine=30.0, one=(20.0, 20.1), other=(20.1, 20.0)))
    run(case, clock)
    assert all({"one", "other"} <= {*each} for each in turns(case))


def test_a_single_baseline_runs_before_and_after_the_submission_by_turns() -> None:
    clock = Clock(mine=30.0, only=20.0)
    case = Case(clock)
    timing = run(case, clock).outcome.timing
    assert timing is not None and timing.runner_up is None
    assert (timing.baseline, case.proofs) == ("only", 1)
    assert timing.ratio == pytest.approx(2 / 3)
    ready = ["fresh", "mine", "ready"]
    again = ["fresh", "only", *ready, "only"]  # once more, for the reference of new inputs
    assert turns(case)[:2] == [[*ready, "only"], again]


def test_a_baseline_that_is_wrong_is_the_machines_fault() -> None:
    case = Case(clock := Clock(mine=30.0, one=20.0, other=20.0), right=False)
    with pytest.raises(MachineError, match="the reference itself is wrong"):
        run(case, clock)


def test_overwritten_inputs_end_the_measurement_before_any_proof() -> None:
    case = Case(clock := Clock(mine=30.0, one=20.0, other=20.0))
    changed = Finding(
        kind=Kind.INPUT_MODIFIED, severity=Severity.ERROR, message=verbatim("overwritten")
    )
    case.modified = [changed]
    outcome = run(case, clock).outcome
    assert (outcome.timing, outcome.findings, case.proofs) == (None, (changed,), 0)


def test_the_report_names_both() -> None:
    case = timed(8192, 30.0, 50.0)
    clock = Clock(mine=30.0, other=19.8, chosen=20.0)
    timing = run(Case(clock), clock).outcome.timing
    assert timing is not None
    result = gpu_result(cases=(msgspec.structs.replace(case, timing=timing),))
    (shown,) = measurements(result)
    said = str(sentence(shown, GEMM.info(), result.environment.gpu))
    assert "of other (" in said
    assert "chosen had 99.0 % of other's speed" in said


# --- the parts of a call, on a stream that is a clock the test turns on


KERNEL, PAD, MEMSET = ("_Z4gemmPf", True), ("_Z3padPf", True), ("memset", False)


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
        stream.step(PAD, 1), stream.step(MEMSET, 0.5), stream.step(PAD, 2), stream.step(KERNEL, 9)
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
    assert stream.parts(stream.step(KERNEL, 1)) == ()
    assert stream.parts(*[stream.step(KERNEL, 1)] * (MOST_STEPS + 1)) == ()
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
    words = str(sentence(measured, GEMM.info(), result.environment.gpu))
    assert "one call: pad ×2 0.4067 ms (3.2 %), gemm" in words
    assert "memset 8.134 ms (64.5 %)" in words
    assert "alone: 0.528 TFLOPS; the whole call: 0.4807" in words
    assert "\x1b" not in words
