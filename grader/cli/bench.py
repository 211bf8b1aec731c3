"""What a command grades with, from its options."""

from __future__ import annotations

import argparse

from rich.console import Console

from grader.cli.device import choose_device
from grader.cli.readiness import ready
from grader.cli.toolkit import choose_toolchain
from grader.grading.preparing import Bench
from grader.labs.lab import Lab
from grader.ladder.document import Ladder
from grader.sandbox.running import Sandbox


def open_bench(
    chosen: argparse.Namespace,
    lab: Lab,
    console: Console,
    *,
    explain: bool = True,
    ladders: tuple[Ladder, ...] = (),
) -> Bench:
    """Raises what ``ready`` raises, ToolchainError, SandboxError, and MachineError if a GPU is
    required and cannot be used."""
    arch = choose_device(chosen.device, console)
    bench = Bench(
        lab=lab,
        gpu_arch=arch,
        toolchain=choose_toolchain(lab, arch, console),
        sandbox=Sandbox.open(chosen.sandbox),
        explain=explain,
        ladders=ladders,
    )
    ready(bench, chosen.sandbox)
    return bench
