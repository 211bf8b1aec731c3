"""Which kernels count as a library's, and which only look like one."""

from __future__ import annotations

import pytest

from grader.base.records import Verdict
from grader.base.result import BuildInfo
from grader.judge.launches import library_kernels, refusal
from grader.labs.shape import Rules
from grader.problems.problem import Problem
from grader.problems.reduction.reduction import Reduction
from ptxsim.frontend.interface import Interface
from ptxsim.records import Launch, Plan, Size
from tests.support.product import GEMM

CUTLASS = "/usr/lib/include/cutlass"
INSTANCE = (
    "_ZN7cutlass6KernelINS_4gemm6kernel4GemmINS1_11threadblock12MmaPipelinedINS1_9GemmShapeILi128E"
    "Li128ELi8EEENS4_9MmaPolicyINS1_4warp7MmaSimtIS7_fEEEEEEEEvNT_6ParamsE"
)


def launch(kernel: str) -> Launch:
    return Launch(
        kernel=kernel, grid=(1, 1, 1), block=(1, 1, 1), shared_bytes=0, params=b"", pointers=()
    )


def noted(kernel: str, *origins: str, problem: Problem = GEMM) -> tuple[str, ...]:
    plan = Plan(size=Size.of(m=1, n=1, k=1), allocations=(), operations=(launch(kernel),))
    declared = Interface(entries={}, symbols={}, origins={kernel: origins} if origins else {})
    return tuple(str(note.message) for note in library_kernels([plan], declared, problem))


@pytest.mark.parametrize(
    "file",
    [
        "gemm/threadblock/mma_pipelined.h",
        "gemm/kernel/gemm.h",
        "gemm/thread/mma_sm50.h",
        "gemm/collective/sm90_mma_tma_gmma_ss_warpspecialized.hpp",
        "conv/kernel/implicit_gemm_convolution.h",
    ],
)
def test_code_from_the_library_counts_whatever_the_kernel_is_called(file: str) -> None:
    (message,) = noted("_Z4mine5Bytes", f"{CUTLASS}/{file}", "/usr/include/sm_32_intrinsics.hpp")
    assert message == f"mine is a library's kernel: its code comes from cutlass/{file}"


def test_the_library_among_the_submitted_files_is_known_by_what_it_instantiates() -> None:
    (message,) = noted(INSTANCE)
    assert message.startswith("cutlass::Kernel<…> is a library's kernel: its name instantiates")


@pytest.mark.parametrize(
    ("kernel", "origins"),
    [
        ("_ZN7cutlass4gemmEPKfS1_Pfiii", ()),
        ("_ZN7cutlass6KernelINS_4gemm4GemmEEEvT_", ()),
        ("_ZN7cutlass4gemm6kernel4GemmEPf", ()),
        ("_Z11MmaPipelinedPf", ()),
        ("_Z4gemmPf", (f"{CUTLASS}/../cute/algorithm/gemm.hpp", f"{CUTLASS}/numeric_types.h")),
        ("_Z4gemmPf", (f"{CUTLASS}/gemm/threadblock/threadblock_swizzle.h",)),
    ],
)
def test_a_name_alone_and_cute_do_not_count(kernel: str, origins: tuple[str, ...]) -> None:
    assert noted(kernel, *origins) == ()


@pytest.mark.parametrize(
    ("kernel", "file", "evidence"),
    [
        ("_ZN3cub6reduceEPf", "", "its name is in the namespace cub"),
        ("_ZN4mine6reduceEPf", "cub/agent/agent_reduce.cuh", "its code comes from cub/agent/"),
        ("_Z4minePf", "cub/device/dispatch/dispatch_reduce.cuh", "its code comes from cub/device/"),
        ("_Z4minePf", "cub/block/block_reduce.cuh", None),
        ("_Z4minePf", "cub/grid/grid_even_share.cuh", None),
    ],
)
def test_cubs_sum_is_known_under_any_name_and_its_parts_are_allowed(
    kernel: str, file: str, evidence: str | None
) -> None:
    found = noted(kernel, f"/usr/include/{file}", problem=Reduction())
    assert len(found) == (evidence is not None)
    assert all(str(evidence) in each for each in found)


def test_the_lab_decides() -> None:
    build = BuildInfo(ok=True, command="", log="", seconds=0.0, kernels=())
    plan = Plan(
        size=Size.of(m=1, n=1, k=1), allocations=(), operations=(), setup=(launch(INSTANCE),)
    )
    notes = library_kernels([plan], Interface(entries={}, symbols={}), GEMM)
    refused = refusal(notes, Rules(), build)
    assert refused is not None
    assert refused.verdict is Verdict.RF
    assert refusal(notes, Rules(libraries="allow"), build) is None
    assert refusal((), Rules(), build) is None
