"""Kernels on tensor cores: what they execute, what bounds them, and the way up the ladder."""

from functools import cache
from pathlib import Path

import msgspec
import pytest

from grader.base import gpus
from grader.build.sass import Product, SassInstruction
from grader.judge.program import GradingContext, prepare
from grader.labs.lab import find_lab, load_lab
from grader.labs.submission import load_submission
from grader.model.records import Explanation, TensorCount
from grader.report.why import answers
from grader.study import explain_program
from grader.study.comparison import compare
from ptxsim.plan import Size
from tests.support.bench import bench, limited
from tests.support.explained import rung
from tests.support.files import table, values
from tests.support.places import FIXTURES
from tests.support.results import make_result

N = 4096
HMMA = 2 * 16 * 8 * 16  # operations
UNITS = ("issue", "FP32", "tensor cores", "shared memory", "L1", "L2")
CARDS = {"sm_80": "A100 80GB PCIe", "sm_90": "H200", "sm_90a": "H200"}
LADDER = table(__file__, "tensor_ladder.txt")


@cache
def lab_bench() -> GradingContext:
    hgemm = msgspec.structs.replace(bench(), lab=load_lab(find_lab("hgemm")))
    return limited(hgemm, compile_s=300, record_s=20)


@cache
def explained(folder: Path, arch: str) -> Explanation:
    size = Size.of(m=N, n=N, k=N)
    ready = prepare(load_submission(folder, "hgemm.cu"), [size], lab_bench(), arch)
    found = explain_program(ready, gpus.find(CARDS[arch]))
    assert found.missing is None
    return found


def of_rung(idea: str, arch: str) -> Explanation:
    return explained(rung(idea, "hgemm"), arch)


def number(folder: str) -> int:
    return int(Path(folder).name.split("_")[0])


