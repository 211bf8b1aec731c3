"""The names and lines that findings give, and races that do no harm.

The kernels are in kernels/names.cu, beside others that are right.
"""

import re
import time
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import pytest

from harness import compiled, kernels, run, run_ptx, sentence, table
from ptxsim.findings.finding import Finding, Severity
from ptxsim.findings.names import array_name
from ptxsim.findings.shapes import declared_shapes, with_indices
from ptxsim.launching import Module
from ptxsim.text import phrase, verbatim

KERNELS = kernels("names.cu")
MARKS = {
    line.split("// ")[1]: str(number)
    for number, line in enumerate(KERNELS.splitlines(), 1)
    if "  // " in line and line.split("// ")[1].isupper()
}


def seen(
    kernel: str, threads: int, first: int, arch: str = "sm_80", turn: int = 0
) -> list[Finding]:
    """What is said of one block; b is full of ``first``."""
    a, b = np.ones(2048, np.float64), np.full(1024, first, np.int32)
    block, shared = (threads, 1, 1), 1024 * kernel.startswith("dynamic")
    ptx, folder = compiled(KERNELS, arch)
    folder = Path("/home/student") if kernel.endswith("library") else folder
    options: dict[str, Any] = {"folder": folder, "kernel": kernel, "turn": turn}
    outcome = run_ptx(ptx, [a, b], block=block, shared=shared, **options)
    return [found for found in outcome.findings if found.severity is not Severity.NOTE]


@pytest.mark.parametrize(("kernel", "threads", "first", "events", "says"), table("names.txt"))
def test_each_kernel(kernel: str, threads: str, first: str, events: str, says: str) -> None:
    found = seen(kernel, int(threads), int(first))
    said = [sentence(each) for each in found]
    assert ", ".join(each.event.name for each in found if each.event) == events, said
    assert Template(says).safe_substitute(MARKS) in ". ".join([*said, ""])


@pytest.mark.parametrize("turn", [0, 1])
def test_a_race_is_not_also_a_read_of_what_nobody_wrote(turn: int) -> None:
    found = seen("product_without_barrier", 64, 0, turn=turn)
    assert {each.kind for each in found} == {"race"}, [sentence(each) for each in found]
    assert not seen("product_with_barrier", 64, 0, turn=turn)


def test_a_compiler_that_counts_the_parts_of_an_array_names_no_index() -> None:
    (found,) = seen("last_element", 64, 0, arch="sm_120")
    assert "writes s[…] at" in sentence(found)


@pytest.mark.parametrize(
    ("mangled", "type_", "by_index", "name"),
    [
        ("_ZZ4lastPKiPiE1s_$_31", "u32", True, "s[31]"),
        ("_ZZ4lastPKiPiE1s_$_0", "u32", False, "s[…]"),
        ("_ZZ1kvE1s_$_1_$_2@k", "f32", True, "s[1][2]"),
        ("_ZZ1kvE1s_$_9_$_0", "u16", True, "s[9]"),
        ("_ZZ1kvE1s_$_9_$_0", "f32", True, "s[9][0]"),
        ("a_$_b", "f32", True, "a_$_b"),
        ("_ZZ1kvE2As", "", True, "As"),
    ],
)
def test_array_name(mangled: str, type_: str, by_index: bool, name: str) -> None:
    assert array_name(mangled, type_, by_index=by_index) == name


def test_an_access_across_an_end_names_the_array_in_which_it_begins() -> None:
    arrays = [np.ones(6, np.float32), np.zeros(64, np.float32)]
    (found,) = run(KERNELS, arrays, block=(2, 1, 1), kernel="fours").findings
    assert "at A[4], across the end of the 24-byte allocation A" in sentence(found)
    arrays[0] = np.ones(8, np.float32)
    assert not run(KERNELS, arrays, block=(2, 1, 1), kernel="fours").findings


LIBRARY = [("recursive_in_a_library", 1), ("called_in_a_library", 4)]


