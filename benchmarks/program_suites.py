"""Finds the programs of others' suites and draws from them; ``benchmarks.programs`` runs them.

A program has a ``main`` and a ``__global__`` in its sources, all of which are there, and needs no
library that is left out. What is built, and with which arguments it is run, follows from a
Makefile's dry run, a CMakeLists.txt or the folder; the TOML file beside this one has what was
written by hand: smaller sizes, and how success shows.
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

_TABLES = msgspec.toml.decode(Path(__file__).with_suffix(".toml").read_bytes())
_SOURCES = {".cu", ".cpp", ".cc", ".cxx", ".c"}
_HEADERS = {".h", ".hpp", ".cuh", ".inl", ".inc"}
_INCLUDED = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.MULTILINE)
_CONDITIONAL = re.compile(r"^[ \t]*#[ \t]*if.*\n\s*#[ \t]*include.*$", re.MULTILINE)
_MAIN = re.compile(r"^[ \t]*(?:(?:int|void|auto)\s+)?main\s*\(", re.MULTILINE)
_LEFT_OUT = re.compile("(?i)" + "|".join(_TABLES["left_out"]))
_ELSEWHERE = re.compile("(?i)" + "|".join(_TABLES["elsewhere"]))
_TOOLKIT = ("/usr/local/cuda/include", "/usr/local/cuda/include/cccl", "/usr/include")
_LIBRARIES = ("cublas", "curand", "cufft", "cusparse", "cusolver", "nvrtc")
_DRIVER = re.compile(r"\bcu(Init|Mem|Module|Launch|Ctx|Device|Tensor)\w*\(")
_KEPT = re.compile(r"-[DIl].|-std=|-O\d|-?-use_fast_math|--e|-rdc=true|-maxrregcount")
_FILE = re.compile(r"/|\.[a-z]\w+$")  # an argument that names one
_DIMENSION = re.compile(r"POLYBENCH_LOOP_BOUND\((\w+),\w+\)\s*$", re.MULTILINE)
_LARGE = 1024  # a size, or a number of rounds
_LONG = 300  # lines
_FEWEST = 8  # of a stratum
Words = Sequence[str]
STATUS = "status 0"  # is all that shows success


class Program(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    suite: str
    name: str  # unique in its suite
    folder: str  # where it is built and run; relative to the root of the suites
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
    def stratum(self) -> str:
        return "course" if self.suite.startswith("course-") else self.suite


def find_programs(root: Path) -> list[Program]:
    """The programs of the suites, which are the folders of ``root``, by suite and name."""
    found: dict[str, Program] = {}
    for folder in sorted(each for each in root.glob("*/**/") if each != root):
        suite = root / folder.relative_to(root).parts[0]
        rule = {"cuda-samples": _sample, "hecbench": _made, "rodinia": _made}.get(
            suite.name, _alone
        )
        for program in rule(suite, folder):
            found.setdefault(program.full_name, program)
    by_hand = _TABLES["by_hand"]
    rows = ({**msgspec.to_builtins(one), **by_hand.get(name, {})} for name, one in found.items())
    return sorted(msgspec.convert(list(rows), list[Program]), key=lambda each: each.full_name)


def draw(programs: Sequence[Program], count: int, seed: int) -> list[Program]:
    """Draw from the suites by their sizes, but ``_FEWEST`` from each; all courses are one stratum.
    Draw again until there are 15 programs of courses, six courses and 20 long programs, if the
    count has room for them."""
    generator = random.Random(seed)
    strata = [list(group) for _, group in groupby(programs, lambda each: each.stratum)]
    strata.sort(key=len, reverse=True)
    shares = [max(_FEWEST, round(count * len(each) / len(programs))) for each in strata]
    shares[0] -= sum(shares) - count
    while True:
        drawn = [
            one
            for stratum, share in zip(strata, shares, strict=True)
            for one in generator.sample(stratum, min(share, len(stratum)))
        ]
        generator.shuffle(drawn)
        courses = [each.suite for each in drawn if each.stratum == "course"]
        long = sum(each.lines > _LONG for each in drawn)
        if count < 100 or (len(courses) >= 15 and len({*courses}) >= 6 and long >= 20):
            return drawn


def _sample(suite: Path, folder: Path) -> Iterator[Program]:
    """Of NVIDIA's samples: what CMakeLists.txt says."""
    common = os.path.relpath(suite / "Common", folder)
    flags = ["-O2", "-std=c++17", "--extended-lambda", f"-I{common}"]
    cmake = _text(folder / "CMakeLists.txt")
    for name, listed in re.findall(r"add_executable\((\w+)\s+([^)]*)\)", cmake):
        sources = [each for each in listed.split() if Path(each).suffix in _SOURCES]
        several = name.startswith("cdp") or sum(each.endswith(".cu") for each in sources) > 1
        yield from _program(suite, folder, name, sources, [*flags, *["-rdc=true"] * several])


