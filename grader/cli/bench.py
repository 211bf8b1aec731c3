"""Open what judging a submission needs, and refuse places where none may be judged."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from rich.console import Console

from grader.base import UsageError, one_line
from grader.build import Toolchain
from grader.cli.devices import choose_device, choose_toolchain
from grader.cli.shared_options import Device
from grader.judge import GradingContext, measures
from grader.labs import Lab, SubmissionError, submissions_in
from grader.run import gpu_names
from grader.sandbox import SYSTEM, Mode, Sandbox
from ptxsim.text import listed, phrase, verbatim


def open_bench(
    lab: Lab, device: Device, sandbox: Mode, console: Console, **given: Any
) -> GradingContext:
    """given: further fields of the context. Raises what ``ready`` raises, ToolchainError,
    SandboxError, MachineError."""
    arch = choose_device(device, console)
    context = GradingContext(
        lab=lab,
        gpu_arch=arch,
        toolchain=choose_toolchain(lab, arch, console),
        sandbox=Sandbox.open(sandbox),
        **given,
    )
    ready(context, sandbox)
    return context


def ready(context: GradingContext, sandbox: Mode) -> None:
    """sandbox: as asked for. Raises LabError if the lab's scoring says nothing of the GPU at hand,
    and UsageError where a submission could read the secret of hidden sizes, or pass them on."""
    hidden = context.lab.hidden
    if hidden is not None and hidden.known:
        _out_of_sight(hidden.seed_file, context.toolchain)
        if context.sandbox.kind == "rlimits" and sandbox != "off":
            raise UsageError.saying(
                "hidden sizes need a sandbox: without one a submission can read their secret; "
                "see grade doctor, or accept that with --sandbox off"
            )
        if not context.sandbox.filtered and sandbox != "off":
            raise UsageError.saying(
                "hidden sizes need a kernel that filters system calls (CONFIG_SECCOMP_FILTER): "
                "without it a submission can leave them where its next one finds them; grade "
                "elsewhere, or accept that with --sandbox off"
            )
    if context.lab.program and context.sandbox.kind == "rlimits" and sandbox != "off":
        raise UsageError.saying(
            "whole programs need a sandbox: without one they can read the lab's solution; see "
            "grade doctor, or accept that with --sandbox off"
        )
    if context.gpu_arch is not None and not context.lab.program:
        measures(context.lab, gpu_names()[0], context.ladders)


def _out_of_sight(seed: Path, toolchain: Toolchain) -> None:
    """Raises UsageError for a secret that lies in a folder which every sandbox shows."""
    for place in (Path("/usr"), *map(Path, SYSTEM), *toolchain.roots):
        if seed.resolve().is_relative_to(place.resolve()):
            seen = phrase(
                "{seed}: submissions can read files in {folder}; keep the lab file and its seed "
                "elsewhere"
            )
            raise UsageError(seen.given(seed=str(seed), folder=str(place)))


def check_place(path: Path, lab: Lab, out: Path | None) -> None:
    """Raises SubmissionError for a folder of submissions, and for results inside a submission.
    out: where they are written, if anywhere."""
    others = submissions_in(path, lab.problem.interface.main)
    if others:
        several = phrase(
            "{folder}: a folder of submissions ({names}), not one itself; grade one of them, or "
            "all with: grade class {folder}"
        )
        names = [*map(one_line, others[:3]), *(["…"] if others[3:] else [])]
        several = several.given(names=listed(map(verbatim, names)))
        raise SubmissionError(several.given(folder=one_line(path)))
    folder = Path(os.path.realpath(path))
    if out and (target := Path(os.path.realpath(out))).is_relative_to(folder):
        inside = target.relative_to(folder).parts
        if not any(part.startswith(".") for part in inside):  # hidden files are no part of it
            within = phrase(
                "{folder}: results would be written into the submission, to {out}; grade it from "
                "another folder, or name one with --out"
            )
            raise SubmissionError(within.given(folder=one_line(path), out=one_line(out)))
