"""docs/new-lab.md, done to the letter; and no room but problems/ and labs/ names a problem."""

import re
import shlex
from pathlib import Path

import pytest

from grader.report.formatting import clean
from grader.results import store
from tests.support.commands import grade, run
from tests.support.files import beside
from tests.support.places import ROOT

PAGE = (ROOT / "docs" / "new-lab.md").read_text()
BLOCK = re.compile(
    r"(?:^File `(?P<file>[^`]+)`:\n\n)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.M | re.S
)
MOST_LINES = 100  # of a problem, as the issue of this page promised


@pytest.mark.sampled
def test_the_page_leads_to_a_graded_lab(tmp_path: Path) -> None:
    printed = ""
    ran = 0
    for block in BLOCK.finditer(PAGE):
        if block["file"]:
            file = tmp_path / block["file"]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block["text"])
        elif block["kind"] == "sh":
            for line in block["text"].splitlines():
                printed, ran = said(line, tmp_path), ran + 1
        elif block["kind"] != "bash":  # which is about files that the page has not
            for words in block["text"].splitlines():
                assert words in printed, printed
    assert ran == 3
    problem = (tmp_path / "batched" / "batched.py").read_text()
    assert len(problem.splitlines()) < MOST_LINES

    ada = tmp_path / "submissions" / "ada"
    assert "run_custom" in (ada / "batched.cuh").read_text()
    assert "C[i] = A[i]·B[i]" in (ada / "README.md").read_text()
    said("grade --language zh_CN new wei --lab batched/batched.yaml", tmp_path)
    assert "编辑" in (tmp_path / "submissions" / "wei" / "README.md").read_text()
    (path,) = (tmp_path / "results" / "batched" / "ada").glob("*-cpu.json")
    why = store.load(path).explanation
    assert why is not None and [each.rule for each in why.advice] == ["no-tile"]
    (path,) = (tmp_path / "results" / "batched" / "bob").glob("*-cpu.json")
    words = "B 被当作按列存放来读取"  # the document has them: nobody asks the problem's file again
    assert words not in printed
    (tmp_path / "batched").rename(tmp_path / "gone")
    assert words in said(f"grade report --language zh {path}", tmp_path)
    assert words in path.with_suffix(".html").read_text()
    result = store.load(path)
    wrong = next(case for case in result.cases if case.size == {"batch": 3, "n": 33})
    assert result.problem.unit == "TFLOPS" and wrong.amount == 2 * 3 * 33**3
    assert wrong.error and wrong.error.shape == (99, 33) and wrong.error.first_mismatch
    assert wrong.error.first_mismatch.element == "C[row 0, column 0]"


def test_a_lab_that_counts_bytes_is_told_in_its_own_terms(tmp_path: Path) -> None:
    """A softmax, whose FFMA are those of expf."""
    for name in ("softmax.py", "softmax.yaml", "eve/softmax.cu"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(beside(__file__, Path(name).name))
    graded = said("grade eve --lab softmax.yaml --device cpu -v --gpu 2080", tmp_path)
    assert re.search(r"the limit is L2\s+next: softmax.cu:1[01]: Lanes read addresses that", graded)
    assert "8 times the bytes that the problem must move" in graded and "FFMA" not in graded
    assert "RTX 2080 Ti: at most" in graded and "A100" not in graded
    assert "for each FFMA" not in said("grade sass eve --lab softmax.yaml", tmp_path)


def test_a_mistake_in_the_problem_is_one_line_with_its_place(tmp_path: Path) -> None:
    blocks = {block["file"]: block["text"] for block in BLOCK.finditer(PAGE) if block["file"]}
    (tmp_path / "batched.yaml").write_text(blocks["batched/batched.yaml"])
    good = blocks["batched/batched.py"]
    for text, words in (
        (good.replace("import numpy", "import nunpy"), "batched.py:3: ModuleNotFoundError"),
        (good.replace("def tolerance", "def tolerances"), "batched.py: Batched lacks tolerance"),
        (good.replace("dims =", "dim ="), "batched.py: Batched lacks dims"),
        (good.replace("batch * n, n", "batch * m, n"), "batched.py:40: NameError: name 'm' is not"),
        ("raise SystemExit", "batched.py:1: SystemExit"),
        (good.replace("no-tile", "no-tle"), "Batched.advice: there is no advice 'no-tle'; did you"),
        (good.replace("class Batched(Problem)", "class Batched"), "expected one class that"),
        ("x = (", "batched.py:1: SyntaxError"),
        (good.replace("recomputed", "computed"), "100×128 has 3276800 inputs, and the host"),
        (good.replace("baselines", "others"), "Batched counts operations, and its baseline only"),
    ):
        (tmp_path / "batched.py").write_text(text)
        told = said("grade nobody --lab batched.yaml --device cpu", tmp_path)
        assert told.startswith("grade: batched.yaml: ") and words in told, told
        assert len(told.splitlines()) == 1
    (tmp_path / "batched.yaml").write_text("id: x\nproblem: sorting\n")
    told = said("grade nobody --lab batched.yaml --device cpu", tmp_path)
    assert told.startswith("grade: batched.yaml: problem: there is no problem 'sorting': it is")


def said(command: str, place: Path) -> str:
    """What a command line of the page prints, without line breaks inside messages."""
    name, *words = shlex.split(command)
    assert name == "grade"
    done = run(grade(*words), place)
    return clean(done.stdout + done.stderr)


# --- no other room names a problem


GRADER = ROOT / "grader"
# Their subject is the task itself, or CuTe's function gemm. base/gpus.json tells peaks in the units
# of data sheets, and old documents name what the only problem was.
EXEMPT = ("problems/", "labs/", "base/gpus.py", "results/ladders/", "report/products/")
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
