"""The host's check of a GPU's runs: its inputs are NumPy's, and what it finds decides."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pytest

from grader.backends.gpu import host_check
from grader.backends.gpu.host_check import HostCheck, Taken
from grader.backends.gpu.host_inputs import HostInput, KeyStreams
from grader.backends.protocol import CaseOutcome
from grader.judging.verdicts import judge_case
from grader.labs.lab import Rules
from grader.model import NOTHING, Kind, Size, Verdict
from grader.problems.comparison import check
from grader.problems.inputs import KEY_BYTES, fresh_key, key_stream, make_inputs, values
from grader.problems.operands import EXPOSING, FLOAT, Operand, Steps
from tests.support.product import GEMM

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
    assert (KeyStreams().words(KEY, places) == key_stream(KEY, 1 << 20)[places]).all()


@pytest.mark.parametrize("kind", [EXPOSING, Steps(bits=9, least=1 << 10, exponent=-10)], ids=str)
def test_the_elements_are_those_of_the_gpu(kind: Any) -> None:
    operand = Operand(name="A", role="in", shape=(1000,), values=kind)
    places = np.array([[7, 8], [999, 0]])
    found = HostInput(KeyStreams(), KEY, operand).at(places)
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
    outcome = CaseOutcome(
        id="performance-0",
        size=SIZE,
        refused=None,
        message=NOTHING,
        stopped=None,
        seconds=1.0,
        error=check(GEMM, SIZE, inputs, [memory]).error,
        findings=(),
        lines=(),
        printed="",
    )
    return outcome, keys, memory.view(OnDevice)


def test_a_right_run_stays_right() -> None:
    outcome, keys, memory = outcome_and_outputs()
    host = HostCheck(GEMM)
    taken = host.take(SIZE, keys, [memory])
    assert taken.outputs[0].got.dtype == FLOAT.dtype
    assert host.confirm(outcome, [taken] * 3) is outcome


def test_what_the_gpu_let_pass_is_a_wrong_answer_that_says_so() -> None:
    outcome, keys, memory = outcome_and_outputs()
    host = HostCheck(GEMM)
    right = host.take(SIZE, keys, [memory])
    memory[0] += 1.0
    wrong = host.take(SIZE, keys, [memory])
    memory[0] = np.nan
    for bad in (wrong, host.take(SIZE, keys, [memory])):
        found = host.confirm(outcome, [right, bad, right])
        verdict, words = judge_case(found, Rules())
        assert verdict is Verdict.WA and found.timing is None
        assert [each.kind for each in found.findings] == [Kind.CHECKS_DIFFER]
        assert "1 of 64 elements that the host computed again are wrong" in str(words)
        assert "C[row 0, column 0] is " in str(words) and "the grader's code" in str(words)
        # What the GPU itself found wrong is told as it was found.
        assert host.confirm(found, [right]) is found


def test_inputs_of_other_keys_are_wrong() -> None:
    """What made the inputs is on the GPU, too."""
    outcome, keys, memory = outcome_and_outputs()
    host = HostCheck(GEMM)
    taken = host.take(SIZE, [keys[0], fresh_key()], [memory])
    found = host.confirm(outcome, [taken])
    assert found.error is not None and found.error.wrong > 60


def test_of_many_dear_runs_some_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome, keys, memory = outcome_and_outputs()
    host = HostCheck(GEMM)
    runs: list[Taken] = [host.take(SIZE, keys, [memory]) for _ in range(9)]
    beats: list[int] = []
    for seconds, checked in ((math.inf, 9), (-1.0, 2)):
        monkeypatch.setattr(host_check, "_SECONDS", seconds)
        beats.clear()
        host.confirm(outcome, runs, lambda: beats.append(1))
        assert len(beats) == checked
    assert host.confirm(outcome, []) is outcome
    assert host.confirm(msgspec.structs.replace(outcome, error=None), runs).error is None
