"""A course's skeleton → a lab of whole programs: its files, its Makefile's flags, its solution."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

import yaml

from grader.base import LabError
from grader.labs.submission import REFERENCE, SUFFIXES
from grader.labs.whole_program import COMPILED, STARTERS
from grader.labs.yaml_file import wrong

_SOLUTION = "solution"
_SETTING = re.compile(r"^(\w+)\s*([:?+]?)=[ \t]*(.*)$", re.MULTILINE)
_USE = re.compile(r"\$[({](\w+)[)}]")
_KEPT = re.compile(r"-[ID].+|-O\d|--?expt-.*|--?extended-lambda|--?use_fast_math")
_MAIN, _KERNEL = re.compile(rb"\bmain\s*\("), re.compile(rb"\b__global__\b")


def lab_of_skeleton(
    skeleton: Path, solution: Path, name: str, student: Sequence[str], runs: Sequence[str]
) -> Mapping[str, bytes]:
    """The files of a lab's folder, by their paths in it.

    solution: a folder with the student's files as they should be. student: their names; () to find
    them. runs: the arguments of each case. Raises LabError.
    """
    words = list(_compiler_words(skeleton))
    files = {
        path.relative_to(skeleton).as_posix(): path.read_bytes()
        for path in sorted(skeleton.rglob("*"))
        if path.suffix in (*COMPILED, *SUFFIXES) and path.is_file()
        if not path.resolve().is_relative_to(solution.resolve())
    }
    built = {word for word in words if word in files} or files.keys()
    files = {
        each: text for each, text in files.items() if each in built or not each.endswith(COMPILED)
    }
    own = tuple(student) or _unfinished(files)
    if not own:
        raise LabError(wrong("--student", "program.whose", folder=str(skeleton)))
    if missing := [each for each in own if each not in files or not (solution / each).is_file()]:
        raise LabError(wrong("--student", "program.not-in-both", name=missing[0]))
    document = {
        "id": name,
        "kind": "program",
        "title": name,
        "files": {"student": list(own), "course": [each for each in files if each not in own]},
        "build": _build(words),
        "reference": _SOLUTION,
        "output": {"tolerance": 1e-5},
        "cases": [
            {"name": f"case-{i}", "arguments": shlex.split(run)} for i, run in enumerate(runs, 1)
        ],
    }
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)
    place = PurePosixPath(REFERENCE, name, _SOLUTION)
    return {
        f"{name}.yaml": text.encode(),
        **{f"{STARTERS}/{name}/{each}": content for each, content in files.items()},
        **{f"{place}/{each}": (solution / each).read_bytes() for each in own},
    }


def _unfinished(files: Mapping[str, bytes]) -> tuple[str, ...]:
    """The files that say TODO, else those with kernels and without main()."""
    asked = [each for each, text in files.items() if b"TODO" in text]
    kernels = [each for each, t in files.items() if _KERNEL.search(t) and not _MAIN.search(t)]
    return tuple(sorted(asked or kernels, key=lambda each: not each.endswith(COMPILED)))


def _compiler_words(skeleton: Path) -> Iterator[str]:
    """The words of nvcc's lines in the Makefile, if there is one."""
    makefiles = (skeleton / each for each in ("Makefile", "makefile", "GNUmakefile"))
    found = next((each for each in makefiles if each.is_file()), None)
    text = found.read_text(errors="replace").replace("\\\n", " ") if found else ""
    settings: dict[str, str] = {}
    for name, how, value in _SETTING.findall(text):
        settings[name] = f"{settings.get(name, '')} {value}" if how == "+" else value
    for line in text.splitlines():
        for _ in range(8):  # settings of settings
            line = _USE.sub(lambda use: settings.get(use[1], ""), line)
        if line.startswith("\t") and "nvcc" in line:
            yield from re.sub(r"(^|\s)(-[DIl]|-std)\s+", r"\1\2", line).split()


def _build(words: Sequence[str]) -> dict[str, object]:
    standards = re.findall(r"-std=?(c\+\+(?:14|17|20))(?!\S)", " ".join(words))
    found: dict[str, object] = {"std": standards[-1] if standards else "c++17"}
    found["options"] = list(dict.fromkeys(filter(_KEPT.fullmatch, words)))
    linked = [each[2:] for each in words if re.fullmatch(r"-l\w+", each)]
    found["libraries"] = [each for each in dict.fromkeys(linked) if each != "cudart"]
    return found
