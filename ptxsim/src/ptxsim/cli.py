"""The command ``ptxsim``: run a kernel and say what is wrong with it, or count what it does.

The answer goes to stdout, errors as one line to stderr. Exit status: 0 clean, 1 findings or a
wrong result, 2 a mistake on the command line, 3 a program that cannot be simulated.
"""

import argparse
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import numpy as np
from numpy.typing import NDArray

from ptxsim.execution import command
from ptxsim.findings.finding import Severity
from ptxsim.findings.remarks import Remark, clean, in_words, source_line
from ptxsim.findings.sarif import sarif, sarif_result
from ptxsim.launching import Argument, Module
from ptxsim.nvcc import CompileError
from ptxsim.orders import differing, usual_tolerance
from ptxsim.outcome import EngineError, Reason, RefusedProgram, SimLimits
from ptxsim.report import Report
from ptxsim.second_build import hidden_mistakes, runs_alike
from ptxsim.tensor_maps import Output
from ptxsim.text import phrase

CLEAN, FOUND, MISUSED, REFUSED = range(4)
_MADE = re.compile(r"(out|zeros|random):(\d{1,12})([iu]8|[fiu](?:16|32|64))")
_INTEGER = re.compile(r"[+-]?(0x[0-9a-fA-F]+|0|[1-9][0-9]*)")
_FORMS = "give FILE.npy, a number, or out:, zeros: or random: with count and type (out:4096f32)"
_UNEXPECTED = phrase(
    "argument {number}[{index}] is {one}, and {file} has {other}; {count} of {total} elements "
    "differ"
)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message}; see {self.prog} --help")


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        own, of_program = command.split(sys.argv[1:] if arguments is None else arguments)
        given = _parser().parse_args(own)
        given.of_program = of_program
        answer: tuple[str, int] = given.command(given)
    except OSError as error:
        return _failed(f"{error.filename}: {error.strerror}; is its name right?", MISUSED)
    except ValueError as error:
        return _failed(error, MISUSED)
    except RefusedProgram as error:
        place = error.place
        where = source_line(place.file, place.line) if place else given.file
        status = MISUSED if error.reason is Reason.WRONG_PLAN else REFUSED
        return _failed(f"{where}: {error.message}", status)
    except (CompileError, EngineError) as error:
        return _failed(error, REFUSED)
    except MemoryError:
        return _failed("too little memory on this machine; give smaller arrays", REFUSED)
    text, status = answer
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:  # head has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return status


def _failed(error: object, status: int) -> int:
    print(f"ptxsim: {clean(' '.join(str(error).split()))}", file=sys.stderr)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="ptxsim", description="Run CUDA kernels on the CPU and check them.")
    parser.add_argument("--version", action="version", version=version("ptxsim"))
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="run a kernel and say what is wrong with it")
    run.set_defaults(command=_run)
    counts = commands.add_parser("counts", help="count what each source line does, as ncu names it")
    counts.set_defaults(command=_counts)
    for each in (run, counts):
        each.add_argument("file", type=Path, help="kernel.ptx, or kernel.cu for nvcc")
        each.add_argument("--kernel", metavar="NAME", help="needed where the file has several")
        each.add_argument("--grid", type=_extents, default=1, metavar="X[,Y[,Z]]")
        each.add_argument("--block", type=_extents, default=1, metavar="X[,Y[,Z]]")
        each.add_argument("--cluster", type=_extents, default=1, metavar="X[,Y[,Z]]")
        each.add_argument("--shared", type=int, default=0, metavar="BYTES", help="dynamic")
        each.add_argument("--arg", action="append", default=[], help=f"in order: {_FORMS}")
        each.add_argument(
            "--symbol",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="what a __constant__ or __device__ variable holds: an array as --arg takes it",
        )
        each.add_argument("--arch", default="sm_80", help="for nvcc (%(default)s)")
        each.add_argument("--seconds", type=float, default=60.0, help="of CPU (%(default)s)")
        each.add_argument("--json", action="store_true", help="print a document")
    command.add_options(commands)
    run.add_argument(
        "--orders",
        type=int,
        default=1,
        metavar="N",
        help="run in N orders of blocks and warps, the second reversed, and compare (%(default)s)",
    )
    run.add_argument("--seed", type=int, default=1, help="of the third order (%(default)s)")
    run.add_argument(
        "--no-debug-build",
        action="store_true",
        help="do not run a kernel.cu without findings a second time, as nvcc -G compiles it",
    )
    run.add_argument("--sarif", action="store_true", help="print SARIF 2.1.0")
    run.add_argument(
        "--expect",
        action="append",
        default=[],
        metavar="[NUMBER=]FILE.npy",
        help="what that argument must hold afterwards; without a number the first out:",
    )
    run.add_argument(
        "--tolerance",
        type=float,
        help="of floating-point elements, relative (1e-5; of 16 bits 2e-3)",
    )
    return parser


