"""A product by wgmma and TMA, from its source to its verdict, and what becomes of it when a line is
wrong: tests/fixtures/hopper/tma_wgmma."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from grader.base.finding import Finding
from grader.base.records import Verdict
from grader.base.result import Result
from grader.judge.pipeline import grade
from grader.labs.lab import find_lab, load_lab
from grader.run.protocol import quietly
from ptxsim.findings.finding import Severity
from ptxsim.records import Size
from tests.support.bench import bench
from tests.support.files import table
from tests.support.places import FIXTURES, ROOT

FOLDER = FIXTURES / "hopper" / "tma_wgmma"
SIZE = Size.of(m=72, n=136, k=520)  # partial tiles in every direction, more steps than stages
COPY, WGMMA, WAIT, LAUNCH = '"l"(map)', ': "l"(x), "l"(y)', '"r"(parity)', "cudaLaunchKernelEx("
MAP, EXPECT = "cuTensorMapEncodeTiled", "expect(&s.full[stage], TILE * LINE * 2);"


WRONG = {name: row for name, *row in table(__file__, "wrong_tma.txt")}


def graded(folder: Path, size: Size = SIZE) -> Result:
    lab = load_lab(find_lab("hgemm"))
    case = msgspec.structs.replace(lab.cpu[0], size=size)
    lab = msgspec.structs.replace(lab, cpu=(case,), performance=())
    shared = msgspec.structs.replace(bench(), lab=lab, explain=False)
    return grade(folder, shared, quietly).result


@pytest.mark.sampled
def test_wgmma_and_tma_are_accepted() -> None:
    result = graded(FOLDER)
    assert result.verdict is Verdict.AC, (result.error, result.findings)
    assert result.build is not None and result.build.arch == "sm_90a"
    assert all(each.severity is Severity.NOTE for each in result.findings)


def errors_of(result: Result) -> list[Finding]:
    return [each for each in result.findings if each.severity is Severity.ERROR]


@pytest.mark.sampled
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_line_is_found(name: str, tmp_path: Path) -> None:
    row = (each.encode().decode("unicode_escape") for each in WRONG[name])
    old, new, verdict, kind, at, says = row
    folder = changed(FOLDER, tmp_path, ("hgemm.cu", old, new))
    result = graded(folder)
    assert result.verdict is Verdict(verdict), (result.error, result.findings)
    lines = ["", *(folder / "hgemm.cu").read_text().splitlines()]
    assert any(
        each.kind.value == kind and says in str(each.message) and at in lines[each.line or 0]
        for each in errors_of(result)
    ), result.findings


def changed(folder: Path, place: Path, *changes: tuple[str, str, str] | str) -> Path:
    """Copy the program, with other words in some of its files or with a patch."""
    copy = shutil.copytree(folder, place / "student")
    for change in changes:
        if isinstance(change, str):
            patch = Path(__file__).parent / "data" / change
            subprocess.run(["git", "apply", patch], cwd=copy, check=True)
            continue
        file, old, new = change
        text = (copy / file).read_text()
        assert text.count(old) == 1, old
        (copy / file).write_text(text.replace(old, new))
    return copy


LAST_RUNG = ROOT / "reference" / "hgemm" / "13_dispatch"
# On a GPU of two multiprocessors, where consumers always take turns.
TURNS = (
    ("hgemm.cu", "  return count;", "  return 2;"),
    ("hgemm.cu", "TURNS_STEP_CLOCKS = 900", "TURNS_STEP_CLOCKS = 1"),
)
NO_TURNS = ("turns.cuh", "if (mine > 0) wait_until_let(turn_of(consumer));", "")
# On a GPU of four multiprocessors, always with wide tiles: two clusters share the last of three.
WIDE = (
    ("hgemm.cu", "  return count;", "  return 4;"),
    ("hgemm.cu", "WIDE_STEP_CLOCKS = 1565", "WIDE_STEP_CLOCKS = 1"),
    ("hgemm.cu", "WIDE_TILE_CLOCKS = 6000", "WIDE_TILE_CLOCKS = 1"),
    ("hgemm.cu", "WIDE_SHARED_CLOCKS = 6000", "WIDE_SHARED_CLOCKS = 1"),
    ("pace.cuh", "STEPS_TO_A_MARK = 16", "STEPS_TO_A_MARK = 2"),
)
NO_WAIT = ("wide.cuh", "while (atomicCAS(&sums_left[slot], 1, 0) != 1);", "sums_left[slot] = 0;")
# A is copied first, by a kernel beside whose end the product begins: one thread waits for it, ahead
# of its first copy.
PACKED = ("packed.patch",)
NO_PACKED = ("hgemm.cu", "      if (p == 0) cudaGridDependencySynchronize();\n", "")


@pytest.mark.sampled
@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize(
    ("program", "order", "mistake", "size", "verdicts", "says"),
    [
        # A parity says too little to a consumer that waits for a phase several rounds ahead: six
        # tiles, seven steps.
        (LAST_RUNG, TURNS, NO_TURNS, (200, 520, 392), "WA TLE", "bulk copy not waited for"),
        (LAST_RUNG, WIDE, NO_WAIT, (520, 512, 392), "WA RE TLE", ""),
        (FOLDER, PACKED, NO_PACKED, SIZE.extents, "WA", "has waited for the kernel launched befor"),
    ],
    ids=["consumers take turns", "clusters share a tile", "the operand is packed first"],
)
def test_who_does_not_wait_is_found(
    program: Path,
    order: tuple[tuple[str, str, str] | str, ...],
    mistake: tuple[str, str, str],
    size: tuple[int, int, int],
    verdicts: str,
    says: str,
    waits: bool,
    tmp_path: Path,
) -> None:
    folder = changed(program, tmp_path, *order, *([] if waits else [mistake]))
    m, n, k = size
    result = graded(folder, Size.of(m=m, n=n, k=k))
    errors = errors_of(result)
    if waits:
        assert result.verdict is Verdict.AC and not errors, (result.error, errors)
        return
    assert result.verdict.value in verdicts.split()
    races = [each for each in errors if each.kind.value == "race"]
    assert any(says in str(each.message) for each in races or errors), errors
    if order is PACKED:
        (found,) = errors
        assert COPY in ["", *(folder / "hgemm.cu").read_text().splitlines()][found.line or 0]
    if order is WIDE:
        assert races, errors
