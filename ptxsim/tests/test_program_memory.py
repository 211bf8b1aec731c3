"""Whole programs with memory of several dimensions, arrays, textures and surfaces."""

import subprocess
import sys
from pathlib import Path

import pytest

from ptxsim.launching import default_engine

PROGRAMS = Path(__file__).parent / "programs"
ROWS = [
    [cell.strip() for cell in line.split("|")]
    for line in (PROGRAMS.parent / "tables" / "array_programs.txt").read_text().splitlines()
    if not line.startswith("#")
]


def ptxsim(*arguments: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ptxsim", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> Path:
    default_engine()
    program = tmp_path_factory.mktemp("programs") / "wrong_arrays"
    done = ptxsim("nvcc", "wrong_arrays.cu", "-o", program, folder=PROGRAMS)
    assert done.returncode == 0, done.stderr
    return program


@pytest.mark.parametrize(("mistake", "status", "prints", "says"), ROWS)
def test_a_mistake_is_named(wrong: Path, mistake: str, status: str, prints: str, says: str) -> None:
    done = ptxsim("exec", wrong, "--", mistake, folder=PROGRAMS)
    lines = (PROGRAMS / "wrong_arrays.cu").read_text().splitlines()
    line = next((at for at, text in enumerate(lines, 1) if text.endswith(f"// {mistake}")), 0)
    assert (done.returncode, done.stdout.strip()) == (int(status), prints), done.stderr
    assert says.replace("$LINE", str(line)) in done.stderr
    assert not line or f"wrong_arrays.cu:{line}" in done.stderr
    assert bool(says) == bool(done.stderr)


def test_arrays_and_volumes_are_what_they_are_on_a_gpu() -> None:
    """Also to the last bit of samples, filtered or not."""
    done = ptxsim("exec", "arrays.cu", folder=PROGRAMS)
    printed = (PROGRAMS / "arrays.txt").read_text()
    assert (done.stdout, done.stderr, done.returncode) == (printed, "", 0)
