"""Whole programs with memory of all kinds and of several dimensions, arrays, textures, surfaces."""

import subprocess
import sys
from pathlib import Path

import pytest

from ptxsim.launching import default_engine

PROGRAMS = Path(__file__).parent / "programs"
ROWS = [
    [cell.strip() for cell in line.split("|")]
    for line in (PROGRAMS.parent / "tables" / "memory_programs.txt").read_text().splitlines()
    if not line.startswith("#")
]


def ptxsim(*arguments: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ptxsim", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    default_engine()
    folder = tmp_path_factory.mktemp("programs")
    for name in ("wrong_arrays", "memory"):
        done = ptxsim("nvcc", f"{name}.cu", "-o", folder / name, folder=PROGRAMS)
        assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize(("program", "mistake", "status", "prints", "says"), ROWS)
def test_a_mistake_is_named(
    programs: Path, program: str, mistake: str, status: str, prints: str, says: str
) -> None:
    done = ptxsim("exec", programs / program, "--", mistake, folder=PROGRAMS)
    lines = (PROGRAMS / f"{program}.cu").read_text().splitlines()
    line = next((at for at, text in enumerate(lines, 1) if text.endswith(f"// {mistake}")), 0)
    assert done.returncode == int(status), done.stderr
    assert prints in done.stdout.splitlines()
    assert says.replace("$LINE", str(line)) in done.stderr
    assert not (line and says) or f"{program}.cu:{line}" in done.stderr
    assert bool(says) == bool(done.stderr)


def test_kernels_have_ptxas_figures_and_kernels_see_memory_of_the_host(programs: Path) -> None:
    done = ptxsim("exec", programs / "memory", "--", "none", folder=PROGRAMS)
    said = ["registered: 6 3 1 1", "managed: 42", "1 3 2 0 1", "1 1 1", "40 128 1", "kept: 3"]
    assert done.stdout.splitlines() == said


def test_arrays_and_volumes_are_what_they_are_on_a_gpu() -> None:
    """Also to the last bit of samples, filtered or not."""
    done = ptxsim("exec", "arrays.cu", folder=PROGRAMS)
    printed = (PROGRAMS / "arrays.txt").read_text()
    assert (done.stdout, done.stderr, done.returncode) == (printed, "", 0)
