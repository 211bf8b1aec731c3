"""The C++ under a strict compiler and clang-tidy, both with the flags it is built with."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from grader.backends.gpu.calling import CALLING
from grader.backends.gpu.host_inputs import KEY_STREAM
from grader.backends.simulator.engine_library import engine_library
from grader.performance.issue_model import model_library
from grader.record.recorder_process import recorder_program
from grader.sandbox.landlock import LAUNCHER
from grader.toolchain.discovery import find_toolchain
from grader.toolchain.host_compiler import find_host_compiler

ROOT = Path(__file__).parents[2]
COMPILED = {
    source: native.every_flag
    for native in (
        *(recorder_program(find_toolchain()), engine_library(), model_library()),
        *(CALLING, KEY_STREAM, LAUNCHER),
    )
    for source in native.sources
}
TIDY = Path(sys.executable).with_name("clang-tidy")

each_source = pytest.mark.parametrize("source", COMPILED, ids=lambda source: source.name)


def check(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_all_of_it_is_compiled():
    found = {*(ROOT / "grader").rglob("*.cpp"), *(ROOT / "ptxsim").rglob("*.cpp")}
    assert found == set(COMPILED)


@pytest.mark.short
@each_source
def test_no_warnings(source: Path):
    strict = ("-Wall", "-Wextra", "-Werror")
    check([str(find_host_compiler()), *COMPILED[source], *strict, "-fsyntax-only", str(source)])


@pytest.mark.slow
@each_source
def test_no_warnings_when_it_is_optimised(source: Path, tmp_path: Path):
    strict = ("-O2", "-Wall", "-Wextra", "-Werror")
    target = ("-c", "-o", str(tmp_path / "object"))
    check([str(find_host_compiler()), *COMPILED[source], *strict, *target, str(source)])


@pytest.mark.slow
@each_source
def test_clang_tidy(source: Path):
    check([str(TIDY), "--quiet", str(source), "--", *COMPILED[source]])
