"""The second, unoptimised build: when it is run, what it adds, what is kept of it."""

from pathlib import Path
from uuid import uuid4

import msgspec
import pytest

from grader.base.finding import Kind
from grader.base.records import Verdict
from grader.base.result import Result
from grader.judge.pipeline import grade
from grader.report import formatting as text
from grader.run.protocol import quietly
from grader.run.simulator import device
from grader.run.simulator.device import CpuDevice
from grader.run.simulator.messages import SecondRun
from ptxsim.findings import Severity
from ptxsim.text import phrase
from tests.support.bench import bench
from tests.support.places import FIXTURES

HIDDEN = FIXTURES / "broken" / "stage_never_set"
RIGHT = FIXTURES / "correct" / "local_arrays_used_with_care"
NOT_SIMULATED = FIXTURES / "correct" / "code_that_only_debug_builds_keep"


def graded(folder: Path) -> Result:
    return grade(folder, bench(), quietly).result


def notes(result: Result) -> list[str]:
    found = [each for each in result.findings if each.kind is Kind.SECOND_BUILD]
    assert all(each.severity is Severity.NOTE for each in found)
    return [str(each.message) for each in found]


def anew(folder: Path, tmp_path: Path) -> Path:
    """A copy of whose second build nothing is known."""
    copy = tmp_path / folder.name
    copy.mkdir()
    source = (folder / "sgemm.cu").read_text()
    (copy / "sgemm.cu").write_text(f"{source}__device__ int is_{uuid4().hex};\n")
    return copy


def test_a_mistake_that_nvcc_hides_is_the_sizes_own(monkeypatch: pytest.MonkeyPatch) -> None:
    result = graded(HIDDEN)
    wrong = [case for case in result.cases if case.verdict is Verdict.WA]
    (finding,) = (each for each in result.findings if each.severity is Severity.ERROR)
    assert len(wrong) == 1 and str(wrong[0].message).startswith("uninitialized-read at sgemm.cu:")
    assert str(finding.message).startswith("built without optimisation (nvcc -G): ")
    assert "only because nvcc optimises the mistake away" in str(text.fix_first(result))

    # What shows speed is of the first build, and nothing is run a second time.
    def again(*_: object) -> SecondRun:
        raise AssertionError("the second build was run again")

    monkeypatch.setattr(CpuDevice, "run_second", again)
    repeated = graded(HIDDEN)
    assert (repeated.findings, repeated.lines) == (result.findings, result.lines)
    monkeypatch.setattr("grader.judge.pipeline.with_second_build", lambda _, ruling, *__: ruling)
    first = graded(HIDDEN)
    assert (first.verdict, first.lines) == (Verdict.AC, result.lines)


def test_what_no_second_build_can_say_is_a_note(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    result = graded(NOT_SIMULATED)
    (note,) = notes(result)
    assert result.verdict is Verdict.AC and "was not looked at" in note and "tcgen05" in note
    result = graded(RIGHT)
    assert result.verdict is Verdict.AC and not notes(result)

    monkeypatch.setattr(device, "_SECOND_SECONDS", 0.0)
    result = graded(anew(HIDDEN, tmp_path))
    (note,) = notes(result)
    assert result.verdict is Verdict.AC and "did not end in time" in note


def test_a_mistake_that_is_explained_needs_no_second_build(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never(*_: object) -> SecondRun:
        raise AssertionError("the second build was run")

    monkeypatch.setattr(CpuDevice, "run_second", never)
    result = graded(FIXTURES / "broken" / "local_overrun")
    assert result.verdict is Verdict.RE


def test_an_answer_that_says_only_why_is_a_note_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen = SecondRun(missing=phrase("its kernels are not those of the first build"))
    monkeypatch.setattr(CpuDevice, "run_second", lambda *_: seen)
    result = graded(anew(RIGHT, tmp_path))
    assert result.verdict is Verdict.AC
    assert notes(result) == [
        "the second build (nvcc -G) was not looked at: its kernels are not those of the first build"
    ]
    assert msgspec.json.decode(msgspec.json.encode(result), type=Result) == result
