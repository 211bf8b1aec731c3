"""Finds the programs of others' suites and draws from them; ``benchmarks.programs`` runs them.

A program has a ``main`` and a ``__global__`` in its sources, all of which are there, and needs no
library that this comparison leaves out. What is built, and with which arguments it is run, follows
from a Makefile's dry run, a CMakeLists.txt or the folder; ``program_arguments.toml`` beside this
file has what was written by hand: smaller sizes, and how success shows.
"""

from __future__ import annotations

import os
import random
import re
import shlex
import subprocess
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from itertools import groupby, takewhile
from pathlib import Path

import msgspec

_SOURCES = {".cu", ".cpp", ".cc", ".cxx", ".c"}
_HEADERS = {".h", ".hpp", ".cuh", ".inl", ".inc"}
_INCLUDED = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.MULTILINE)
_CONDITIONAL = re.compile(r"^[ \t]*#[ \t]*if.*\n\s*#[ \t]*include.*$", re.MULTILINE)
_MAIN = re.compile(r"^[ \t]*(?:(?:int|void|auto)\s+)?main\s*\(", re.MULTILINE)
_LEFT_OUT = re.compile(
    r"(?i)(GL/|EGL/|gl\w*\.h$|glut|glfw|.*helper_gl|vulkan|X11/|d3d|SDL|mpi\.h|optix|nccl|cudnn|nvshmem"
    r"|opencv|cv\.h|.*opencv|FreeImage|hdf5|gdal|boost/|cutlass|cute/|gtest|benchmark/|hip/|sycl|wb\.h"
    r"|libwb|nvcuvid|nvscibuf|torch/|zlib\.h|png\.h|jpeglib|tiffio|mkl|gsl/|libpng|pybind|Python\.h)"
)
_ELSEWHERE = re.compile(r"(?i)^(windows|io|direct|conio|winsock.*)\.h$|^rendercheck")
_LIBRARIES = ("cublas", "curand", "cufft", "cusparse", "cusolver", "nvrtc")
_KEPT = re.compile(r"-[DIl].|-std=|-O\d|-?-use_fast_math|--e|-rdc=true|-maxrregcount")
_LONG = 300  # lines
_LARGE = 1024  # a size, or a number of rounds
_RENAMED = {  # what CUDA 13 has no more
    "cudaThreadSynchronize": "cudaDeviceSynchronize",
    "cudaThreadExit": "cudaDeviceReset",
}
_FEWEST = 8  # of a stratum
# What a program says of itself, and what it then prints; the first that its text has.
_SAYS = (
    (r"Non-Matching CPU-GPU Outputs", r"Threshold of [\d.]+ Percent: 0\b"),
    (r'"[^"]*\bPASS(?:ED)?\b', r"\bPASS(?:ED)?\b"),
    (r'(?i)"[^"]*\b(?:test|all tests?|verification) (?:has )?pass', r"(?i)\bpass(?:ed|es)?\b"),
    (r"All results match", r"All results match"),
    (r'(?i)"[^"]*\bsuccess', r"(?i)(?<!un)success"),
    (r'(?i)"[^"]*\bresults? (?:is|are)? ?correct', r"(?i)(?<!in)correct"),
    (r'(?i)"[^"]*\bpass(?:ed)?\b', r"(?i)\bpass(?:ed)?\b"),
)
STATUS = "status 0"  # is all that shows success


