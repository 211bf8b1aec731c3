"""benchmarks.programs finds others' programs, runs them, and says how each ended."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from benchmarks.program_suites import Program, draw, find_programs
from benchmarks.programs import Outcome, markdown

pytestmark = pytest.mark.slow

_PROGRAM = """#include <cstdio>
__global__ void fill(int* a) { a[threadIdx.x$BEYOND] = 1; }
int main() {
  int *d, h = 0;
  cudaMalloc(&d, 32 * sizeof(int));
  fill<<<1, 32>>>(d);
  cudaMemcpy(&h, d, sizeof(int), cudaMemcpyDeviceToHost);
  $CALL
  printf("Test %s\\n", h == 1 ? "PASSED" : "FAILED");
}
"""


@pytest.fixture
def suites(tmp_path: Path) -> Path:
    folder = tmp_path / "suites" / "course-of-three"
    folder.mkdir(parents=True)
    calls = {"right": "", "wrong": "", "refused": "cudaProfilerNeverMade();"}
    for name, call in calls.items():
        text = _PROGRAM.replace("$CALL", call).replace("$BEYOND", " + 1" * (name == "wrong"))
        declared = 'extern "C" int cudaProfilerNeverMade();\n' * bool(call)
        (folder / f"{name}.cu").write_text(declared + text)
    (folder / "library.cu").write_text("__global__ void alone() {}\n")
    (folder / "needs.cu").write_text('#include "not_there.h"\n' + _PROGRAM)
    return folder.parent


def test_outcomes(suites: Path, tmp_path: Path) -> None:
    found = find_programs(suites)
    assert [each.full_name for each in found] == [
        "course-of-three/refused",
        "course-of-three/right",
        "course-of-three/wrong",
    ]
    kept = tmp_path / "kept.json"
    command = [sys.executable, "-m", "benchmarks.programs", str(suites), "--json", str(kept)]
    command += ["--limit", "300"]  # the first on a machine compiles the engine
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    outcomes = msgspec.json.decode(kept.read_bytes(), type=list[Outcome])
    refused, right, wrong = outcomes
    assert (right.result, right.passed, right.launches) == ("passed", True, 1), done.stderr
    assert (wrong.result, wrong.passed) == ("found", True)
    assert wrong.kinds.keys() == {"out-of-bounds", "uninitialized-read"}
    assert wrong.words.startswith("wrong.cu:7: copies bytes 0 and on of d (wrong.cu:5)")
    assert refused.result == "refused"
    assert refused.words.endswith("cudaProfilerNeverMade is not simulated")
    text = markdown(outcomes, {"course-of-three/wrong": {"true": True, "why": "one too far"}})
    assert "| course-of-three | 3 | 1 | 0 | 1 | 1 | 0 | 0 | 0 | 2 |" in text
    assert "| true: one too far |" in text
    assert "| cudaProfilerNeverMade | 1 |" in text


def test_a_draw_is_of_its_seed() -> None:
    """It holds what it promises of courses and lengths, and its manifest is read as it was."""
    programs = [
        Program(suite=suite, name=f"{k:03}", folder=suite, sources=("main.cu",), lines=k * 4 % 500)
        for suite in ("cuda-samples", *(f"course-{each}" for each in "abcdefgh"), "hecbench")
        for k in range(150 if suite == "hecbench" else 30)
    ]
    programs.sort(key=lambda each: each.full_name)
    drawn = draw(programs, 120, 7)
    assert drawn == draw(programs, 120, 7) != draw(programs, 120, 8)
    assert len({*drawn}) == 120
    courses = [each.suite for each in drawn if each.stratum == "course"]
    assert len(courses) >= 15 and len({*courses}) >= 6
    assert sum(each.lines > 300 for each in drawn) >= 20
