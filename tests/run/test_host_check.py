"""The host's check of a GPU's runs: its inputs are NumPy's, and what it finds decides."""

import math
from typing import Any

import msgspec
import numpy as np
import pytest

from grader import problems
from grader.base.errors import MachineError
from grader.base.finding import Finding, Kind
from grader.base.records import Verdict
from grader.judge.verdicts import judge_case
from grader.labs.lab import Case
from grader.labs.shape import Rules
from grader.problems.comparison import check
from grader.problems.inputs import KEY_BYTES, fresh_key, key_stream, make_inputs, values
from grader.problems.operands import EXPOSING, Operand, Steps
from grader.run.gpu import host_check
from grader.run.gpu.host_check import HostCheck, HostInput, key_words, measured, take
from grader.run.gpu.messages import Elements, Measured, Taken
from grader.run.protocol import CaseOutcome
from ptxsim.findings import Severity
from ptxsim.plan import Size
from ptxsim.text import NOTHING
from tests.support.product import GEMM
from tests.support.results import begun

SIZE = Size.of(m=40, n=50, k=60)
KEY = bytes(range(KEY_BYTES))


@pytest.mark.parametrize(
    "places",
    [
        np.arange(1000),
        np.arange(999, -1, -1),
        np.arange(5, 1 << 20, 4099),
        np.random.default_rng(1).integers(0, 1 << 20, 5000),
        np.array([[3, 5], [1 << 19, 0]]),
        np.array([], np.int64),
    ],
    ids=["in a row", "backwards", "far apart", "anywhere", "of a matrix", "none"],
)
def test_the_key_stream_is_that_of_numpy(places: Any) -> None:
    assert (key_words(KEY, places) == key_stream(KEY, 1 << 20)[places]).all()


@pytest.mark.parametrize("kind", [EXPOSING, Steps(bits=9, least=1 << 10, exponent=-10)], ids=str)
def test_the_elements_are_those_of_the_gpu(kind: Any) -> None:
    operand = Operand(name="A", role="in", shape=(1000,), values=kind)
    places = np.array([[7, 8], [999, 0]])
    found = HostInput(KEY, operand).at(places)
    assert (found == values(KEY, 1000, kind)[places]).all()


class OnDevice(np.ndarray):
    """An array that has to be copied, as CuPy's have."""

    def get(self) -> Any:
        return np.array(self)


def outcome_and_outputs() -> tuple[CaseOutcome, list[bytes], Any]:
    """What a right program leaves, and what the comparison on a GPU says of it."""
    operands = GEMM.operands(SIZE)
    keys = [fresh_key(), fresh_key()]
    inputs = make_inputs(operands, keys)
    (right,) = GEMM.reference(np, SIZE, inputs)
    memory = operands[2].flat(right.want).astype(np.float32)
    error = check(GEMM, SIZE, inputs, [memory]).error
    case = begun(Case(id="performance-0", size=SIZE))
    outcome = msgspec.structs.replace(case, seconds=1.0, error=error)
    return outcome, keys, memory.view(OnDevice)


def confirmed(outcome: CaseOutcome, *runs: Taken, first: tuple[Taken, ...] = ()) -> CaseOutcome:
    """After both have been through a pipe."""
    sent = msgspec.json.encode(measured(outcome, first, runs))
    return HostCheck(GEMM).confirm(msgspec.json.decode(sent, type=Measured))


def test_a_right_run_stays_right() -> None:
    outcome, keys, memory = outcome_and_outputs()
    taken = take(GEMM, SIZE, keys, [memory])
    assert confirmed(outcome, taken, taken, taken, first=(taken,)) == outcome


