"""Only problems/ and labs/ know what is asked: no other room names a problem."""

from __future__ import annotations

import re

import pytest

from tests.support.places import ROOT

GRADER = ROOT / "grader"
# Their subject is the task itself. base/gpus.json tells peaks in the units of data sheets, and old
# documents name what the only problem was.
EXEMPT = ("problems/", "labs/", "base/gpus.py", "results/ladders/")
# Messages, records and templates; not prose: a docstring may give an example.
NAMES = re.compile(
    r"\bgemm\b|cublas(?!dx)|run_custom<float>|\bmnk\b|(?-i:TFLOPS)|thrust::device_vector<float>",
    re.I,
)
PROSE = re.compile(r'"""(?:[^"\\]|\\.|"(?!""))*"""|(?:^|\s)#[^\n]*|//[^\n]*|\{#.*?#\}', re.S)
SUFFIXES = (".py", ".cpp", ".hpp", ".cu", ".j2", ".js")
FILES = [
    path
    for path in sorted(GRADER.rglob("*"))
    if path.suffix in SUFFIXES and not str(path.relative_to(GRADER)).startswith(EXEMPT)
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(GRADER)))
def test_no_room_names_a_problem(path: object) -> None:
    text = path.read_text()  # type: ignore[attr-defined]
    code = PROSE.sub(lambda match: "\n" * match[0].count("\n"), text)
    found = [
        f"{number}: {line.strip()}"
        for number, line in enumerate(code.splitlines(), 1)
        if NAMES.search(line)
    ]
    assert not found


def test_the_search_sees_code_and_not_prose() -> None:
    code = PROSE.sub("", '"""Of cuBLAS."""\nunit = "TFLOPS"  # beside cuBLAS\n')
    assert NAMES.findall(code) == ["TFLOPS"]
