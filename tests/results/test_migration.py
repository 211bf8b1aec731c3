"""Documents that older graders wrote still load, show, rank and export.

``v5-right-cpu.json`` and ``v5-wrong-cpu.json`` are grades by the grader of 2026-11-21,
``v5-timed-gpu.json`` is what it wrote of made-up times, ``v1-ladder.json`` what it measured on an
H200.
"""

from __future__ import annotations

import json
import shutil
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from grader.course.leaderboard.ranking import make_boards, read_entries
from grader.errors import StoreError
from grader.ladder import ladder_render
from grader.ladder.document import load_ladder
from grader.language import language
from grader.model import SCHEMA_VERSION, Result, Verdict
from grader.report import html, terminal
from grader.report.formats.gradescope import gradescope
from grader.results import store

DOCUMENTS = Path(__file__).parent / "documents"


def old(name: str) -> Result:
    path = DOCUMENTS / f"v5-{name}.json"
    assert json.loads(path.read_bytes())["version"] == 5
    return store.load(path)


def shown(result: Result) -> str:
    text = StringIO()
    Console(file=text, width=120).print(terminal.render(result, {}))
    return text.getvalue()


def test_a_grade_without_a_gpu() -> None:
    result = old("right-cpu")
    assert (result.version, result.verdict) == (SCHEMA_VERSION, Verdict.AC)
    largest = max(result.cases, key=lambda case: case.amount)
    assert (largest.size, largest.amount) == ({"m": 256, "n": 128, "k": 64}, 2 * 256 * 128 * 64)
    why = result.explanation
    assert why and why.size == {"m": 8192, "n": 8192, "k": 8192}
    assert (why.operations, why.bytes) == (2 * 8192**3, 3 * 4 * 8192**2)
    assert why.bounds[0].peak > 60 and why.bounds[0].limits[0].speed > 1
    assert "2·M·N·K = 1.1e+12 at 8192×8192×8192" in html.render(result, {})
    assert "TFLOPS at 8192×8192×8192" in shown(result)


def test_a_wrong_one() -> None:
    result = old("wrong-cpu")
    wrong = next(case for case in result.cases if case.size == {"m": 129, "n": 65, "k": 33})
    assert wrong.error and wrong.error.first_mismatch
    assert (wrong.error.operand, wrong.error.shape) == ("C", (129, 65))
    assert wrong.error.first_mismatch.element == "C[row 128, column 0]"
    assert "C of 130×70×100; each sign is 8×8 elements" in shown(result)
    assert "Where C is wrong" in html.render(result, {})


def test_a_timed_one() -> None:
    result = old("timed-gpu")
    text = shown(result)
    assert "max cublas: 50.2 TFLOPS." in text
    assert "of cuBLAS at 8192×8192×8192: between rung" in " ".join(text.split())
    assert "Speed beside cuBLAS" in html.render(result, {})
    scores = json.loads(gradescope(result))
    assert [row["name"] for row in scores["leaderboard"]] == [
        *("score", "TFLOPS 8192×8192×8192", "TFLOPS 4096×4096×4096"),
    ]


def test_old_and_new_ones_rank_together(tmp_path: Path) -> None:
    folder = tmp_path / "sgemm" / "alice"
    folder.mkdir(parents=True)
    shutil.copy(DOCUMENTS / "v5-timed-gpu.json", folder / "old-gpu.json")
    store.write_document(tmp_path / "sgemm" / "bob" / "new-gpu.json", old("timed-gpu"))
    entries, complaints = read_entries(tmp_path)
    assert not complaints
    (board,) = make_boards(entries)
    assert (board.rows[0].kind, board.rows[0].speed) == ("baseline", 50.2)
    assert (board.unit, board.baseline) == ("TFLOPS", "cuBLAS")


def test_a_ladder() -> None:
    ladder = load_ladder(DOCUMENTS / "v1-ladder.json")
    assert ladder.sizes[-1] == {"m": 8192, "n": 8192, "k": 8192}
    assert 45 < (ladder.baseline(ladder.sizes[-1]) or 0) < 60
    assert "% of cuBLAS" in ladder_render.html(ladder)


@pytest.mark.parametrize("name", ["cases", "explanation"])
def test_a_damaged_old_one_is_named(name: str, tmp_path: Path) -> None:
    document = json.loads((DOCUMENTS / "v5-right-cpu.json").read_bytes())
    document[name] = [{"id": "x"}] if name == "cases" else {"size": [1, 2]}
    path = tmp_path / "x.json"
    path.write_text(json.dumps(document))
    with pytest.raises(StoreError, match=r"x\.json: damaged result document"):
        store.load(path)


def test_plain_english_of_version_6_becomes_messages() -> None:
    """``v6-wrong-cpu.json`` is a grade of 2026-11-22, the last with plain sentences."""
    path = DOCUMENTS / "v6-wrong-cpu.json"
    document = json.loads(path.read_bytes())
    result = store.load(path)
    assert (document["version"], result.version) == (6, SCHEMA_VERSION)
    for case, before in zip(result.cases, document["cases"], strict=True):
        assert str(case.message) == before["message"]
    output = StringIO()
    Console(file=output, width=120).print(terminal.render(result, {}, language("zh_CN")))
    assert "2210 个元素中有 2209 个错误: the last 3 of K = 67 terms" in output.getvalue()
