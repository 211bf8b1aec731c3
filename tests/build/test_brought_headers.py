"""Names that code may use without an #include of its own, because the real headers bring them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from grader.build.entry import with_brought_headers
from grader.build.toolchain import find_toolchain
from grader.labs.submission import load_submission
from tests.support.bench import built
from tests.support.places import ROOT
from tests.support.product import GEMM, MAIN

STARTER = (ROOT / "starter" / "sgemm.cu").read_text()

# By the header that brings them where a submission needs it; "" for what is always there.
NAMES = {
    "": """
        uint8_t uint16_t uint32_t uint64_t int32_t int64_t intptr_t uintptr_t size_t ptrdiff_t
        std::uint32_t std::int64_t std::size_t std::ptrdiff_t std::nullptr_t std::max_align_t
        std::vector std::array std::pair std::tuple std::tie std::make_tuple std::get
        std::min std::max std::swap std::move std::forward std::make_pair std::exchange std::declval
        std::fill std::copy std::equal
        std::plus std::less std::multiplies std::hash
        std::numeric_limits std::is_same std::is_same_v std::enable_if_t std::conditional_t
        std::integral_constant std::true_type std::index_sequence std::make_index_sequence
        std::initializer_list std::begin std::end std::next std::distance std::back_inserter
        std::reverse_iterator std::exception std::bad_alloc
        std::sqrt std::abs std::fabs std::ceil std::floor std::round std::log2 std::pow std::fma
        std::isnan std::isfinite sqrtf fabsf fmaf fmaxf fminf ceilf roundf min max
        std::printf std::fprintf printf fprintf snprintf puts fflush stderr! stdout!
        std::exit std::abort exit abort malloc free getenv atoi rand
        std::memcpy std::memset std::strcmp memcpy memset strcmp strlen isdigit
        assert! FLT_MAX! FLT_EPSILON! DBL_MAX! INT_MAX! UINT_MAX! INT_MIN! CHAR_BIT! UINT32_MAX!
        INT32_MAX! SIZE_MAX! NULL! INFINITY! M_PI!
        float2 float4 int4 dim3 make_float4 cudaMalloc cudaStream_t
        thrust::device_vector thrust::device_ptr thrust::raw_pointer_cast
        """,
    "atomic": "std::atomic std::atomic_int std::memory_order_relaxed std::atomic_thread_fence",
    "chrono": "std::chrono::steady_clock std::chrono::high_resolution_clock",
    "iostream": "std::cout std::cerr std::endl std::ostream",
    "memory": "std::unique_ptr std::shared_ptr std::make_unique std::make_shared std::allocator",
    "optional": "std::optional std::nullopt",
    "stdexcept": "std::runtime_error std::invalid_argument std::logic_error std::out_of_range",
    "string": "std::string std::to_string std::stoi",
    "string_view": "std::string_view",
    "cooperative_groups.h": "cooperative_groups::this_thread_block",
    "cuda_bf16.h": "__nv_bfloat16 __float2bfloat16",
    "cuda_fp16.h": "__half __half2 __float2half __half2float",
    "cuda_pipeline.h": "__pipeline_memcpy_async __pipeline_commit __pipeline_wait_prior",
    "cuda/std/tuple": "cuda::std::tuple cuda::std::get",
    "cuda/std/limits": "cuda::std::numeric_limits",
    "cuda/std/type_traits": "cuda::std::is_same cuda::std::enable_if_t",
    "cuda/std/utility": "cuda::std::move cuda::std::pair",
}
OF_THE_LAB = {  # not of Thrust: the lab's own gemm.cuh includes <cute/tensor.hpp>
    "cute/tensor.hpp": "cute::Tensor cute::Layout cute::make_tensor cute::local_tile cute::gemm",
}


def uses(names: str) -> str:
    """A function that compiles only where every one of ``names`` (a macro: NAME!) is known."""
    checks = []
    for name in names.split():
        if name.endswith("!"):
            checks.append(f"#ifndef {name[:-1]}\n#error {name[:-1]}\n#endif")
        else:
            checks.append(f"{{ using ::{name}; }}")
    return "inline void uses_names() {\n" + "\n".join(checks) + "\n}\n"


def brought(tmp_path: Path, source: str) -> list[str]:
    """The headers that ``source`` gets."""
    (tmp_path / "sgemm.cu").write_text(source)
    text = with_brought_headers("", load_submission(tmp_path, MAIN), find_toolchain())
    return [line.split("<")[1].rstrip(">") for line in text.splitlines()]


def test_each_name_alone_brings_its_header(tmp_path: Path) -> None:
    for header, names in {**NAMES, **OF_THE_LAB}.items():
        if header.startswith("cute/") and find_toolchain().cutlass_include is None:
            continue
        for name in names.split():
            got = brought(tmp_path, uses(name))
            assert header in got if header else got == [], (name, got)


@pytest.mark.parametrize(
    "source",
    [
        STARTER,
        "const int half = BK / 2;",
        "x = y * half; if (i < half) a[half] = 0;",
        "#include <cute/layout.hpp>\nusing namespace cute; cute::Layout<int> x;",
        "#include <string>\nstd::string name;",
        "namespace cute { struct Tile; } cute::Tile* tile;",
    ],
)
def test_what_needs_nothing_brings_nothing(source: str, tmp_path: Path) -> None:
    assert brought(tmp_path, source) == []


@pytest.mark.parametrize(
    "source", ["half x;", "half2 *p = q;", "(half)x", "half(1.0f)", "vector<half> v;"]
)
def test_half_as_a_type_brings_its_header(source: str, tmp_path: Path) -> None:
    assert brought(tmp_path, source) == ["cuda_fp16.h"]


def test_names_that_are_always_there_compile(tmp_path: Path) -> None:
    (tmp_path / "sgemm.cu").write_text(STARTER + uses(NAMES[""]))
    built(tmp_path)


@pytest.mark.slow
def test_all_names_compile_with_the_light_headers(tmp_path: Path) -> None:
    lab = {} if find_toolchain().cutlass_include is None else OF_THE_LAB
    (tmp_path / "sgemm.cu").write_text(STARTER + uses(" ".join({**NAMES, **lab}.values())))
    built(tmp_path, compile_s=120)


@pytest.mark.slow
def test_all_names_compile_with_the_real_headers(tmp_path: Path) -> None:
    toolchain = find_toolchain()
    (tmp_path / "gemm.cuh").write_text(GEMM.interface.text)
    (tmp_path / "sgemm.cu").write_text(STARTER + uses(" ".join(NAMES.values())))
    command = [str(toolchain.nvcc), "-std=c++17", "-arch=compute_80", "-cuda", "sgemm.cu"]
    command.append(f"-ccbin={toolchain.host_compiler}")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
