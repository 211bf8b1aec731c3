"""The toolkit and the GPUs that a command's options choose."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

import grader
from grader.base import MachineError, UsageError
from grader.build import Toolchain, find_toolchain
from grader.cli.console import say
from grader.labs import Lab
from grader.run import (
    GpuDevice,
    VisibleGpu,
    find_driver,
    first_gpu_arch,
    gpu_names,
    gpus_of_host,
)
from ptxsim.text import Message, phrase, verbatim


def install(extra: str = "") -> Message:
    """The command that brings the grader's dependencies, or one of its extras."""
    if (Path(grader.__file__).parents[1] / "pyproject.toml").is_file():
        what = f"'.[{extra}]'" if extra else "."
        command = f"pip install -e {what}"
        return phrase("{command} in the grader's checkout", command=command)
    what = f"'sgemm-grader[{extra}]'" if extra else "--force-reinstall sgemm-grader"
    return verbatim(f"pip install {what}")


def choose_toolchain(lab: Lab, gpu_arch: str | None, console: Console) -> Toolchain:
    """One that compiles for the GPU, or for the simulator. Raises ToolchainError."""
    found = find_toolchain(gpu_arch or lab.architectures[0])
    over = phrase("passed over: {what}; using nvcc {version} ({nvcc})")
    for sentence in found.passed_over:
        nvcc, version = str(found.nvcc), found.cuda_version or ""
        say(console, over.given(what=sentence, version=version, nvcc=nvcc))
    return found


_NO_CUPY = phrase("CuPy is missing: {command} (or cuda12)", command=install("cuda13"))
_NO_GPU = phrase("no NVIDIA GPU here")


def _has_cupy() -> bool:
    return importlib.util.find_spec("cupy") is not None


def require_gpu() -> None:
    """Raise MachineError where there is no GPU to use."""
    names = gpu_names()
    if not names or not _has_cupy():
        raise MachineError(_NO_CUPY if names else _NO_GPU)


@contextmanager
def standby(wanted: str, lab: Lab) -> Iterator[GpuDevice | None]:
    """A GPU whose worker loads its libraries while the command gets ready; None without one."""
    if wanted == "cpu" or lab.program or not find_driver() or not _has_cupy():
        yield None
        return
    gpu = GpuDevice(lab.problem_ref)
    try:
        gpu.stand_by()
        yield gpu
    finally:
        gpu.__exit__()


def choose_device(wanted: str, console: Console) -> str | None:
    """The architecture of the GPU to use, or None for the simulator. Raises MachineError."""
    if wanted == "cpu":
        return None
    names = gpu_names()
    if names and _has_cupy():
        say(console, phrase("grading on {gpu}", gpu=names[0]))
        return first_gpu_arch()
    why = _NO_GPU
    if names:
        why = phrase("{gpu} cannot be used, {why}", gpu=names[0], why=_NO_CUPY)
    if wanted == "gpu":
        none = phrase("--device gpu: {why}; --device cpu checks in the simulator", why=why)
        raise MachineError(none)
    say(console, phrase("{why}: kernels run in the simulator on the CPU", why=why))
    return None


def choose_gpus(words: str, console: Console) -> tuple[VisibleGpu, ...]:
    """The GPUs that ``--gpus`` names: "all", or indices and UUIDs such as "0,2".

    CUDA_VISIBLE_DEVICES has its say: an index counts the GPUs that it leaves. Raises MachineError
    where there is no GPU, UsageError for one that is not there, and for GPUs of several models.
    """
    there = gpus_of_host()
    if not there or not _has_cupy():
        why = _NO_CUPY if there else _NO_GPU
        raise MachineError.saying("--gpus {gpus}: {why}", gpus=words, why=why)
    chosen = there if words == "all" else tuple(_named(word, there) for word in words.split(","))
    if len({gpu.uuid for gpu in chosen}) < len(chosen):
        raise UsageError.saying("--gpus {words}: names a GPU twice", words=words)
    models = sorted({gpu.name for gpu in chosen})
    if len(models) > 1:
        mixed = phrase(
            "--gpus {words}: {models}: speeds of different models do not compare; name GPUs "
            "of one model"
        )
        raise UsageError(mixed.given(words=words, models=" and ".join(models)))
    count = f"{len(chosen)} × " if len(chosen) > 1 else ""
    say(console, phrase("grading on {gpu}", gpu=f"{count}{chosen[0].name}"))
    return chosen


def _named(word: str, there: tuple[VisibleGpu, ...]) -> VisibleGpu:
    """An index, or a UUID or its beginning."""
    if word.isdecimal() and int(word) < len(there):
        return there[int(word)]
    fits = [gpu for gpu in there if not word.isdecimal() and word and gpu.uuid.startswith(word)]
    if len(fits) == 1:
        return fits[0]
    known = ", ".join(f"{gpu.index}: {gpu.name}, {gpu.uuid}" for gpu in there)
    unknown = phrase("--gpus: {word} is not one of the GPUs here ({known})")
    raise UsageError(unknown.given(word=repr(word), known=known))