@pytest.mark.parametrize("first", [False, True], ids=["a later call", "the first call"])
def test_what_the_gpu_let_pass_is_a_wrong_answer_that_says_so(first: bool) -> None:
    outcome, keys, memory = outcome_and_outputs()
    right = take(GEMM, SIZE, keys, [memory])
    memory[0] += 1.0
    wrong = take(GEMM, SIZE, keys, [memory])
    memory[0] = np.nan
    for bad in (wrong, take(GEMM, SIZE, keys, [memory])):
        runs = (right, right) if first else (right, bad, right)
        found = confirmed(outcome, *runs, first=(bad,) if first else ())
        verdict, words = judge_case(found, Rules())
        assert verdict is Verdict.WA and found.timing is None
        assert [each.kind for each in found.findings] == [Kind.CHECKS_DIFFER]
        assert "1 of 64 elements that the host computed again are wrong" in str(words)
        assert "C[row 0, column 0] is " in str(words) and "the grader's code" in str(words)
        # What the GPU itself found wrong is told as it was found.
        assert confirmed(found, right) == found


def test_inputs_of_other_keys_are_wrong() -> None:
    """What made the inputs is on the GPU, too."""
    outcome, keys, memory = outcome_and_outputs()
    found = confirmed(outcome, take(GEMM, SIZE, [keys[0], fresh_key()], [memory]))
    assert found.error is not None and found.error.wrong > 60


def test_a_note_of_where_it_ran_keeps_nothing_from_being_checked() -> None:
    outcome, keys, memory = outcome_and_outputs()
    note = Finding(kind=Kind.RELOCATED, severity=Severity.NOTE, message=NOTHING)
    right = take(GEMM, SIZE, keys, [memory])
    memory[0] += 1.0
    wrong = take(GEMM, SIZE, keys, [memory])
    for run, kinds in ((right, [Kind.RELOCATED]), (wrong, [Kind.CHECKS_DIFFER, Kind.RELOCATED])):
        seen = msgspec.structs.replace(measured(outcome, [], [run]), notes=(note,))
        found = HostCheck(GEMM).confirm(seen)
        assert [each.kind for each in found.findings] == kinds


def test_of_many_dear_runs_some_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome, keys, memory = outcome_and_outputs()
    runs = [take(GEMM, SIZE, keys, [memory]) for _ in range(9)]
    checks: list[int] = []
    real = problems.differing

    def counted(*arguments: Any) -> Any:
        checks.append(1)
        return real(*arguments)

    monkeypatch.setattr(problems, "differing", counted)
    for seconds, checked in ((math.inf, 9), (-1.0, 2)):
        monkeypatch.setattr(host_check, "_SECONDS", seconds)
        checks.clear()
        confirmed(outcome, *runs)
        assert len(checks) == checked
    assert confirmed(outcome) == outcome
    assert confirmed(msgspec.structs.replace(outcome, error=None), *runs).error is None


def test_of_very_many_runs_some_are_sent() -> None:
    outcome, _, _ = outcome_and_outputs()
    runs = [Taken(keys=(bytes([i % 256, i // 256]),), outputs=()) for i in range(2000)]
    sent = [measured(outcome, [], runs).later for _ in range(2)]
    assert all(len(set(each)) == 512 and set(each) < set(runs) for each in sent)
    assert set(sent[0]) != set(sent[1])


def misshapen(right: Taken) -> list[Taken]:
    (elements,) = right.outputs
    places, got = np.frombuffer(elements.places, np.int64), elements.got
    wrong = [
        Elements(places=b"", got=b""),
        Elements(places=elements.places[:-1], got=got),
        Elements(places=elements.places, got=got[:-4]),
        Elements(places=(places - places.min() - 1).tobytes(), got=got),
        Elements(places=(places + 40 * 50).tobytes(), got=got),
    ]
    others = [msgspec.structs.replace(right, outputs=(each,)) for each in wrong]
    return [
        *others,
        msgspec.structs.replace(right, outputs=()),
        msgspec.structs.replace(right, keys=right.keys[:1]),
        msgspec.structs.replace(right, keys=(right.keys[0], right.keys[1][:-1])),
    ]


def test_elements_that_no_worker_takes_are_no_verdict() -> None:
    outcome, keys, memory = outcome_and_outputs()
    for each in misshapen(take(GEMM, SIZE, keys, [memory])):
        with pytest.raises(MachineError, match="samples cannot be read"):
            confirmed(outcome, each)
