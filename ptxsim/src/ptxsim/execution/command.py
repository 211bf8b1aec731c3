"""``ptxsim exec``: build a program if it is given as sources, run it, and say what is wrong."""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ptxsim.execution.building import build
from ptxsim.execution.running import Ended, execute
from ptxsim.findings.remarks import clean, in_words
from ptxsim.launching import default_engine
from ptxsim.report import Origin

_SOURCES = {".cu", ".cpp", ".cc", ".cxx", ".c", ".o", ".a"}
FOUND = 1


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "program",
        nargs="+",
        help="sources for nvcc, or a program that ptxsim nvcc built; its arguments follow --",
    )
    parser.add_argument("-I", action="append", default=[], metavar="DIR", help="for nvcc")
    parser.add_argument("-D", action="append", default=[], metavar="NAME[=VALUE]", help="for nvcc")
    parser.add_argument("-l", action="append", default=[], metavar="LIBRARY", help="for nvcc")
    parser.add_argument("-std", metavar="c++17", help="for nvcc")
    parser.add_argument("--arch", default="sm_80", help="for nvcc (%(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=600.0, help="of CPU for one launch (%(default)s)"
    )
    parser.add_argument("--json", metavar="FILE", help="write the findings to FILE")


def run(given: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Return the exit status: the program's own, or 1 where something was found. Raises ValueError,
    CompileError, EngineError."""
    files = [Path(each) for each in given.program]
    for each in files:
        each.stat()
    with tempfile.TemporaryDirectory(prefix="ptxsim-") as folder:
        program = files[0]
        if files[0].suffix in _SOURCES:
            options = [f"-I{each}" for each in given.I] + [f"-D{each}" for each in given.D]
            options += [f"-l{each}" for each in given.l]
            options += [f"-std={given.std}"] if given.std else []
            program = Path(folder) / files[0].stem
            build([str(each) for each in files], options, program, given.arch)
        elif len(files) > 1:
            raise ValueError(f"{files[1]}: give sources, or one program, and its arguments after --")
        ended = execute(program, arguments, default_engine(), given.seconds)
    if given.json:
        Path(given.json).write_text(_document(ended))
    sys.stderr.write(_words(ended))
    if ended.refused:
        raise ended.refused
    if ended.status:
        return 128 - ended.status if ended.status < 0 else ended.status
    return FOUND if ended.remarks or ended.stopped else 0


def _words(ended: Ended) -> str:
    origin = Origin(Path.cwd(), "the PTX", {})
    paragraphs = list(in_words(ended.remarks, origin.source))
    if ended.stopped:
        paragraphs.append(f"{clean(ended.stopped)} was stopped before its end: --seconds")
    return "".join(f"\n{each}\n" for each in paragraphs)


def _document(ended: Ended) -> str:
    found = [{**msgspec.structs.asdict(each), "message": str(each.message)} for each in ended.remarks]
    document = {
        "status": ended.status,
        "launches": ended.launches,
        "stopped": ended.stopped,
        "findings": found,
    }
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"
