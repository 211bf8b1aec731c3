"""Names that code may use without an #include of its own, because the real headers bring them."""

import subprocess
from pathlib import Path

import pytest

from grader.build.entry import with_brought_headers
from grader.build.toolchain import find_toolchain
from grader.labs.submission import load_submission
from tests.support.bench import built
from tests.support.commands import STARTER
from tests.support.files import table, values
from tests.support.product import GEMM, MAIN

NAMES: dict[str, str] = {}
for header, names in table(__file__, "names.txt"):
    NAMES[header] = f"{NAMES.get(header, '')} {names}"
OF_THE_LAB = {  # not of Thrust: the lab's own gemm.cuh includes <cute/tensor.hpp>
    "cute/tensor.hpp": "cute::Tensor cute::Layout cute::make_tensor cute::local_tile cute::gemm"
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
    "source", [STARTER, *(text for (text,) in values(__file__, "no_headers.txt"))]
)
def test_what_needs_nothing_brings_nothing(source: str, tmp_path: Path) -> None:
    assert brought(tmp_path, source) == []


@pytest.mark.parametrize("name", ["function", "sort", "is_sorted", "remove_if", "unordered_map"])
def test_any_other_name_of_std_brings_functional(name: str, tmp_path: Path) -> None:
    assert brought(tmp_path, f"std :: {name}<int> x;") == ["functional"]
    assert brought(tmp_path, f"namespace s = std; s::{name}<int> x;") == ["functional"]


@pytest.mark.parametrize(
    "source", ["half x;", "half2 *p = q;", "(half)x", "half(1.0f)", "Tile<half> v;"]
)
def test_half_as_a_type_brings_its_header(source: str, tmp_path: Path) -> None:
    assert brought(tmp_path, source) == ["cuda_fp16.h"]


@pytest.mark.parametrize(
    "source",
    [
        "std /* the usual */ :: // one\n vector<int> x;",
        "// #include <vector>\nstd::vector<int> x;",
        'const char* a = "/*"; std::vector<int> x; const char* b = "*/";',
        "std::vector<int> x; /* without an end",
    ],
)
def test_comments_hide_nothing(source: str, tmp_path: Path) -> None:
    assert brought(tmp_path, source) == ["vector"]
    assert brought(tmp_path, "// std::vector<int> x;") == []


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
