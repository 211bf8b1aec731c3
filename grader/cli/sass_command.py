"""``grade sass``: show the machine code of a submission's kernels, without a GPU."""

from __future__ import annotations

import argparse
import re
import sys

import msgspec
from rich.console import Console

from grader.backends.probe import first_gpu_arch, gpu_names
from grader.cli import exit_status, options
from grader.cli.parser import Parser
from grader.cli.readiness import ready
from grader.cli.speaking import spoken
from grader.grading.preparing import Bench, compiled
from grader.labs.lab import Lab, find_lab, load_lab
from grader.model import phrase
from grader.performance.sass import disassemble, summarise
from grader.report import machine
from grader.sandbox.running import Sandbox
from grader.submission.folder import load_submission, source_texts
from grader.toolchain.discovery import find_toolchain

_ARCH = re.compile(r"sm_\d{2,3}[af]?")


def add_options(parser: Parser) -> None:
    parser.describe(
        phrase(
            "Show what ptxas made of a submission's kernels: the main loop's instructions, by "
            "opcode and by source line. Needs no GPU."
        )
    )
    options.submission(parser)
    add = parser.add_argument
    add(
        "--arch",
        metavar="sm_NN",
        type=_architecture,
        help=phrase("compile for this architecture (default: the GPU here, else the lab's lowest)"),
    )
    options.lab(parser)
    add(
        "--listing",
        action="store_true",
        help=phrase("show the main loop instruction by instruction"),
    )
    options.json(parser, phrase("print the records on stdout, and nothing else"))


def run(chosen: argparse.Namespace, console: Console) -> int:
    lab = load_lab(find_lab(chosen.lab))
    arch = chosen.arch or _at_hand(lab) or lab.architectures[0]
    bench = Bench(lab=lab, toolchain=find_toolchain(arch), sandbox=Sandbox.open("auto"))
    ready(bench, "auto")
    submission = load_submission(chosen.submission, lab.problem.interface.main)
    cubin = compiled(submission, bench, arch).cubin
    functions = disassemble(cubin, bench.toolchain, bench.sandbox)
    kernels = [summarise(function) for function in functions]
    if chosen.json:
        sys.stdout.write(msgspec.json.encode(kernels).decode() + "\n")
        return exit_status.DONE
    listed = functions if chosen.listing else ()
    console.print(
        machine.render(kernels, source_texts(submission.contents), listed, spoken(console))
    )
    return exit_status.DONE


def _at_hand(lab: Lab) -> str | None:
    here = first_gpu_arch() if gpu_names() else None
    return here and lab.arch_on(here)


def _architecture(value: str) -> str:
    if not _ARCH.fullmatch(value):
        raise argparse.ArgumentTypeError(f"expected an architecture such as sm_90, got {value!r}")
    return value
