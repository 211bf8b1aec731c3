"""What a result says that wrong elements hold, and when nobody looks."""

from pathlib import Path

import msgspec
import pytest

from benchmarks.mutants import Mutant, mutants
from benchmarks.mutants import said as words_on
from grader.base.finding import Kind
from grader.base.records import Verdict
from grader.judge.pipeline import grade
from grader.judge.program import GradingContext
from grader.labs.lab import find_lab, load_lab
from grader.results.result import Result
from grader.run.protocol import quietly
from grader.run.simulator.device import CpuDevice
from tests.support.bench import bench
from tests.support.commands import hand_in
from tests.support.places import ALICE, FIXTURES, ROOT

NAIVE = (ROOT / "reference" / "sgemm" / "01_naive" / "sgemm.cu").read_text()
FEW = ("1×1×1", "17×130×67")


def few_sizes(names: tuple[str, ...] = FEW) -> GradingContext:
    lab = load_lab()
    cpu = tuple(case for case in lab.cpu if str(case.size) in names)
    small = msgspec.structs.replace(lab, cpu=cpu, performance=())
    return msgspec.structs.replace(bench(), lab=small)


def graded(folder: Path, context: GradingContext | None = None) -> Result:
    return grade(folder, context or few_sizes(), quietly).result


@pytest.mark.parametrize(
    ("new", "says", "hint"),
    [
        (
            "p < k - 1; ++p",
            "p = 0 … 65 and lacks p = 66",
            "column 66] should be in C",
        ),
        ("p < k; p += 1 + (p == 3)", "p = 0 … 3, 5 … 66 and lacks p = 4", "and no thread reads it"),
    ],
)
def test_the_size_that_shows_it_says_what_is_wrong(
    new: str, says: str, hint: str, tmp_path: Path
) -> None:
    result = graded(hand_in(tmp_path / "eve", NAIVE.replace("p < k; ++p", new)))
    message = str(result.cases[-1].message)
    assert says in message and says not in str(result.cases[0].message), message
    (case,) = (case for case in result.cases if case.error and case.error.strips)
    assert case.error and {strip.operand for strip in case.error.strips} == {"A·B"}
    (finding,) = (each for each in result.findings if each.kind is Kind.HINT)
    assert hint in str(finding.message) and finding.line is None


@pytest.mark.parametrize(
    ("name", "says", "line"),
    [
        ("dropped_tail", "in[1026] should be in out, and no thread reads it", ""),
        ("one_block_only", "in[65538] is read here; it should be in out, and does not", "in[i]"),
    ],
)
def test_the_line_that_reads_what_goes_astray_is_named(name: str, says: str, line: str) -> None:
    folder = FIXTURES / "reduction" / name
    asked = msgspec.structs.replace(bench(), lab=load_lab(find_lab("reduction")))
    (finding,) = (each for each in graded(folder, asked).findings if each.kind is Kind.HINT)
    assert str(finding.message).startswith(says)
    source = (folder / "reduction.cu").read_text().splitlines()
    assert line in source[finding.line - 1] if finding.line else not line


@pytest.mark.nightly
@pytest.mark.parametrize("mutant", [*mutants()], ids=lambda each: f"{each.folder} {each.old}")
def test_most_wrong_programs_are_named(mutant: Mutant) -> None:
    lab = msgspec.structs.replace(bench(), lab=load_lab(find_lab(mutant.lab)))
    seen = words_on(mutant, lab)
    assert not seen.counts or seen.message or mutant.new == "float sum = A[i * size_t(k)];"


def test_nobody_looks_where_all_is_right_or_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    def look(*_: object) -> None:
        raise AssertionError("codes were run")

    monkeypatch.setattr(CpuDevice, "look_into", look)
    assert graded(ALICE).verdict is Verdict.AC
    for name in ("missing_first_sync", "wrong_layout_b", "edge_not_written"):
        assert graded(FIXTURES / "broken" / name).verdict is Verdict.WA