def _extents(text: str) -> tuple[int, ...]:
    try:
        return tuple(map(int, text.split(",")))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text}: give 2 or 2,3,1") from None


def _argument(text: str, generator: np.random.Generator) -> Argument:
    if made := _MADE.fullmatch(text):
        kind, dtype = made[1], np.dtype(f"{made[3][0]}{int(made[3][1:]) // 8}")
        if kind != "random":
            zeros = np.zeros(int(made[2]), dtype)
            return Output(zeros) if kind == "out" else zeros
        return (generator.random(int(made[2])) * (1 if dtype.kind == "f" else 100)).astype(dtype)
    if text.endswith(".npy"):
        array = _loaded(text, "--arg")
        return array if array.ndim else array[()]
    try:
        return int(text, 0) if _INTEGER.fullmatch(text) else float(text)
    except ValueError:
        raise ValueError(f"--arg {text}: {_FORMS}") from None


def _symbol(text: str, generator: np.random.Generator) -> tuple[str, NDArray[Any]]:
    name, equals, value = text.partition("=")
    array = _argument(value, generator) if equals else None
    if not isinstance(array, np.ndarray):
        raise ValueError(f"--symbol {text}: give NAME=FILE.npy or NAME=random:3f32")
    return name, array


def _loaded(name: str, option: str) -> NDArray[Any]:
    try:
        return np.array(np.load(name), order="C")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ValueError(f"{option} {name}: {why}; numpy.save writes such files") from None


def _launched(
    given: argparse.Namespace, *, metrics: bool = False, second: bool = False, **options: Any
) -> tuple[Report, list[Argument]]:
    generator = np.random.default_rng(0)
    arguments = [_argument(text, generator) for text in given.arg]
    symbols = dict(_symbol(text, generator) for text in given.symbol)
    module = Module(given.file, arch=given.arch, metrics=metrics, second=second)
    if given.kernel is None and len(module.kernels) != 1:
        names = ", ".join(module.kernels) or "none"
        raise ValueError(f"{given.file}: --kernel must name one of its kernels: {names}")
    kernel = module.kernel(given.kernel or module.kernels[0])
    launch = kernel[given.grid, given.block, given.shared]
    limits = SimLimits(seconds=given.seconds, steps=1 << 40)
    options = {"cluster": given.cluster, "limits": limits, "symbols": symbols, **options}
    return launch(*arguments, **options), arguments


# --- ptxsim run --------------------------------------------------------------------------------


def _second_remarks(given: argparse.Namespace) -> list[Remark[str]]:
    """Find what the kernel shows when nvcc does not optimise it. If that cannot be seen, a line on
    stderr says why."""
    try:
        report, _ = _launched(given, second=True)
    except (CompileError, RefusedProgram, MemoryError, ValueError) as error:
        why = str(error) or "too little memory on this machine"
        print(f"ptxsim: not looked at without optimisation: {clean(why)}", file=sys.stderr)
        return []
    if report.stopped:
        print("ptxsim: without optimisation it did not end in time", file=sys.stderr)
    if not runs_alike(report.origin.texts[report.origin.name]):
        print("ptxsim: without optimisation wgmma is not looked at", file=sys.stderr)
        return []
    return [report.remark(each) for each in hidden_mistakes(report)]


