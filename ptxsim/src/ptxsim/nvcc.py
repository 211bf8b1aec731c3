"""CUDA's own programs, on PATH or in the PyPI wheels, and what nvcc makes of a source."""

import importlib.util
import os
import shutil
import tempfile
from pathlib import Path

from ptxsim.frontend.module import ptx_text
from ptxsim.native import answer_of

_REMEDY = "pip install nvidia-cuda-nvcc nvidia-nvvm nvidia-cuda-crt nvidia-cuda-runtime"


class CompileError(Exception):
    """There is no nvcc, or it does not compile the source."""


def wheel_folders() -> list[Path]:
    """``site-packages/nvidia/cu13`` and its like, newest first."""
    spec = importlib.util.find_spec("nvidia")
    places = list(spec.submodule_search_locations or ()) if spec else []
    folders = [folder for place in places for folder in Path(place).glob("cu[0-9]*")]
    return sorted(folders, key=lambda folder: folder.name, reverse=True)


def cuda_program(name: str) -> Path | None:
    """nvcc, ptxas or nvdisasm: on PATH, beside the nvcc there, or from the wheels."""
    places = [Path(found)] if (found := shutil.which(name)) else []
    if nvcc := shutil.which("nvcc"):
        places.append(Path(nvcc).resolve().with_name(name))
    places += [folder / "bin" / name for folder in wheel_folders()]
    return next((place for place in places if os.access(place, os.X_OK)), None)


def compiled(source: Path, arch: str, *flags: str, second: bool = False) -> str:
    """The PTX of a CUDA source, with its lines. second: unoptimised. Raises CompileError, OSError,
    ValueError for an ``arch`` that this nvcc does not know."""
    source.stat()
    nvcc = cuda_program("nvcc")
    if nvcc is None:
        raise CompileError(f"{source}: no nvcc on PATH or in the wheels; {_REMEDY}, or give PTX")
    with tempfile.TemporaryDirectory(prefix="ptxsim-") as folder:
        made = Path(folder) / "made.ptx"
        # With -G there are lines, too; the source sees no difference.
        kind = ("-G", "-U__CUDACC_DEBUG__") if second else ("-lineinfo",)
        options = (f"-arch={arch}", *kind, *flags, "-ptx", "-o", str(made))
        done = answer_of([nvcc, *options, source.absolute()])
        if done.returncode == 0:
            return ptx_text(made.read_bytes())
    said = (done.stderr + done.stdout).strip().splitlines()
    why = next((line for line in said if "error" in line.lower()), "".join(said[:1]))
    if "Unsupported gpu architecture" in why:
        known = ", ".join(answer_of([nvcc, "--list-gpu-code"]).stdout.split())
        raise ValueError(f"-arch {arch}: this nvcc compiles for {known}")
    raise CompileError(f"{source}: nvcc -arch={arch} does not compile it: {why}")
