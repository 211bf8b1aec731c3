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
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
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
from ptxsim.findings.writes import in_lines, listed
from ptxsim.launch_files import AskedLaunch, LaunchList, read_launches
from ptxsim.launching import Argument, Module, Storage
from ptxsim.nvcc import CompileError
from ptxsim.orders import differing, usual_tolerance
from ptxsim.outcome import EngineError, Reason, RefusedProgram, SimLimits
from ptxsim.plan.records import Launch
from ptxsim.report import Report
from ptxsim.second_build import hidden_mistakes, runs_alike
from ptxsim.tensor_maps import Output
from ptxsim.text import phrase

CLEAN, FOUND, MISUSED, REFUSED = range(4)
_MADE = re.compile(r"(out|zeros|random):(\d{1,12})([iu]8|[fiu](?:16|32|64))")
_INTEGER = re.compile(r"[+-]?(0x[0-9a-fA-F]+|0|[1-9][0-9]*)")
_FORMS = "give FILE.npy, a number, or out:, zeros: or random: with count and type (out:4096f32)"
_OF_A_LAUNCH = ("kernel", "grid", "block", "cluster", "shared", "arg")
_UNEXPECTED = phrase(
    "{name}[{index}] is {one}, and {file} has {other}; {count} of {total} elements differ"
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
        status = MISUSED if error.reason is Reason.WRONG_PLAN else REFUSED
        file = (status == MISUSED and vars(given).get("launches")) or given.file
        where = source_line(place.file, place.line) if place else file
        return _failed(f"{where}: {error.message}", status)
    except (CompileError, EngineError) as error:
        return max(_failed(line, REFUSED) for line in str(error).splitlines() or [""])
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
        of_a_launch = partial(each.add_argument, default=argparse.SUPPRESS)
        of_a_launch("--kernel", metavar="NAME", help="needed where the file has several")
        of_a_launch("--grid", type=_extents, metavar="X[,Y[,Z]]")
        of_a_launch("--block", type=_extents, metavar="X[,Y[,Z]]")
        of_a_launch("--cluster", type=_extents, metavar="X[,Y[,Z]]")
        of_a_launch("--shared", type=int, metavar="BYTES", help="dynamic")
        of_a_launch("--arg", action="append", help=f"in order: {_FORMS}")
        several = partial(each.add_argument, action="append", default=[])
        several("--symbol", metavar="NAME=VALUE", help="a __constant__ or __device__ array")
        flag = partial(several, dest="flags")
        flag("-I", type="-I{}".format, metavar="DIR", help="for nvcc: where headers are")
        flag("-D", type="-D{}".format, metavar="NAME[=VALUE]", help="for nvcc: a macro")
        flag("-std", "--std", type="-std={}".format, metavar="c++17", help="for nvcc")
        each.add_argument("-arch", "--arch", default="sm_80", help="for nvcc (%(default)s)")
        each.add_argument("--launches", type=Path, metavar="FILE.json", help="several kernels")
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
        "--watch",
        action="append",
        default=[],
        metavar="NAME[5]",
        help="list every write to this element of an argument (by number or name) or a variable",
    )
    run.add_argument(
        "--expect",
        action="append",
        default=[],
        metavar="[NUMBER=]FILE.npy",
        help="what that argument, or NAME= of --launches, must hold; without either the first out:",
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


def _argument(text: str, generator: np.random.Generator, option: str) -> Argument:
    if made := _MADE.fullmatch(text):
        kind, dtype = made[1], np.dtype(f"{made[3][0]}{int(made[3][1:]) // 8}")
        if kind != "random":
            zeros = np.zeros(int(made[2]), dtype)
            return Output(zeros) if kind == "out" else zeros
        return (generator.random(int(made[2])) * (1 if dtype.kind == "f" else 100)).astype(dtype)
    if text.endswith(".npy"):
        array = _loaded(text, option)
        return array if array.ndim else array[()]
    try:
        return int(text, 0) if _INTEGER.fullmatch(text) else float(text)
    except ValueError:
        raise ValueError(f"{option} {text}: {_FORMS}") from None


def _symbol(text: str, generator: np.random.Generator) -> tuple[str, NDArray[Any]]:
    name, equals, value = text.partition("=")
    array = _argument(value, generator, f"--symbol {name}") if equals else None
    if not isinstance(array, np.ndarray):
        raise ValueError(f"--symbol {text}: give NAME=FILE.npy or NAME=random:3f32")
    return name, array


def _loaded(name: str, option: str) -> NDArray[Any]:
    try:
        return np.array(np.load(name), order="C")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ValueError(f"{option} {name}: {why}; numpy.save writes such files") from None


def _asked_launches(given: argparse.Namespace) -> LaunchList:
    """The launches of the file of --launches, or the one launch of the command line."""
    asked = {name: value for name, value in vars(given).items() if name in _OF_A_LAUNCH}
    if given.launches is None:
        buffers = {f"argument {place}": text for place, text in enumerate(asked.pop("arg", ()))}
        asked = {"kernel": "", "grid": 1, "block": 1, **asked, "arguments": tuple(buffers)}
        return LaunchList(buffers=buffers, launches=(AskedLaunch(**asked),))
    if asked:
        raise ValueError(f"--{next(iter(asked))}: the file of --launches says it; leave it out")
    return read_launches(given.launches)


def _launched(
    given: argparse.Namespace, *, metrics: bool = False, second: bool = False, **options: Any
) -> tuple[Report, dict[str, NDArray[Any]]]:
    """The report, and the arrays by name."""
    work, generator = _asked_launches(given), np.random.default_rng(0)
    option = f"{given.launches}: buffers:" if given.launches else "--arg"
    buffers = {name: _argument(each, generator, option) for name, each in work.buffers.items()}
    symbols = dict(_symbol(text, generator) for text in given.symbol)
    for flag in given.flags:
        if given.file.suffix != ".cu":
            raise ValueError(f"{flag} is for nvcc, and {given.file} is no .cu; leave it out")
        if flag.startswith("-I") and not Path(flag[2:]).is_dir():
            raise ValueError(f"{flag}: there is no such folder; give that of the headers")
    module = Module(given.file, arch=given.arch, flags=given.flags, metrics=metrics, second=second)
    if not work.launches[0].kernel and len(module.kernels) != 1:
        names = ", ".join(module.kernels) or "none"
        raise ValueError(f"{given.file}: --kernel must name one of its kernels: {names}")
    memory, launches = Storage(module.engine), list[Launch]()
    try:
        for asked in work.launches:
            arguments = [
                (each, buffers[each]) if isinstance(each, str) else (f"argument {place}", each)
                for place, each in enumerate(asked.arguments)
            ]
            kernel = module.kernel(asked.kernel or module.kernels[0])
            shape = (asked.grid, asked.block, asked.shared)
            launches.append(kernel.request(memory, shape, arguments, asked.cluster))
    except (KeyError, ValueError) as error:
        known = f"there is no buffer {error}; there are {', '.join(buffers)}"
        where = f"{given.launches}: launches[{len(launches)}]: " if given.launches else ""
        raise ValueError(f"{where}{known if isinstance(error, KeyError) else error}") from None
    limits = SimLimits(seconds=given.seconds, steps=1 << 40)
    report = module.run(launches, memory, limits=limits, symbols=symbols, **options)
    return report, dict(zip((each.name for each in memory.allocations), memory.arrays, strict=True))


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
    wanted = [(*_expected(text, _asked_launches(given).buffers), text) for text in given.expect]
    chosen = {} if given.tolerance is None else {"tolerance": given.tolerance}
    seed, watch = given.seed, given.watch
    report, arrays = _launched(given, orders=given.orders, seed=seed, watch=watch, **chosen)
    wrong = []
    for name, array, file in wanted:
        made = arrays.get(name)
        if made is None or made.size != array.size:
            raise ValueError(f"--expect {file}: {name} is no array of {array.size}")
        tolerance = usual_tolerance(made.dtype) if given.tolerance is None else given.tolerance
        if found := differing(made, array, tolerance):
            words = _UNEXPECTED.given(name=name, file=file, **found)
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
            **listed(report.writes, report.writes_left_out),
            "findings": [
                {**msgspec.structs.asdict(each), "message": str(each.message)} for each in remarks
            ],
        }
        return json.dumps(document, ensure_ascii=False, indent=1) + "\n", status
    paragraphs = in_words(remarks, report.origin.source) if remarks else [str(report)]
    writes = in_lines(report.writes, report.writes_left_out, report.origin.source)
    paragraphs = list(filter(None, ["\n".join(writes), *paragraphs]))
    return clean(report.printed) + "\n\n".join(paragraphs) + "\n", status


def _expected(text: str, buffers: Mapping[str, str]) -> tuple[str, NDArray[Any]]:
    name, equals, file = text.partition("=")
    if not equals:
        name = next((each for each in buffers if buffers[each].startswith("out:")), "")
        file = text
    name = name if name in buffers else f"argument {name}"
    if name not in buffers:
        raise ValueError(f"--expect {text}: name the argument by number or name, as in 1={file}")
    return name, _loaded(file, "--expect")


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