def _run(given: argparse.Namespace) -> tuple[str, int]:
    wanted = [(*_expected(text, given.arg), text) for text in given.expect]
    chosen = {} if given.tolerance is None else {"tolerance": given.tolerance}
    report, arguments = _launched(given, orders=given.orders, seed=given.seed, **chosen)
    wrong = []
    for number, array, name in wanted:
        argument = arguments[number]
        made = argument.array if isinstance(argument, Output) else argument
        if not isinstance(made, np.ndarray) or made.size != array.size:
            raise ValueError(f"--expect {name}: argument {number} is no array of {array.size}")
        tolerance = usual_tolerance(made.dtype) if given.tolerance is None else given.tolerance
        if found := differing(made, array, tolerance):
            words = _UNEXPECTED.given(number=number, file=name, **found)
            error = Severity.ERROR
            wrong.append(Remark(kind="wrong-result", severity=error, message=words))
    remarks = list(report.remarks)
    if report.clean and given.file.suffix == ".cu" and not given.no_debug_build:
        remarks += _second_remarks(given)
    hints = map(report.remark, report.hints) if wrong else ()
    remarks += [*wrong, *hints]
    status = CLEAN if report.clean and not remarks else FOUND
    if given.sarif:
        return _sarif(report, remarks, given.file), status
    if given.json:
        document = {
            "kernel": report.kernel,
            "clean": status == CLEAN,
            "stopped": report.stopped,
            "printed": report.printed,
            "findings": [
                {**msgspec.structs.asdict(each), "message": str(each.message)} for each in remarks
            ],
        }
        return json.dumps(document, ensure_ascii=False, indent=1) + "\n", status
    paragraphs = in_words(remarks, report.origin.source) if remarks else [str(report)]
    return clean(report.printed) + "\n\n".join(paragraphs) + "\n", status


def _expected(text: str, arguments: Sequence[str]) -> tuple[int, NDArray[Any]]:
    number, equals, file = text.partition("=")
    if not equals:
        outputs = [place for place, each in enumerate(arguments) if each.startswith("out:")]
        number, file = str(outputs[0]) if outputs else "", text
    if not number.isdecimal() or int(number) >= len(arguments):
        raise ValueError(f"--expect {text}: name the argument by its number, as in 1={file}")
    return int(number), _loaded(file, "--expect")


def _sarif(report: Report, remarks: Sequence[Remark[str]], file: Path) -> str:
    own = (None, report.origin.name)
    root = report.origin.root
    results = [
        sarif_result(
            each,
            each.kind,
            str(each.message),
            str(file) if each.file in own else os.path.relpath(root / str(each.file)),
        )
        for each in remarks
    ]
    return sarif("ptxsim", version("ptxsim"), report.kernel, results)


# --- ptxsim counts -----------------------------------------------------------------------------


def _counts(given: argparse.Namespace) -> tuple[str, int]:
    report, _ = _launched(given, metrics=True)
    status = CLEAN if report.clean else FOUND
    if status != CLEAN:
        print(report, file=sys.stderr)
    if given.json:
        document = msgspec.to_builtins(report.metrics)
        return json.dumps(document, ensure_ascii=False, indent=1) + "\n", status
    total: Counter[str] = Counter()
    for each in report.metrics:
        total.update(each.metrics)
    paragraphs = ["\n".join(_table("all lines", total))]
    for each in report.metrics:
        place = source_line(each.file, each.line) if each.line else "no line"
        mix = ", ".join(f"{count} {opcode}" for opcode, count in each.mix.items())
        paragraphs.append("\n".join((*_table(place, each.metrics), f"  {clean(mix)}")))
    return "\n\n".join(paragraphs) + "\n", status


def _table(title: str, metrics: dict[str, int]) -> Iterator[str]:
    yield clean(title)
    for name, count in metrics.items():
        yield f"  {name:<66}{count:>12}"
