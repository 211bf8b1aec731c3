"""The lab of FP16 products: its rungs and starter are right, mistakes with fragments are not."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec
import pytest

from grader.cli.scaffold import find_starter
from grader.grading.pipeline import Bench, grade
from grader.labs.lab import find_lab, load_lab
from grader.model import Result, Size, Verdict
from tests.support.bench import bench
from tests.support.corpus import Fixture, fixtures
from tests.support.places import FIXTURES, ROOT

RUNGS = sorted(each for each in (ROOT / "reference" / "hgemm").glob("0[0-7]_*"))
QUICK = ("03_mma_ldmatrix", "sums_in_fp16")


@cache
def lab_bench() -> Bench:
    return msgspec.structs.replace(bench(), lab=load_lab(find_lab("hgemm")), explain=False)


def graded(folder: Path, **changes: object) -> Result:
    chosen = msgspec.structs.replace(lab_bench(), **changes)
    return grade(folder, chosen, lambda _stage, _detail: None).result


def marks(name: str) -> tuple[pytest.MarkDecorator, ...]:
    return () if name in QUICK else (pytest.mark.slow,)


@pytest.mark.parametrize(
    "folder",
    [
        *(pytest.param(each, marks=marks(each.name), id=each.name) for each in RUNGS),
        pytest.param(find_starter(ROOT, lab_bench().lab), marks=pytest.mark.slow, id="starter"),
    ],
)
def test_a_rung_is_right_and_may_use_tensor_cores(folder: Path) -> None:
    result = graded(folder)
    assert result.verdict is Verdict.AC, result.error
    assert result.findings == ()


@pytest.mark.parametrize(
    "fixture",
    [
        pytest.param(each, marks=marks(each.folder.name), id=each.folder.name)
        for each in fixtures("hgemm", "hgemm.cu")
    ],
)
def test_a_fixture_comes_to_what_it_says(fixture: Fixture) -> None:
    if fixture.needs_cutlass and bench().toolchain.cutlass_include is None:
        pytest.skip("the CuTe headers are not installed")
    result = graded(fixture.folder)
    assert fixture.cpu.met_by(result), (result.verdict, result.error)


@pytest.mark.slow
def test_sums_in_fp16_are_right_where_the_lab_says_so(tmp_path: Path) -> None:
    file = tmp_path / "lab.yaml"
    text = find_lab("hgemm").read_text()
    file.write_text(text.replace("accumulate: f32 ", "accumulate: f16 "))
    lab = load_lab(file)
    assert graded(FIXTURES / "hgemm" / "sums_in_fp16", lab=lab).verdict is Verdict.AC
    dropped = graded(FIXTURES / "hgemm" / "dropped_terms", lab=lab)
    assert dropped.verdict is Verdict.WA
    assert any(
        "the last 1 of K = 33 terms are missing" in str(each.message) for each in dropped.cases
    )


@pytest.mark.slow
def test_bf16_is_a_type_of_the_same_problem(tmp_path: Path) -> None:
    file, folder = tmp_path / "lab.yaml", tmp_path / "ada"
    file.write_text(find_lab("hgemm").read_text().replace("type: f16 ", "type: bf16 "))
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
    lab = load_lab(file)
    result = graded(folder, lab=lab)
    assert result.verdict is Verdict.AC, result.error
    assert "C = A·B in BF16, sums in FP32" in result.problem.title


@pytest.mark.slow
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
