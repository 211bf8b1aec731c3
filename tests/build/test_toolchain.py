"""Where nvcc is looked for; toolkits as they are found on machines: used where they serve, else
passed over in words."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from grader.base.errors import ToolchainError
from grader.base.records import Verdict
from grader.build import toolchain
from grader.judge.pipeline import grade
from grader.run.protocol import quietly
from tests.support.bench import bench, of_lab
from tests.support.commands import script
from tests.support.files import values
from tests.support.places import ALICE, BROKEN

_WHEELS = {  # of one release, which fit together
    "nvidia-cuda-nvcc": "13.2.78",
    "nvidia-nvvm": "13.2.78",
    "nvidia-cuda-crt": "13.2.78",
    "nvidia-cuda-runtime": "13.2.75",
    "nvidia-cuda-cccl": "13.2.75",
}
_KEPT = Path.home() / ".cache" / "sgemm-grader-tests"


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every test looks anew, from an environment that names no CUDA."""
    for name in ("CUDA_HOME", "NVCC_CCBIN", toolchain.ORIGIN_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    toolchain.find_toolchain.cache_clear()
    toolchain.find_host_compiler.cache_clear()
    yield
    toolchain.find_toolchain.cache_clear()
    toolchain.find_host_compiler.cache_clear()


def test_wheels_without_any_cuda_on_the_machine() -> None:
    found = toolchain.find_toolchain()
    assert found.origin == "wheel"
    assert found.nvcc.parent.parent.name.startswith("cu")
    assert found.cuda_version.count(".") == 2


def test_cuda_home_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    home = toolchain.find_toolchain().nvcc.parent.parent
    toolchain.find_toolchain.cache_clear()
    monkeypatch.setenv("CUDA_HOME", str(home))
    found = toolchain.find_toolchain()
    assert (found.origin, found.nvcc) == ("CUDA_HOME", (home / "bin" / "nvcc").resolve())


def test_script_on_path_leads_to_the_real_nvcc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = toolchain.find_toolchain().nvcc
    on_path(tmp_path, "", monkeypatch)
    found = toolchain.find_toolchain()
    assert (found.origin, found.nvcc) == ("PATH", real.resolve())


@pytest.mark.parametrize(("variables", "words"), values(__file__, "missing.txt"))
def test_what_is_missing_is_named(
    variables: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ToolchainError, match=words):
        toolchain.find_toolchain()


def on_path(folder: Path, answers: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A script called nvcc that answers in this way before the real nvcc does, first on PATH."""
    real = toolchain.find_toolchain().nvcc
    toolchain.find_toolchain.cache_clear()
    program = script(folder / "bin" / "nvcc", f'real={real}\n{answers}\nexec "$real" "$@"')
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return program


# What an older nvcc prints with --dryrun: the same, with other numbers.
_OLD = r"""
if [ "$1" = --dryrun ]; then
  "$real" "$@" 2>&1 | sed -E 's/(__CUDACC_VER_MAJOR__=)[0-9]+/\111/; s/(_MINOR__=)[0-9]+/\14/' >&2
  exit
fi
"""


def test_one_that_is_too_old_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_path(tmp_path, _OLD, monkeypatch)
    found = toolchain.find_toolchain()
    assert found.origin == "wheel"
    sentence = str(*found.passed_over)
    assert sentence.startswith("nvcc 11.4.")
    assert sentence.endswith("is older than 11.8")


def test_one_that_does_not_answer_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = on_path(tmp_path, "exit 1", monkeypatch)
    found = toolchain.find_toolchain()
    assert found.origin == "wheel"
    assert f"{program} does not answer as nvcc does" in str(found.passed_over[0])


def test_one_that_cannot_compile_for_the_gpu() -> None:
    with pytest.raises(ToolchainError, match=r"13\..* does not compile for sm_61, only for sm_75"):
        toolchain.find_toolchain("sm_61")


def test_one_that_the_hosts_compiler_is_too_new_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real message of the real header: g++ is made to name a version that nobody knows."""
    compiler = script(tmp_path / "g++", 'exec /usr/bin/g++ -U__GNUC__ -D__GNUC__=99 "$@"')
    monkeypatch.setenv("NVCC_CCBIN", str(compiler))
    with pytest.raises(ToolchainError, match=r"does not work with .*unsupported GNU version"):
        toolchain.find_toolchain()


def test_the_one_that_is_named_must_serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = on_path(tmp_path, _OLD, monkeypatch)
    monkeypatch.setenv("CUDA_HOME", str(program.parent.parent))
    with pytest.raises(ToolchainError, match=r"is older than 11\.8"):
        toolchain.find_toolchain()


# --- other toolkits, for real -----------------------------------------------------------------


def _wheels() -> Path:
    """Another release than the one that the grader installs, kept for the next run."""
    folder = _KEPT / f"cuda-{_WHEELS['nvidia-cuda-nvcc']}"
    home = folder / "nvidia" / "cu13"
    if not (home / "bin" / "nvcc").exists():
        scratch = folder.with_suffix(".new")
        shutil.rmtree(scratch, ignore_errors=True)
        pinned = [f"{name}=={version}" for name, version in _WHEELS.items()]
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
        done = subprocess.run([*install, str(scratch), *pinned], capture_output=True, text=True)
        if done.returncode != 0:
            pytest.skip(f"no wheels of another toolkit: {done.stderr.strip().splitlines()[-1]}")
        scratch.rename(folder)
    return home


@pytest.mark.slow
def test_another_toolkit_from_wheels_grades(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_HOME", str(_wheels()))
    found = toolchain.find_toolchain("sm_120")
    assert found.cuda_version.startswith("13.2")
    _grades(found, "sm_120")


@pytest.mark.slow
def test_an_older_toolkit_grades_for_older_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a GTX 1070. NVIDIA's wheels of CUDA 12 hold no nvcc: somebody must have installed it."""
    for place in (*sorted(Path("/usr/local").glob("cuda-1[12]*")), *sorted(_KEPT.glob("cuda-12*"))):
        monkeypatch.setenv("CUDA_HOME", str(place))
        try:
            _grades(toolchain.find_toolchain("sm_61"), "sm_61")
            return
        except ToolchainError:
            continue
    pytest.skip("no toolkit of CUDA 11.8 to 12.9 in /usr/local or the tests' cache")


def _grades(tools: toolchain.Toolchain, arch: str) -> None:
    """A right program is accepted, and a race is found at its line."""
    short = of_lab(bench(), cpu=bench().lab.cpu[:4], architectures=(arch,))
    other = msgspec.structs.replace(short, toolchain=tools)
    right = grade(ALICE, other, quietly).result
    assert right.verdict is Verdict.AC, right.error
    assert right.build is not None
    assert (right.build.arch, right.environment.cuda) == (arch, tools.cuda_version)
    wrong = grade(BROKEN / "missing_first_sync", other, quietly).result
    assert wrong.verdict is Verdict.WA
