"""A product by wgmma and TMA, from its source to its verdict, and what becomes of it when a line is
wrong: tests/fixtures/hopper/tma_wgmma."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from grader.grading.pipeline import grade
from grader.labs.lab import find_lab, load_lab
from grader.model import Record, Result, Severity, Size, Verdict
from tests.support.bench import bench
from tests.support.places import FIXTURES, ROOT

FOLDER = FIXTURES / "hopper" / "tma_wgmma"
SOURCE = (FOLDER / "hgemm.cu").read_text()
SIZE = Size.of(m=72, n=136, k=520)  # partial tiles in every direction, more steps than stages
COPY, WGMMA, WAIT, LAUNCH = '"l"(map)', ': "l"(x), "l"(y)', '"r"(parity)', "cudaLaunchKernelEx("
MAP, EXPECT = "cuTensorMapEncodeTiled", "expect(&s.full[stage], TILE * LINE * 2);"


class Wrong(Record):
    """A program with ``new`` in place of ``old``. at: part of the line that the finding names."""

    old: str
    new: str
    verdict: Verdict
    kind: str
    at: str
    says: str


WRONG = {
    "fewer bytes announced": Wrong(
        old=EXPECT,
        new="expect(&s.full[stage], TILE * LINE);",
        verdict=Verdict.TLE,
        kind="barrier-divergence",
        at=WAIT,
        says="copies brought 8192 bytes more than it expects",
    ),
    "more bytes announced": Wrong(
        old=EXPECT,
        new="expect(&s.full[stage], TILE * LINE * 4);",
        verdict=Verdict.TLE,
        kind="barrier-divergence",
        at=WAIT,
        says="it still expects 8192 bytes (expect_tx) that no copy brings",
    ),
    "no wait for the copy": Wrong(
        old="wait(&s.full[stage], step / STAGES % 2);",
        new="",
        verdict=Verdict.WA,
        kind="race",
        at=WGMMA,
        says="bulk copy not waited for",
    ),
    "no fence.proxy.async": Wrong(
        old='asm volatile("fence.proxy.async.shared::cta;" ::: "memory");',
        new="",
        verdict=Verdict.WA,
        kind="race",
        at=WGMMA,
        says="no fence.proxy.async between them",
    ),
    "no wgmma.fence": Wrong(
        old='asm volatile("wgmma.fence.sync.aligned;" ::: "memory");',
        new="",
        verdict=Verdict.WA,
        kind="race",
        at=WGMMA,
        says="has no wgmma.fence before it",
    ),
    "no wgmma.wait_group": Wrong(
        old='asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");',
        new="",
        verdict=Verdict.WA,
        kind="race",
        at=COPY,
        says="may still read it",
    ),
    "too many lines": Wrong(
        old="cuuint64_t(lines)}",
        new="cuuint64_t(lines) + 64}",
        verdict=Verdict.RE,
        kind="out-of-bounds",
        at=COPY,
        says="past the end of the 74880-byte allocation A",
    ),
    "lines too long": Wrong(
        old="{cuuint64_t(k), cuuint64_t(lines)}",
        new="{cuuint64_t(k) + 56, cuuint64_t(lines)}",
        verdict=Verdict.RE,
        kind="out-of-bounds",
        at=COPY,
        says="across the end of the 74880-byte allocation A",
    ),
    "a box that the driver refuses": Wrong(
        old="{LINE, TILE / 2}",
        new="{LINE + 8, TILE / 2}",
        verdict=Verdict.RE,
        kind="host-crash",
        at="",
        says=f"after {MAP} returned CUDA_ERROR_INVALID_VALUE: boxDim[0] in bytes must not exceed",
    ),
    "what is no map": Wrong(
        old='throw "no tensor map";\n',
        new='throw "no tensor map";\n  map = CUtensorMap{};\n',
        verdict=Verdict.RE,
        kind="out-of-bounds",
        at=COPY,
        says=f"uses as a tensor map at line 43 is none; did {MAP} fail?",
    ),
    "half a cluster": Wrong(
        old="(n + 2 * TILE - 1) / (2 * TILE) * 2",
        new="(n + TILE - 1) / TILE",
        verdict=Verdict.RE,
        kind="bad-launch",
        at=LAUNCH,
        says="the grid (3, 2, 1) is no multiple of its clusters, (2, 1, 1)",
    ),
    "a cluster that not every GPU has": Wrong(
        old="{2, 1, 1}",
        new="{16, 1, 1}",
        verdict=Verdict.RE,
        kind="bad-launch",
        at=LAUNCH,
        says="need cudaFuncAttributeNonPortableClusterSizeAllowed",
    ),
}
QUICK = ("fewer bytes announced", "too many lines")


def graded(folder: Path, size: Size = SIZE) -> Result:
    lab = load_lab(find_lab("hgemm"))
    case = msgspec.structs.replace(lab.cpu[0], size=size)
    lab = msgspec.structs.replace(lab, cpu=(case,), performance=())
    shared = msgspec.structs.replace(bench(), lab=lab, explain=False)
    return grade(folder, shared, lambda _stage, _detail: None).result


def test_wgmma_and_tma_are_accepted() -> None:
    result = graded(FOLDER)
    assert result.verdict is Verdict.AC, (result.error, result.findings)
    assert result.build is not None and result.build.arch == "sm_90a"
    assert all(each.severity is Severity.NOTE for each in result.findings)


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in WRONG],
)
def test_a_wrong_line_is_found(name: str, tmp_path: Path) -> None:
    wrong = WRONG[name]
    assert SOURCE.count(wrong.old) == 1
    text = SOURCE.replace(wrong.old, wrong.new)
    folder = tmp_path / "student"
    folder.mkdir()
    (folder / "hgemm.cu").write_text(text)
    result = graded(folder)
    assert result.verdict is wrong.verdict, (result.error, result.findings)
    lines = ["", *text.splitlines()]
    errors = [each for each in result.findings if each.severity is Severity.ERROR]
    assert any(
        each.kind.value == wrong.kind
        and wrong.says in str(each.message)
        and wrong.at in lines[each.line or 0]
        for each in errors
    ), errors


def changed(folder: Path, *changes: tuple[str, str, str]) -> Path:
    """The last rung, with other words in some of its files."""
    shutil.copytree(ROOT / "reference" / "hgemm" / "13_dispatch", folder)
    for file, old, new in changes:
        text = (folder / file).read_text()
        assert text.count(old) == 1, old
        (folder / file).write_text(text.replace(old, new))
    return folder


# On a GPU of two multiprocessors, where consumers always take turns.
TURNS = (
    ("hgemm.cu", "  return count;", "  return 2;"),
    ("hgemm.cu", "TURNS_STEP_CLOCKS = 900", "TURNS_STEP_CLOCKS = 1"),
)
NO_TURNS = ("turns.cuh", "if (mine > 0) wait_until_let(turn_of(consumer));", "")


@pytest.mark.slow
@pytest.mark.parametrize("ordered", [True, False])
def test_consumers_take_turns(ordered: bool, tmp_path: Path) -> None:
    """A parity says too little to a consumer that waits for a phase several rounds ahead."""
    folder = changed(tmp_path / "student", *TURNS, *([] if ordered else [NO_TURNS]))
    result = graded(folder, Size.of(m=200, n=520, k=392))  # six tiles, seven steps
    errors = [each for each in result.findings if each.severity is Severity.ERROR]
    if ordered:
        assert result.verdict is Verdict.AC and not errors, (result.error, errors)
        return
    assert result.verdict in (Verdict.WA, Verdict.TLE)
    assert any("bulk copy not waited for" in str(each.message) for each in errors), errors


# On a GPU of four multiprocessors, always with wide tiles: two clusters share the last of three.
WIDE = (
    ("hgemm.cu", "  return count;", "  return 4;"),
    ("hgemm.cu", "WIDE_STEP_CLOCKS = 1565", "WIDE_STEP_CLOCKS = 1"),
    ("hgemm.cu", "WIDE_TILE_CLOCKS = 6000", "WIDE_TILE_CLOCKS = 1"),
    ("hgemm.cu", "WIDE_SHARED_CLOCKS = 6000", "WIDE_SHARED_CLOCKS = 1"),
    ("pace.cuh", "STEPS_TO_A_MARK = 16", "STEPS_TO_A_MARK = 2"),
)
NO_WAIT = ("wide.cuh", "while (atomicCAS(&sums_left[slot], 1, 0) != 1);", "sums_left[slot] = 0;")


@pytest.mark.slow
@pytest.mark.parametrize("waits", [True, False])
def test_clusters_share_a_tile(waits: bool, tmp_path: Path) -> None:
    folder = changed(tmp_path / "student", *WIDE, *([] if waits else [NO_WAIT]))
    result = graded(folder, Size.of(m=520, n=512, k=392))
    errors = [each for each in result.findings if each.severity is Severity.ERROR]
    if waits:
        assert result.verdict is Verdict.AC and not errors, (result.error, errors)
        return
    assert any(each.kind.value == "race" for each in errors), errors


# A is copied first, by a kernel beside whose end the product begins: one thread waits for it, ahead
# of its first copy.
PACKED = (
    (
        "// C^T = B^T",
        "__global__ void pack(const __half* A, __half* packed, int count) {\n"
        "  cudaTriggerProgrammaticLaunchCompletion();\n"
        "  const int e = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "  if (e < count) packed[e] = A[e];\n"
        "}\n\n// C^T = B^T",
    ),
    ("      expect(&s", "      if (p == 0) cudaGridDependencySynchronize();\n      expect(&s"),
    (
        "  A = map_of(d_A.data().get(), m, k);",
        "  static __half* packed;\n"
        "  if (!packed) cudaMalloc(&packed, sizeof(__half) * m * k);\n"
        "  pack<<<(m * k + 255) / 256, 256>>>(d_A.data().get(), packed, m * k);\n"
        "  A = map_of(packed, m, k);",
    ),
    (
        "cudaLaunchAttribute cluster = {};",
        "cudaLaunchAttribute attributes[2] = {}, &cluster = *attributes;",
    ),
    (
        "  config.attrs = &cluster;\n  config.numAttrs = 1;",
        "  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;\n"
        "  attributes[1].val.programmaticStreamSerializationAllowed = 1;\n"
        "  config.attrs = attributes;\n  config.numAttrs = 2;",
    ),
)


@pytest.mark.parametrize("waits", [True, False])
def test_a_product_that_begins_before_its_operand_is_packed(waits: bool, tmp_path: Path) -> None:
    text = SOURCE
    for old, new in PACKED:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    if not waits:
        text = text.replace("      if (p == 0) cudaGridDependencySynchronize();\n", "")
    folder = tmp_path / "student"
    folder.mkdir()
    (folder / "hgemm.cu").write_text(text)
    result = graded(folder)
    errors = [each for each in result.findings if each.severity is Severity.ERROR]
    if waits:
        assert result.verdict is Verdict.AC and not errors, (result.error, errors)
        return
    (found,) = errors
    assert result.verdict is Verdict.WA
    assert "before it has waited for the kernel launched before this one" in str(found.message)
    assert COPY in ["", *text.splitlines()][found.line or 0]
