"""The C++ under a strict compiler and clang-tidy, both with the flags it is built with."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from grader.base.native import Native
from grader.run import recorder
from grader.run.simulator.device import engine_library
from grader.study import OWN_PROGRAMS
from ptxsim.execution.building import SINK, sink_flags

ROOT = Path(__file__).parents[2]
NATIVE = (recorder(), *OWN_PROGRAMS, engine_library())
COMPILED = {source: native.every_flag for native in NATIVE for source in native.sources}
COMPILED[SINK] = (*sink_flags(), "-Wall", "-Wextra")
TIDY = Path(sys.executable).with_name("clang-tidy")


def test_all_of_it_is_compiled_once():
    included = [
        unit.parent / name
        for unit in COMPILED
        for name in re.findall(r'^#include "(.+\.cpp)"$', unit.read_text(), re.MULTILINE)
    ]
    found = [*(ROOT / "grader").rglob("*.cpp"), *(ROOT / "ptxsim" / "src").rglob("*.cpp")]
    assert sorted(found) == sorted([*COMPILED, *included])


@pytest.mark.parametrize("native", NATIVE, ids=lambda native: native.name)
def test_no_warnings(native: Native):
    """Of the compilation that the tests run: it looks for them and keeps what it finds."""
    assert {"-Wall", "-Wextra"} <= {*native.every_flag}
    native.compiled()
    assert Path(f"{native.path()}.warnings").read_text() == ""


@pytest.mark.slow
@pytest.mark.parametrize("source", COMPILED, ids=lambda source: source.name)
def test_clang_tidy(source: Path):
    command = [str(TIDY), "--quiet", str(source), "--", *COMPILED[source]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
