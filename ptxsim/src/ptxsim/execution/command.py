"""``ptxsim exec``: build a program if it is given as sources, run it, and say what is wrong."""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from ptxsim.execution.building import compile_program
from ptxsim.execution.device import Settings
from ptxsim.execution.running import Execution, execute
from ptxsim.findings.sarif import sarif, sarif_result
from ptxsim.findings.writes import WatchedElement, listed

_SOURCES = {".cu", ".cpp", ".cc", ".cxx", ".c", ".o", ".a"}
_FOUND = 1


def _nvcc(given: argparse.Namespace) -> tuple[str, int]:
    compile_program(given.of_program, given.arch)
    return "", 0


def split(arguments: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """The command's own arguments, and those of the program, which follow ``--``, or of nvcc."""
    if arguments[:1] == ["nvcc"]:
        return arguments[:1], arguments[1:]
    if arguments[:1] != ["exec"] or "--" not in arguments:
        return arguments, ()
    place = arguments.index("--")
    return arguments[:place], arguments[place + 1 :]


def add_options(commands: Any) -> None:
    """Add the commands to argparse's."""
    compiler = commands.add_parser(
        "nvcc", help="nvcc with its own options, for programs that exec runs", add_help=False
    )
    compiler.set_defaults(command=_nvcc, arch="sm_80")
    parser = commands.add_parser(
        "exec", help="build a whole CUDA program, run it, and say what is wrong"
    )
    parser.set_defaults(command=_run)
    parser.add_argument(
        "program",
        nargs="+",
        type=Path,
        help="sources for nvcc, or a program that was built so; its own arguments follow --",
    )
    for option, metavar in (("I", "DIR"), ("D", "NAME[=VALUE]"), ("l", "LIBRARY")):
        parser.add_argument(
            f"-{option}",
            action="append",
            default=[],
            dest="flags",
            type=f"-{option}{{}}".format,
            metavar=metavar,
            help="for nvcc",
        )
    parser.add_argument("-std", default="c++17", help="for nvcc (%(default)s)")
    parser.add_argument("-arch", "--arch", default="sm_80", help="for nvcc (%(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=600.0, help="of CPU for one launch (%(default)s)"
    )
    parser.add_argument(
        "--stop", action="store_true", dest="stops", help="end the program at the first error"
    )
    parser.add_argument(
        "--no-skip",
        action="store_false",
        dest="skips",
        help="run launches again that find and leave what equal ones did",
    )
    parser.add_argument(
        "--jobs", type=int, default=1, help="blocks of a launch at the same time (%(default)s)"
    )
    parser.add_argument(
        "--watch",
        action="append",
        default=[],
        metavar="NAME[5]",
        help="list every write to this element of a variable, d_c[5], or of d_c:21[5] by its line",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the findings to FILE, too")
    parser.add_argument("--sarif", type=Path, metavar="FILE", help="the same, as SARIF 2.1.0")


def _run(given: argparse.Namespace) -> tuple[str, int]:
    """Run the program; words on findings go to stderr, for stdout is the program's."""
    files: list[Path] = given.program
    given.file = files[0]  # which refusals name
    watch = tuple(map(WatchedElement.named, given.watch))
    for each in files:
        each.stat()
    if given.jobs < 1:
        raise ValueError(f"--jobs {given.jobs}: give 1 or more")
    compiled = files[0].suffix in _SOURCES
    if not compiled and len(files) > 1:
        raise ValueError(f"{files[1]}: its arguments follow --")
    folders = [each.parent for each in files]
    folders += [Path(each[2:]) for each in given.flags if each.startswith("-I")]
    with tempfile.TemporaryDirectory(prefix="ptxsim-") as folder:
        program = Path(folder) / files[0].stem if compiled else files[0]
        if compiled:
            sources = map(str, files)
            options = (f"-std={given.std}", *given.flags, *sources, "-o", str(program))
            compile_program(options, given.arch)
        settings = Settings(
            seconds=given.seconds,
            watch=watch,
            skips=given.skips,
            stops=given.stops,
            jobs=given.jobs,
        )
        ended = execute(program, given.of_program, settings, folders=folders)
    if given.json:
        given.json.write_text(document(ended))
    if given.sarif:
        given.sarif.write_text(sarif_document(ended, files[0]))
    sys.stderr.write("".join(f"\n{each}\n" for each in ended.paragraphs()))
    if ended.refused:
        raise ended.refused
    if ended.mistakes:
        raise ValueError(ended.mistakes[0])
    if not ended.clean:
        return "", _FOUND
    return "", ended.status if ended.status >= 0 else 128 - ended.status


def document(ended: Execution) -> str:
    """The same for programs; README.md describes the fields."""
    found = [
        {**msgspec.structs.asdict(each), "message": str(each.message)} for each in ended.remarks
    ]
    whole = {
        "status": ended.status,
        "launches": ended.launches,
        "refused": str(ended.refused) if ended.refused else None,
        "skipped": ended.skipped,
        "notes": [*map(str, ended.notes)],
        "findings": found,
        **listed(ended.writes, ended.writes_left_out),
    }
    return json.dumps(whole, ensure_ascii=False, indent=1) + "\n"


def sarif_document(ended: Execution, program: Path) -> str:
    results = [
        sarif_result(each, each.kind, str(each.message), each.file or str(program))
        for each in ended.remarks
    ]
    failure = str(ended.refused) if ended.refused else None
    return sarif("ptxsim", version("ptxsim"), program.stem, results, failure)
