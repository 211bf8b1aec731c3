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
from grader.toolchain.native import Native

ROOT = Path(__file__).parents[2]
NATIVE = (
    *(recorder_program(find_toolchain()), engine_library(), model_library()),
    *(CALLING, KEY_STREAM, LAUNCHER),
)
COMPILED = {source: native.every_flag for native in NATIVE for source in native.sources}
TIDY = Path(sys.executable).with_name("clang-tidy")


def test_all_of_it_is_compiled():
    found = {*(ROOT / "grader").rglob("*.cpp"), *(ROOT / "ptxsim").rglob("*.cpp")}
    assert found == set(COMPILED)


@pytest.mark.parametrize("native", NATIVE, ids=lambda native: native.name)
def test_no_warnings(native: Native):
    """Of the compilation that the tests run: it looks for them and keeps what it finds."""
    assert {"-Wall", "-Wextra"} <= {*native.every_flag}
    native.compiled()
    assert native.warnings_file.read_text() == ""


@pytest.mark.slow
@pytest.mark.parametrize("source", COMPILED, ids=lambda source: source.name)
def test_clang_tidy(source: Path):
    command = [str(TIDY), "--quiet", str(source), "--", *COMPILED[source]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