class Program(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    suite: str
    name: str  # unique in its suite
    folder: str  # where it is built and run; relative to the manifest
    sources: tuple[str, ...]  # relative to the folder
    lines: int  # of the sources
    flags: tuple[str, ...] = ()  # of nvcc
    arguments: tuple[str, ...] = ()
    stdin: str = ""
    success: str = ""  # what it prints when its own check passed, or STATUS; empty: it has no check

    @property
    def full_name(self) -> str:
        return f"{self.suite}/{self.name}"

    @property
    def of_course(self) -> bool:
        return self.suite.startswith("course-")


def find_programs(root: Path) -> list[Program]:
    """The programs of the suites, which are the folders of ``root``, by suite and name."""
    found = {}
    for suite in sorted(each for each in root.iterdir() if each.is_dir()):
        for program in _of_suite(root, suite):
            found.setdefault(program.full_name, program)
    by_hand = Path(__file__).with_name("program_arguments.toml")
    table = msgspec.toml.decode(by_hand.read_bytes()) if by_hand.exists() else {}
    changed = (
        msgspec.convert({**msgspec.to_builtins(each), **table.get(name, {})}, Program)
        for name, each in found.items()
    )
    return sorted(changed, key=lambda each: each.full_name)


def draw(programs: Sequence[Program], count: int, seed: int) -> list[Program]:
    """Draw from the suites by their sizes, but ``_FEWEST`` from each; all courses are one stratum.
    Draw again until there are 15 programs of courses, six courses and 20 long programs, if the
    count has room for them."""
    generator = random.Random(seed)
    strata = [list(group) for _, group in groupby(programs, _stratum)]
    strata = sorted(strata, key=len, reverse=True)
    shares = [max(_FEWEST, round(count * len(each) / len(programs))) for each in strata]
    shares[0] -= sum(shares) - count
    while True:
        drawn = [
            one
            for stratum, share in zip(strata, shares, strict=True)
            for one in generator.sample(stratum, min(share, len(stratum)))
        ]
        generator.shuffle(drawn)
        courses = [each.suite for each in drawn if each.of_course]
        long = sum(each.lines > _LONG for each in drawn)
        if count < 100 or (len(courses) >= 15 and len({*courses}) >= 6 and long >= 20):
            return drawn


def _stratum(program: Program) -> str:
    return "course" if program.of_course else program.suite


def _of_suite(root: Path, suite: Path) -> Iterator[Program]:
    for folder in sorted(each for each in suite.rglob("*") if each.is_dir()):
        cmake, makefile = folder / "CMakeLists.txt", folder / "Makefile"
        if suite.name == "cuda-samples":
            if cmake.is_file():
                yield from _sample(root, suite, folder, _text(cmake))
        elif suite.name in ("hecbench", "rodinia"):
            if makefile.is_file() or (folder / "makefile").is_file():
                yield from _made(root, suite, folder)
        else:
            yield from _alone(root, suite, folder)


def _sample(root: Path, suite: Path, folder: Path, cmake: str) -> Iterator[Program]:
    """Of NVIDIA's samples: what CMakeLists.txt says."""
    flags = ["-O2", "-std=c++17", "--extended-lambda", f"-I{suite / 'Common'}"]
    for name, listed in re.findall(r"add_executable\((\w+)\s+([^)]*)\)", cmake):
        sources = [each for each in listed.split() if Path(each).suffix in _SOURCES]
        several = sum(each.endswith(".cu") for each in sources) > 1
        yield from _program(root, suite, folder, name, sources, [*flags, *["-rdc=true"] * several])


def _made(root: Path, suite: Path, folder: Path) -> Iterator[Program]:
    """What ``make run`` would do, or make."""
    said = ""
    for target in (["run"], []):
        command = ["make", "-nB", "-C", str(folder), "--no-print-directory", *target]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        said += done.stdout if done.returncode == 0 else ""
        if "-c" in said or "-o" in said:
            break
    script = folder / "run"
    said += _text(script) if script.is_file() else ""
    sources: list[str] = []
    flags: list[str] = []
    runs: list[list[str]] = []
    for line in said.replace("\\\n", " ").splitlines():
        try:
            words = shlex.split(line)
        except ValueError:
            continue
        if not words or "/" not in words[0] and not re.search(r"nvcc|g\+\+|gcc|^cc$", words[0]):
            continue
        if words[0].startswith("./"):
            runs.append(list(takewhile(lambda each: each not in (">", "|", ";", "&&"), words[1:])))
            continue
        sources += [each for each in words if Path(each).suffix in _SOURCES]
        flags += [each for each in words if _KEPT.match(each)] + ["-x=cu"] * ("-x" in words)
        flags += ["-rdc=true"] * ("-dc" in words) + ["-Xcompiler=-fopenmp"] * ("-fopenmp" in line)
    name = str(folder.relative_to(suite)).removeprefix("src/").removeprefix("cuda/")
    sources = list(dict.fromkeys(os.path.normpath(each) for each in sources))
    flags = [each for each in flags if not re.match("-I/|-lcuda", each)]
    mains = [each for each in sources if _MAIN.search(_text(folder / each))]
    for main in mains:
        several = len(mains) > 1
        own = [main, *(each for each in sources if each not in mains)] if several else sources
        called = f"{name}/{Path(main).stem}" if several else name
        arguments = next((each for each in runs if _has_data(folder, each)), None)
        if arguments is not None or not runs:
            small = _smaller(arguments or ())
            yield from _program(root, suite, folder, called, own, flags, small)


def _alone(root: Path, suite: Path, folder: Path) -> Iterator[Program]:
    """Each file with a main; where that is the only one in the folder, with all others there."""
    here = sorted(each for each in folder.iterdir() if each.suffix in _SOURCES)
    mains = [each for each in here if _MAIN.search(_text(each))]
    for main in mains:
        included = {name.rpartition("/")[2] for _, name in _INCLUDED.findall(_text(main))}
        beside = [each for each in here if each not in mains and each.name not in included]
        sources = [main, *beside] if len(mains) == 1 else [main]
        name = str(main.relative_to(suite).with_suffix(""))
        flags = ["-O2", "-std=c++17", "-I."]
        yield from _program(root, suite, folder, name, [each.name for each in sources], flags)


def _program(
    root: Path,
    suite: Path,
    folder: Path,
    name: str,
    sources: Sequence[str],
    flags: Sequence[str],
    arguments: Sequence[str] = (),
) -> Iterator[Program]:
    """The program, if it is one that can be compared."""
    paths = [folder / each for each in sources]
    if not all(each.is_file() for each in paths):
        return
    search = [folder / each[2:] for each in flags if each.startswith("-I")]
    texts = {each: _text(each) for each in paths}
    for path in list(texts):
        if not _add_included(path, search, texts):
            return
    whole = "\n".join(texts.values())
    if "__global__" not in whole or not any(_MAIN.search(_text(each)) for each in paths):
        return
    names = {name for _, name in _INCLUDED.findall(whole)}
    flags = [re.sub(f"^-I{re.escape(str(root))}", _up(root, folder), each) for each in flags]
    flags += [
        f"-l{library}"
        for library in _LIBRARIES
        if any(re.match(rf"{library}(_v2|XT|Lt|Dn|_api)?\.h", each) for each in names)
    ]
    flags += [f"-D{old}={new}" for old, new in _RENAMED.items() if re.search(rf"\b{old}\b", whole)]
    flags += _smaller_macros(whole)
    flags += ["-lcuda"] * bool(
        re.search(r"\bcu(Init|Mem|Module|Launch|Ctx|Device|Tensor)\w*\(", whole)
    )
    flags += ["-Xcompiler=-fopenmp"] * ("omp.h" in names)
    flags += ["-O2"] * (not any(each.startswith("-O") for each in flags))
    own = "\n".join(_text(each) for each in texts if each.is_relative_to(folder))
    says = next((printed for said, printed in _SAYS if re.search(said, own)), "")
    by_status = STATUS if re.search(r"EXIT_FAILURE|\bassert\(", own) else ""
    yield Program(
        suite=suite.name,
        name=name,
        folder=str(folder.relative_to(root)),
        sources=tuple(sources),
        lines=sum(_text(each).count("\n") for each in paths),
        flags=tuple(dict.fromkeys(flags)),
        arguments=tuple(arguments),
        success=says or by_status,
    )


def _smaller_macros(text: str) -> list[str]:
    """PolyBench's sizes, which it takes from the command line where N is defined."""
    sizes = dict.fromkeys(re.findall(r"POLYBENCH_LOOP_BOUND\((\w+),\w+\)\s*$", text, re.MULTILINE))
    if not sizes or "N" in sizes:  # a number there would break CUDA's headers
        return []
    return ["-DN=N", *(f"-D{each}={4 if each[0] == 'T' else 256}" for each in sizes)]


def _smaller(arguments: Sequence[str]) -> list[str]:
    """Sizes for a simulator: a last number, which says how often, becomes 1; others shrink."""
    last = len(arguments) - 1
    return [
        "1" if place == last and each.isdigit() else _smaller_size(each)
        for place, each in enumerate(arguments)
    ]


def _smaller_size(argument: str) -> str:
    size = int(argument) if argument.isdigit() else 0
    by = 10 if size & (size - 1) else 2
    while size > _LARGE:
        size //= by
    return str(size) if size else argument


def _has_data(folder: Path, arguments: Sequence[str]) -> bool:
    """Whether the files that are named as arguments are there."""
    named = [folder / each for each in arguments if re.search(r"/|\.[a-z]\w+$", each)]
    return all(each.exists() for each in named)


def _add_included(path: Path, search: Collection[Path], texts: dict[Path, str]) -> bool:
    """Add the texts that a source includes; whether all are there, and none is left out."""
    for mark, name in _INCLUDED.findall(_CONDITIONAL.sub("", texts[path])):
        if _LEFT_OUT.match(name):
            return False
        there = [each / name for each in (path.parent, *search) if (each / name).is_file()]
        if there and there[0].resolve() not in texts:
            texts[there[0].resolve()] = _text(there[0])
            if not _add_included(there[0].resolve(), search, texts):
                return False
        elif not there and mark == '"' and Path(name).suffix in _SOURCES | _HEADERS:
            if not (_toolkit(name) or _ELSEWHERE.match(name)):
                return False
    return True


def _toolkit(name: str) -> bool:
    """Whether CUDA or the system has this header."""
    roots = ("/usr/local/cuda/include", "/usr/local/cuda/include/cccl", "/usr/include")
    return bool(re.match(r"(cu|npp|nv)\w*\.h", name)) or any(Path(r, name).is_file() for r in roots)


def _up(root: Path, folder: Path) -> str:
    return "-I" + "/".join([".."] * len(folder.relative_to(root).parts))


@cache
def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.is_file() else ""
