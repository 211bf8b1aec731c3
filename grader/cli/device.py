"""Where the kernels of one command run."""

from __future__ import annotations

import importlib.util

from rich.console import Console
from rich.text import Text

from grader.backends.probe import first_gpu_arch, gpu_names
from grader.errors import MachineError


def choose_device(wanted: str, console: Console) -> str | None:
    """The architecture of the GPU to use, or None for the simulator; prints the choice.

    Raises MachineError if a GPU is required and cannot be used.
    """
    if wanted == "cpu":
        return None
    names = gpu_names()
    usable = bool(names) and importlib.util.find_spec("cupy") is not None
    if usable:
        console.print(Text(f"grading on {names[0]}", style="dim"))
        return first_gpu_arch()
    remedy = "CuPy is missing: pip install -e '.[cuda13]' (or cuda12)"
    why = f"{names[0]} cannot be used, {remedy}" if names else "no NVIDIA GPU here"
    if wanted == "gpu":
        raise MachineError(f"--device gpu: {why}; --device cpu checks in the simulator")
    console.print(Text(f"{why}: kernels run in the simulator on the CPU", style="dim"))
    return None
