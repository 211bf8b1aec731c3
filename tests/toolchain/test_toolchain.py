"""Where nvcc is looked for, and what is said when it is not there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.errors import ToolchainError
from grader.toolchain import discovery as toolchain


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every test looks anew, from an environment that names no CUDA."""
    for name in ("CUDA_HOME", "NVCC_CCBIN", toolchain.ORIGIN_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    toolchain.find_toolchain.cache_clear()
    toolchain.find_host_compiler.cache_clear()
    yield
    toolchain.find_toolchain.cache_clear()
    toolchain.find_host_compiler.cache_clear()


def test_wheels_without_any_cuda_on_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    found = toolchain.find_toolchain()
    assert found.origin == "wheel"
    assert found.nvcc.parent.parent.name.startswith("cu")
    assert found.cuda_version.count(".") == 2


def test_cuda_home_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    home = toolchain.find_toolchain().nvcc.parent.parent
    toolchain.find_toolchain.cache_clear()
    monkeypatch.setenv("CUDA_HOME", str(home))
    found = toolchain.find_toolchain()
    assert (found.origin, found.nvcc) == ("CUDA_HOME", (home / "bin" / "nvcc").resolve())


def test_script_on_path_leads_to_the_real_nvcc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    real = toolchain.find_toolchain().nvcc
    toolchain.find_toolchain.cache_clear()
    script = tmp_path / "nvcc"
    script.write_text(f'#!/bin/sh\nexec {real} "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin:/bin")
    found = toolchain.find_toolchain()
    assert (found.origin, found.nvcc) == ("PATH", real.resolve())


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"CUDA_HOME": "/nowhere"}, "CUDA_HOME=/nowhere holds no bin/nvcc"),
        ({"SGEMM_GRADER_CUDA": "home"}, "no nvcc in SGEMM_GRADER_CUDA=home"),
        ({"SGEMM_GRADER_CUDA": "best"}, "must be one of home, path, wheel"),
        ({"NVCC_CCBIN": "/nowhere/g++"}, r"NVCC_CCBIN=/nowhere/g\+\+"),
        ({"PATH": "/nowhere"}, "install g\\+\\+"),
    ],
)
def test_what_is_missing_is_named(
    variables: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ToolchainError, match=words):
        toolchain.find_toolchain()