@pytest.mark.sampled
@pytest.mark.parametrize(("idea", "arch", "following", "resource"), LADDER)
def test_a_rung_computes_the_product_once_and_is_advised_the_next(
    idea: str, arch: str, following: str, resource: str
) -> None:
    """With evidence, a line and a rung that exists; and no rung is told what it has done."""
    found, folder = of_rung(idea, arch), rung(idea, "hgemm")
    here = number(folder.name)

    assert found.advice and found.advice[0].idea == following
    for each in found.advice:
        assert each.rung is not None and number(each.rung) > here, each
        assert each.gain is None or each.gain > 1
        assert each.file is not None and each.line is not None
        line = (folder / each.file).read_text().splitlines()[each.line - 1].strip()
        assert "blockIdx" in line if each.idea == "rasterised" else line
    (bound,) = found.bounds
    units = (each.resource for each in bound.limits if each.resource in UNITS)
    assert next(units) in (resource, "L2") and bound.most is not None
    assert bound.most.speed < bound.peak
    # However ptxas unrolled and copied: 2·M·N·K operations, in machine code as in PTX.
    by_tensor_cores = sum(part.flops for each in found.counts for part in each.tensor)
    assert sum(each.flops for each in found.counts) == pytest.approx(found.operations, rel=0.001)
    assert by_tensor_cores == (0 if idea == "cuda_cores" else found.operations)
    hmma = sum(e.count for each in found.counts for e in each.mix if e.kind == "HMMA")
    warpgroups = arch == "sm_90a"
    assert hmma == (0 if warpgroups or idea == "cuda_cores" else found.operations // HMMA)


def test_fragments_from_global_memory_are_counted() -> None:
    """A wmma of 16×16×16 takes two HMMA and eight loads of 4 bytes, from eight rows each."""
    (counts,) = of_rung("wmma_global", "sm_80").counts
    hmma = counts.tensor[0].count
    loads = sum(each.count for each in counts.mix if each.kind == "LDG.32")

    assert loads == counts.global_loads.requests == 4 * hmma
    assert counts.global_loads.cost == counts.global_loads.lines == 8 * loads


def test_tma_and_wgmma_are_counted() -> None:
    """128×128 of C for each block: 32 KiB for each 64 steps along K, once from the L2 and once into
    shared memory; wgmma reads 64 rows and 128 columns for each 64×128×16."""
    found = of_rung("ring", "sm_90a")
    (counts,) = found.counts
    brought = (N // 128) ** 2 * (N // 64) * 32768

    assert counts.bulk_loads.bytes == counts.bulk_shared.bytes == brought
    assert counts.bulk_loads.cost == brought // 32
    assert counts.bulk_shared.cost == brought // 128
    assert counts.tensor == (
        TensorCount(
            kind="f16",
            sums="f32",
            by_warpgroup=True,
            count=found.operations // (2 * 16 * 128 * 16),
            flops=found.operations,
            shared_bytes=found.operations // (2 * 64 * 128 * 16) * (64 + 128) * 16 * 2,
        ),
    )


def test_a_report_says_what_tensor_cores_do() -> None:
    """128×128 of C for each block, two bytes an element, once through the L2."""
    found = of_rung("ring", "sm_90a")
    result = make_result(explanation=found)
    result = msgspec.structs.replace(result, problem=lab_bench().lab.problem.info())
    said = {str(each.question): str(each.answer) for each in answers(result)}

    assert "100.0 % of them on tensor cores" in said["How many floating-point operations?"]
    assert "HGMMA of warps" in said["How many floating-point operations?"]
    peak = said["What is the peak, and how near is it?"]
    assert "H200 1071 TFLOPS" in peak and "at most 830.5 TFLOPS (78 %)" in peak
    assert "8 of them HGMMA" in said["What is one iteration of its main loop?"]
    traffic = said["How much does it read from global memory?"]
    assert "2.147 GB" in traffic and "Counted: 2.147 GB" in traffic
    assert "HGMMA.64x128x16.F32" in said["Does it use tensor cores?"]


@pytest.mark.sampled
def test_ldmatrix_conflicts_are_counted_and_a_swizzle_removes_them() -> None:
    (plain,) = of_rung("mma_ldmatrix", "sm_80").counts
    (swizzled,) = of_rung("swizzled", "sm_80").counts
    said = of_rung("mma_ldmatrix", "sm_80").advice[0]

    assert plain.matrix_loads.cost == 4 * plain.matrix_loads.passes
    assert swizzled.matrix_loads.cost == swizzled.matrix_loads.passes == plain.matrix_loads.passes
    assert plain.matrix_loads.passes == 4 * plain.matrix_loads.requests
    assert "ldmatrix takes 16 wavefronts where 4 would do" in str(said.message)
    assert said.gain is not None and 2 < said.gain < 3


@pytest.mark.sampled
def test_a_multicast_reads_the_l2_once_and_fills_both_blocks() -> None:
    (alone,), (both,) = (of_rung(idea, "sm_90a").counts for idea in ("two_consumers", "cluster"))

    assert both.bulk_shared.cost == alone.bulk_shared.cost == alone.bulk_loads.cost // 4
    assert both.bulk_loads.cost * 3 == alone.bulk_loads.cost * 2  # half of A's tiles


# Changes of the rung that copies with cp.async, and the advice that each must get.
CHANGED = {
    "two_stages": ("STAGES = 4", "STAGES = 2", "stages", "wait_group 0"),
    "small_warps": ("WM = 64, WN = 32", "WM = 32, WN = 32", "register_buffer", "2 matrices"),
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", CHANGED)
def test_what_a_good_kernel_would_lose(name: str, tmp_path: Path) -> None:
    old, new, idea, words = CHANGED[name]
    source = (rung("cp_async", "hgemm") / "hgemm.cu").read_text()
    assert old in source
    (tmp_path / "hgemm.cu").write_text(source.replace(old, new))
    said = explained(tmp_path, "sm_80").advice

    told = next(each for each in said if each.idea == idea)
    assert words in str(told.message) and told.line is not None
    before = [each for each in of_rung("cp_async", "sm_80").advice if each.idea == idea]
    assert not before or str(before[0].message) != str(told.message)


# --- tensor maps in memory, and warps that poll


RING = FIXTURES / "hopper" / "ring"


def ring(place: Path, *change: str) -> Explanation:
    """What explains the fixture, one of whose lines changed."""
    (place / "hgemm.cu").write_text((RING / "hgemm.cu").read_text().replace(*change))
    size = Size.of(m=N, n=N, k=N)
    ready = prepare(load_submission(place, "hgemm.cu"), [size], lab_bench(), "sm_90a")
    return explain_program(ready, gpus.find("H200"))


@pytest.mark.parametrize("maps", range(4))
def test_tensor_maps_that_the_host_writes_are_there_when_blocks_are_counted(
    maps: int, tmp_path: Path
) -> None:
    """In each call, in the first, to a __device__ variable, to a __constant__ one."""
    found = ring(tmp_path, "#define MAPS 0", f"#define MAPS {maps}")
    (counts,), (bound,) = found.counts, found.bounds

    assert found.missing is None and counts.flops == found.operations
    assert bound.most is not None and bound.most.resource == "shared memory"
    assert bound.most.speed == pytest.approx(197.7, abs=0.1)


def test_blocks_that_never_end_are_no_ground_for_a_bound(tmp_path: Path) -> None:
    found = ring(tmp_path, '"r"(3 * TILE', '"r"(4 * TILE')

    assert not found.bounds and not found.counts and not found.advice
    assert "the blocks of hgemm that were counted did not end; block (" in str(found.missing)
    assert "it still expects 8192 bytes that no copy brings" in str(found.missing)


# --- by hand


def instruction(opcode: str, *operands: str) -> SassInstruction:
    return SassInstruction(
        address=0, opcode=opcode, operands=operands, guard=None, target=None,
        file=None, line=None, ptx_line=None, control=None,
    )  # fmt: skip


@pytest.mark.parametrize(("opcode", "operands", "product"), values(__file__, "products.txt"))
def test_what_an_opcode_multiplies(
    opcode: str, operands: str, product: tuple[str, str, int, bool, int, int] | None
) -> None:
    found = instruction(opcode, *operands.split()).product
    names = ("kind", "sums", "flops", "by_warpgroup", "columns", "shared_bytes")
    want = Product(**dict(zip(names, product, strict=True))) if product else None  # type: ignore[arg-type]

    assert found == want


def test_matrices_count_by_their_number() -> None:
    four, one = instruction("LDSM.16.M88.4"), instruction("STSM.16.MT88")

    assert (four.kind, four.bits, one.kind, one.bits) == ("LDSM.4", 128, "STSM.1", 32)


def test_the_counters_of_tensor_cores_stand_beside_ours() -> None:
    (counts,) = of_rung("ring", "sm_90a").counts
    path = "sm__ops_path_tensor_op_hgmma_src_fp16_sparsity_off"
    theirs = {f"{path}.sum": float(counts.tensor[0].flops), "gpu__time_duration.sum": 1.0}
    pairs = {str(each.quantity): each for each in compare(counts, theirs)}

    assert pairs["operations, HGMMA f16.f32"].apart == 0
    assert pairs["HGMMA"].ours == counts.tensor[0].count and pairs["HGMMA"].theirs is None
    assert pairs["TMA bytes loaded"].ours == counts.bulk_shared.bytes