def _made(suite: Path, folder: Path) -> Iterator[Program]:
    """What ``make run`` would do, or make."""
    if not any((folder / each).is_file() for each in ("Makefile", "makefile")):
        return
    said = ""
    for target in (["run"], []):
        command = ["make", "-nB", "-C", str(folder), "--no-print-directory", *target]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        said += done.stdout if done.returncode == 0 else ""
        if "-c" in said or "-o" in said:
            break
    said += _text(folder / "run")
    sources: dict[str, None] = {}
    flags: list[str] = []
    runs: list[list[str]] = []
    for line in said.replace("\\\n", " ").splitlines():
        try:
            first, *words = shlex.split(line)
        except ValueError:
            continue
        if first.startswith("./"):
            runs.append(list(takewhile(lambda each: each not in (">", "|", ";", "&&"), words)))
        elif "/" in first or re.search(r"nvcc|g\+\+|gcc|^cc$", first):
            named = [each for each in words if Path(each).suffix in _SOURCES]
            sources |= dict.fromkeys(map(os.path.normpath, named))
            flags += [each for each in words if _KEPT.match(each)] + ["-x=cu"] * ("-x" in words)
            flags += ["-rdc=true"] * ("-dc" in words)
            flags += ["-Xcompiler=-fopenmp"] * ("-fopenmp" in line)
    name = str(folder.relative_to(suite)).removeprefix("src/").removeprefix("cuda/")
    flags = [each for each in flags if not re.match("-I/|-lcuda", each)]
    mains = [each for each in sources if _MAIN.search(_text(folder / each))]
    arguments = next((each for each in runs if _has_data(folder, each)), None)
    if runs and arguments is None:
        return
    for main in mains:
        own, called = list(sources), name
        if len(mains) > 1:
            own = [main, *(each for each in sources if each not in mains)]
            called = f"{name}/{Path(main).stem}"
        yield from _program(suite, folder, called, own, flags, _smaller(arguments or ()))


def _alone(suite: Path, folder: Path) -> Iterator[Program]:
    """Each file with a main; where that is the only one in the folder, with all others there."""
    here = sorted(each for each in folder.iterdir() if each.suffix in _SOURCES)
    mains = [each for each in here if _MAIN.search(_text(each))]
    for main in mains:
        included = {name.rpartition("/")[2] for _, name in _INCLUDED.findall(_text(main))}
        beside = [each for each in here if each not in mains and each.name not in included]
        sources = [each.name for each in (main, *beside * (len(mains) == 1))]
        name = str(main.relative_to(suite).with_suffix(""))
        yield from _program(suite, folder, name, sources, ["-O2", "-std=c++17", "-I."])


def _program(
    suite: Path, folder: Path, name: str, sources: Words, flags: Words, arguments: Words = ()
) -> Iterator[Program]:
    """The program, if it is one that can be compared."""
    texts = {folder / each: _text(folder / each) for each in sources}
    search = [folder / each[2:] for each in flags if each.startswith("-I")]
    own = list(texts)
    if not all(each.is_file() and _add_included(each, search, texts) for each in own):
        return
    whole = "\n".join(texts.values())
    if "__global__" not in whole or not any(_MAIN.search(texts[each]) for each in own):
        return
    names = {each for _, each in _INCLUDED.findall(whole)}
    sizes = dict.fromkeys(_DIMENSION.findall(whole))
    added = [
        f"-D{old}={new}"
        for old, new in _TABLES["renamed"].items()
        if re.search(rf"\b{old}\b", whole)
    ]
    if sizes and "N" not in sizes:  # PolyBench's, once N is defined, which CUDA's headers use
        added += ["-DN=N", *(f"-D{each}={4 if each[0] == 'T' else 256}" for each in sizes)]
    if any(each.startswith("helper_") for each in names):  # of NVIDIA's samples
        added.append(f"-I{os.path.relpath(suite.parent / 'cuda-samples' / 'Common', folder)}")
    added += ["-lcuda"] * bool(_DRIVER.search(whole))
    added += ["-Xcompiler=-fopenmp"] * ("omp.h" in names)
    added += ["-O2"] * (not any(each.startswith("-O") for each in flags))
    for library in _LIBRARIES:
        header = re.compile(rf"{library}(_v2|XT|Lt|Dn|_api)?\.h")
        added += [f"-l{library}"] * any(map(header.match, names))
    text = "\n".join(text for each, text in texts.items() if each.is_relative_to(folder))
    says = next((printed for said, printed in _TABLES["says"] if re.search(said, text)), "")
    yield Program(
        suite=suite.name,
        name=name,
        folder=str(folder.relative_to(suite.parent)),
        sources=tuple(sources),
        lines=sum(texts[each].count("\n") for each in own),
        flags=tuple(dict.fromkeys([*flags, *added])),
        arguments=tuple(arguments),
        success=says or (STATUS if re.search(r"EXIT_FAILURE|\bassert\(", text) else ""),
    )


def _smaller(arguments: Words) -> list[str]:
    """Sizes for a simulator: a last number, which says how often, becomes 1; others shrink."""
    found = []
    for place, each in enumerate(arguments):
        size = int(each) if each.isdigit() else 0
        by = 10 if size & (size - 1) else 2
        while size > _LARGE:
            size //= by
        found.append("1" if size and place == len(arguments) - 1 else str(size) if size else each)
    return found


def _has_data(folder: Path, arguments: Words) -> bool:
    return all((folder / each).exists() for each in arguments if _FILE.search(each))


def _add_included(path: Path, search: Collection[Path], texts: dict[Path, str]) -> bool:
    """Add the texts that a source includes; whether all are there, and none is left out."""
    for mark, name in _INCLUDED.findall(_CONDITIONAL.sub("", texts[path])):
        if _LEFT_OUT.match(name):
            return False
        there = [each / name for each in (path.parent, *search) if (each / name).is_file()]
        if there and (found := there[0].resolve()) not in texts:
            texts[found] = _text(found)
            if not _add_included(found, search, texts):
                return False
        elif not there and mark == '"' and Path(name).suffix in _SOURCES | _HEADERS:
            known = re.match(r"(cu|npp|nv)\w*\.h", name) or _ELSEWHERE.match(name)
            if not known and not any(Path(each, name).is_file() for each in _TOOLKIT):
                return False
    return True


@cache
def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.is_file() else ""
