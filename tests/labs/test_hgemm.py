"""The lab of FP16 products: its rungs and starter are right, mistakes with fragments are not."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec
import pytest

from grader.base.records import Verdict
from grader.base.result import Result
from grader.cli.new_command import find_starter
from grader.judge.pipeline import grade
from grader.judge.program import GradingContext
from grader.labs.lab import Lab, find_lab, load_lab
from grader.run.protocol import quietly
from ptxsim.records import Size
from tests.support.bench import bench
from tests.support.places import FIXTURES, ROOT

RUNGS = sorted(each for each in (ROOT / "reference" / "hgemm").glob("0[0-7]_*"))


@cache
def lab_bench() -> GradingContext:
    return msgspec.structs.replace(bench(), lab=load_lab(find_lab("hgemm")), explain=False)


def graded(folder: Path, **changes: object) -> Result:
    chosen = msgspec.structs.replace(lab_bench(), **changes)
    return grade(folder, chosen, quietly).result


@pytest.mark.sampled
@pytest.mark.parametrize(
    "folder", [*RUNGS, find_starter(ROOT, lab_bench().lab)], ids=lambda folder: folder.name
)
def test_a_rung_is_right_and_may_use_tensor_cores(folder: Path) -> None:
    result = graded(folder)
    assert result.verdict is Verdict.AC, result.error
    assert result.findings == ()


def changed_lab(place: Path, old: str, new: str) -> Lab:
    (place / "lab.yaml").write_text(find_lab("hgemm").read_text().replace(old, new))
    return load_lab(place / "lab.yaml")


@pytest.mark.sampled
def test_sums_in_fp16_are_right_where_the_lab_says_so(tmp_path: Path) -> None:
    lab = changed_lab(tmp_path, "accumulate: f32 ", "accumulate: f16 ")
    assert graded(FIXTURES / "hgemm" / "sums_in_fp16", lab=lab).verdict is Verdict.AC
    dropped = graded(FIXTURES / "hgemm" / "dropped_terms", lab=lab)
    assert dropped.verdict is Verdict.WA
    assert any(
        "the last 1 of K = 33 terms are missing" in str(each.message) for each in dropped.cases
    )


@pytest.mark.sampled
def test_bf16_is_a_type_of_the_same_problem(tmp_path: Path) -> None:
    folder = tmp_path / "ada"
    folder.mkdir()
    source = (ROOT / "reference" / "hgemm" / "07_rasterised" / "hgemm.cu").read_text()
    for old, new in (
        ("f32.f16.f16.f32", "f32.bf16.bf16.f32"),
        ("__half2", "__nv_bfloat162"),
        ("__half", "__nv_bfloat16"),
        ("__float2half", "__float2bfloat16"),
        ("__floats2half2_rn", "__floats2bfloat162_rn"),
    ):
        source = source.replace(old, new)
    (folder / "hgemm.cu").write_text(source)
    result = graded(folder, lab=changed_lab(tmp_path, "type: f16 ", "type: bf16 "))
    assert result.verdict is Verdict.AC, result.error
    assert "C = A·B in BF16, sums in FP32" in result.problem.title


@pytest.mark.sampled
def test_a_program_for_another_type_is_told_which_are_asked_for(tmp_path: Path) -> None:
    source = (ROOT / "starter" / "sgemm.cu").read_text()
    (tmp_path / "hgemm.cu").write_text(source)
    result = graded(tmp_path)
    assert result.verdict is Verdict.FE
    asked = "run_custom<__half> or run_custom<cute::half_t> is not defined in hgemm.cu"
    assert asked in str(result.error)


def test_the_cpu_sizes_show_sums_in_fp16_and_every_edge() -> None:
    sizes = [case.size for case in lab_bench().lab.cpu]
    assert any(size["k"] > 512 for size in sizes)
    assert Size.of(m=17, n=130, k=67) in sizes