@pytest.mark.parametrize(("kernel", "line"), LIBRARY)
def test_what_a_library_does_has_the_line_of_its_call(kernel: str, line: int) -> None:
    found = seen(kernel, 1, 1 << 20)
    places = {(each.place.file, each.place.line) for each in found if each.place}
    assert places == {("sgemm.cu", line)}, found
    assert not seen(kernel, 1, 8)


@pytest.mark.parametrize(("usual", "other"), table("spellings.txt"))
def test_modifiers_in_another_order(usual: str, other: str) -> None:
    outs = []
    for body in (usual, other):
        out = np.arange(128, dtype=np.uint32)
        outcome = run_ptx(kernels("spellings.ptx", body=body), [out], kernel="k")
        assert outcome.findings == ()
        outs.append(out.tolist())
    assert outs[0] == outs[1] != list(range(128))


# --- arrays of several dimensions


@pytest.mark.parametrize(
    ("source", "name", "flat", "named"),
    [
        ("__shared__ float As[16][17];", "As", 40, "As[2][6]"),
        (
            "constexpr int T = 8, D = T / 2;\n__shared__ float s[2][D][T + 1];",
            "s",
            50,
            "s[1][1][5]",
        ),
        (
            "#define T 8  // wide\n__shared__ __align__(16) float a[4], b[T][T * 2];",
            "b",
            17,
            "b[1][1]",
        ),
        ("__shared__ float a[4];", "a", 3, "a[3]"),
        ("template <int T> __global__ void k() { __shared__ float a[T][T]; }", "a", 9, "a[9]"),
        ("__shared__ float a[2][3]; } void l() { __shared__ float a[3][2];", "a", 5, "a[5]"),
        ("// __shared__ float a[2][3];\n__shared__ float a[6];", "a", 5, "a[5]"),
        ("constexpr int T = 0;\n__shared__ float a[2][1 / T];", "a", 1, "a[1]"),
        ("constexpr int T = T + 1;\n__shared__ float a[2][T];", "a", 1, "a[1]"),
    ],
)
def test_an_element_has_an_index_for_each_dimension(
    source: str, name: str, flat: int, named: str
) -> None:
    element, shapes = verbatim(f"{name}[{flat}]"), declared_shapes([source])
    said = phrase("shared memory: reads {what}", what=element)
    assert str(with_indices(said, shapes)) == f"shared memory: reads {named}"
    said = phrase("global read: reads {what}", what=element)
    assert with_indices(said, shapes) == said


@pytest.mark.parametrize(
    "source",
    [
        "const int x " * 100_000,
        "__shared__ x " * 100_000,
        f"__shared__ {'a' * 1_000_000};",
        f"__shared__ a{'[1' * 500_000};",
        "/* " * 400_000,
        "#define x " + " " * 1_000_000,
        "".join(f"constexpr int A{i} = {'+'.join([f'A{i + 1}'] * 40)};" for i in range(5000)),
        "".join(f"const int A{i} = A{i + 1} * A{i + 1};" for i in range(99)) + "const int A99 = 9;",
    ],
)
def test_no_source_takes_long(source: str) -> None:
    begun = time.process_time()
    assert declared_shapes([f"{source}\n__shared__ float s[2][A0];"]) == {}
    said = phrase("shared {what}", what="a" * 100_000 + "s[1]")
    assert with_indices(said, {"s": (2, 2)}) == said
    assert time.process_time() - begun < 2


def test_a_report_has_them_from_the_source(tmp_path: Path) -> None:
    (tmp_path / "turn.cu").write_text(
        "constexpr int T = 16;\n"
        "__global__ void turn(float* x) {\n"
        "  __shared__ float tile[T][T + 1];\n"
        "  tile[threadIdx.y][threadIdx.x] = x[threadIdx.y * T + threadIdx.x];\n"
        "  x[threadIdx.y * T + threadIdx.x] = tile[threadIdx.x][threadIdx.y];\n"
        "}\n"
    )
    kernel = Module(tmp_path / "turn.cu").kernel("turn")
    report = kernel[1, (16, 16)](np.ones((16, 16), np.float32))
    assert re.search(r"tile\[\d+\]\[\d+\]", str(report)), report
    assert not re.search(r"tile\[\d+\](?!\[)", str(report)), report
