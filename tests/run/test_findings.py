"""Kinds of findings: the enums hold exactly what is made, and documents keep their words."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

import pytest

from grader.base.finding import Kind
from grader.base.language import language
from grader.base.records import Verdict
from grader.results import store
from grader.run.simulator.simulated_calls import rejected
from ptxsim.findings import finding as simulator
from ptxsim.findings import scene
from ptxsim.findings.event_table import Event
from ptxsim.findings.finding import Access, Accessed, Finding, Severity
from ptxsim.lowering.memory_layout import too_large
from ptxsim.message import phrase
from ptxsim.outcome import Reason, RefusedProgram
from ptxsim.records import Place
from tests.support.catalogues import assert_chinese
from tests.support.results import RACE, make_result

ROOT = Path(__file__).parents[2]
THREAD = (1, 0, 0)


def named(files: Iterable[Path]) -> set[str]:
    """Members of an enum ``Kind`` that the code of these files names."""
    return {
        node.attr
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "Kind"
    }


def test_its_reasons_are_in_the_catalogues() -> None:
    assert_chinese(language("zh_CN")(rejected(too_large("gemm", phrase("predicates"))).message))


@pytest.mark.parametrize(
    ("reason", "verdict", "words"),
    [
        (Reason.UNREADABLE, Verdict.IE, "sgemm.cu:7: the grader cannot read what nvcc made of"),
        (Reason.ASSEMBLY, Verdict.CE, "sgemm.cu:7: the grader cannot read the PTX that inline"),
        (Reason.TAKEN_NAME, Verdict.CE, "sgemm.cu:7: why {}; give yours another name"),
        (Reason.UNSUPPORTED, Verdict.IE, "sgemm.cu:7: why {}; grade it on a GPU"),
        (Reason.TOO_LARGE, Verdict.IE, "sgemm.cu:7: why {}; grade it on a GPU"),
        (Reason.UNSOUND, Verdict.RE, "sgemm.cu:7: why {}"),
        (Reason.WRONG_PLAN, Verdict.RE, "sgemm.cu:7: the recorded launches do not fit"),
    ],
)
def test_the_grader_words_what_the_simulator_rejects(
    reason: Reason, verdict: Verdict, words: str
) -> None:
    refusal = RefusedProgram(reason, "why {}", (), Place(file="sgemm.cu", line=7))
    ruled = rejected(refusal)
    assert str(refusal) == "why {} (sgemm.cu:7)"
    assert ruled.verdict is verdict and str(ruled).startswith(words) and "why {}" in str(ruled)
    assert [(f.file, f.line) for f in ruled.findings] == (
        [("sgemm.cu", 7)] if reason is Reason.ASSEMBLY else []
    )


def test_every_kind_of_the_simulator_is_made_somewhere() -> None:
    assert named((ROOT / "ptxsim" / "src").rglob("*.py")) == set(simulator.Kind.__members__)


def test_every_kind_of_the_grader_is_made_somewhere() -> None:
    own = set(Kind.__members__) - set(simulator.Kind.__members__)
    assert own <= named((ROOT / "grader").rglob("*.py"))
    assert {kind.value for kind in simulator.Kind} == {
        kind.value for name, kind in Kind.__members__.items() if name not in own
    }


@pytest.mark.parametrize("event", Event)
def test_every_event_has_a_sentence(event: Event) -> None:
    found = Finding(
        kind=event.kind,
        severity=Severity.ERROR,
        place=Place(file="sgemm.cu", line=12),
        event=event,
        here=Place(file="sgemm.cu", line=12),
        there=Place(file="tile.cuh", line=3),
        block=(0, 0, 0),
        thread=THREAD,
        other_block=(0, 0, 0),
        other_thread=(2, 0, 0),
        access=Access(
            space="shared",
            address=132,
            size=4,
            write=True,
            accessed=Accessed(name="tile", start=0, size=128),
        ),
    )
    said = str(scene.sentence(found))
    assert "thread (1,0,0)" in said or "block (0,0,0)" in said
    assert "line 12" in said or "sgemm.cu:12" in said or "tile[33]" in said


def test_documents_hold_the_words_that_they_always_held(tmp_path: Path) -> None:
    path = store.save(tmp_path, make_result(findings=(RACE,)))
    assert '"kind": "race"' in path.read_text()
    assert store.load(path).findings == (RACE,)
