"""The toolkit of one command."""

from __future__ import annotations

from rich.console import Console

from grader.cli.notices import say
from grader.labs.lab import Lab
from grader.toolchain.discovery import Toolchain, find_toolchain


def choose_toolchain(lab: Lab, gpu_arch: str | None, console: Console) -> Toolchain:
    """One that compiles for the GPU, or for the simulator; prints what was passed over.

    Raises ToolchainError.
    """
    found = find_toolchain(gpu_arch or lab.architectures[0])
    for sentence in found.passed_over:
        say(console, f"passed over: {sentence}; using nvcc {found.cuda_version} ({found.nvcc})")
    return found
