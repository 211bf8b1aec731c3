"""``grade sass``: show the machine code of a submission's kernels, without a GPU."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
from rich.console import Console

from grader.build import disassemble, find_toolchain
from grader.cli.bench import ready
from grader.cli.chosen_lab import LAB, LabName, chosen_lab, with_plans
from grader.cli.console import DONE, spoken
from grader.cli.options import OptionGroup, flag, option
from grader.cli.shared_options import SUBMISSION, architecture
from grader.judge import GradingContext, compile_for
from grader.labs import load_submission, source_texts
from grader.report import kernels as machine
from grader.run import first_gpu_arch, gpu_names
from grader.sandbox import Sandbox


class SassOptions(OptionGroup):
    """Show what ptxas made of a submission's kernels: the main loop's instructions, by opcode and
    by source line. Needs no GPU."""

    submission: Path = SUBMISSION
    arch: str | None = option(
        "compile for this architecture (default: the GPU here, else the lab's lowest)",
        "sm_NN",
        type=architecture(r"sm_\d{2,3}[af]?", "sm_90"),
    )
    lab: LabName = LAB
    listing: bool = flag("show the main loop instruction by instruction")
    json: bool = flag("print the records on stdout, and nothing else")


def run(chosen: SassOptions, console: Console) -> int:
    lab = with_plans(chosen_lab(chosen.lab))
    here = first_gpu_arch() if gpu_names() else None
    arch = chosen.arch or (here and lab.arch_on(here)) or lab.architectures[0]
    toolchain, sandbox = find_toolchain(arch), Sandbox.open("auto")
    context = GradingContext(lab=lab, toolchain=toolchain, sandbox=sandbox)
    ready(context, "auto")
    submission = load_submission(chosen.submission, lab.problem.interface.main)
    cubin = compile_for(submission, context, arch).cubin
    functions = disassemble(cubin, context.toolchain, context.sandbox)
    kernels = machine.summaries(functions)
    if chosen.json:
        sys.stdout.write(msgspec.json.encode(kernels).decode() + "\n")
        return DONE
    listed = functions if chosen.listing else ()
    sources = source_texts(submission.contents)
    console.print(machine.render(kernels, sources, listed, lab.problem.unit.of, spoken(console)))
    return DONE
