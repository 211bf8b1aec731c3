"""``grade sass``: show the machine code of a submission's kernels, without a GPU."""

from __future__ import annotations

import argparse
import re
import sys

import msgspec
from rich.console import Console

from grader.build import disassemble, find_toolchain
from grader.cli.console import DONE, spoken
from grader.cli.defaults import chosen_lab
from grader.cli.grading import ready
from grader.judge import GradingContext, compile_for
from grader.labs import load_submission, source_texts
from grader.report import kernels as machine
from grader.run import first_gpu_arch, gpu_names
from grader.sandbox import Sandbox

_ARCH = re.compile(r"sm_\d{2,3}[af]?")


def run(chosen: argparse.Namespace, console: Console) -> int:
    lab = chosen_lab(chosen)
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
    console.print(machine.render(kernels, sources, listed, spoken(console)))
    return DONE
