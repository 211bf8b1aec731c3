"""Advice on the ladder and on kernels that other people might write; the whole explanation."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec
import pytest
from markupsafe import escape
from rich.console import Console

from benchmarks.bound_corpus import patterns
from grader.backends.protocol import CaseOutcome, PlannedCase, Progress
from grader.backends.simulator.device import CpuDevice
from grader.errors import MachineError
from grader.grading import explaining as work
from grader.grading import pipeline as grading
from grader.grading import preparing
from grader.grading.pipeline import grade
from grader.hardware import gpus
from grader.labs.lab import Lab
from grader.model import Build, Verdict
from grader.performance.sass import main_loop_code
from grader.performance.structure import ffma_while_loading, waits_to_store
from grader.report import html, terminal
from tests.support.bench import bench
from tests.support.explained import LARGE, at, explained, functions, roomy, rung
from tests.support.in_turn import some
from tests.support.places import ALICE, FIXTURES, ROOT

RUNGS = sorted(file.parent for file in ROOT.glob("reference/sgemm/[0-9]*/sgemm.cu"))
SLOW = pytest.mark.slow  # beside one that gets the same advice in every run
LAST_WITH_ADVICE = "multistage"  # above it the evidence is in what the model leaves out
BEGIN_AGAIN = {
    "cute": "register_8x8",
    "cute_pipelined": "multistage",
    "one_kernel": "double_buffer",  # through registers, because cp.async cannot transpose
}  # where they take up the ladder


def number(folder: Path) -> int:
    return int(folder.name.split("_")[0])


@pytest.mark.parametrize("folder", some(RUNGS, lambda rung: rung.name))
def test_a_rung_is_advised_toward_a_later_one(folder: Path) -> None:
    """And every piece of advice names a line of the submission and a rung that exists."""
    advice = explained(folder).advice

    if number(folder) <= number(rung(LAST_WITH_ADVICE)):
        assert advice, "every rung up to this one has something to learn from the next"
    idea = folder.name.partition("_")[2]
    stands_at = number(rung(BEGIN_AGAIN.get(idea, idea)))
    for each in advice:
        assert each.rung and number(Path(each.rung)) > stands_at, each
        assert each.gain is None or each.gain > 1
        assert each.file is not None and each.line is not None
        assert (folder / each.file).read_text().splitlines()[each.line - 1].strip()


@pytest.mark.parametrize(
    ("idea", "first"),
    [
        ("naive", "tile32"),
        pytest.param("one_block", "tile32", marks=SLOW),
        ("tile32_conflicts", "tile32"),
        ("tile32", "unrolled"),
        ("unrolled", "strided_2x2"),
        pytest.param("strided_2x2", "register_4x4", marks=SLOW),
        pytest.param("register_4x4", "register_8x8", marks=SLOW),
        ("register_8x8", "float4"),
        ("float4", "transposed"),
        ("warp_tile", "register_prefetch"),
        ("register_prefetch", "double_buffer"),
        ("double_buffer", "multistage"),
    ],
)
def test_the_first_advice_is_the_next_idea(idea: str, first: str) -> None:
    assert explained(rung(idea)).advice[0].idea == first


def test_advice_carries_its_evidence() -> None:
    naive = explained(rung("naive")).advice[0]
    conflicts = explained(rung("tile32_conflicts")).advice[0]
    text = (rung("naive") / "sgemm.cu").read_text().splitlines()

    assert naive.line is not None and "A[" in text[naive.line - 1]
    assert "9 lines of 128 bytes" in str(naive.message)
    assert "32 wavefronts where 1 would do" in str(conflicts.message)
    assert "lanes 0 and 1 access words 32 apart" in str(conflicts.message)
    assert "pad each row of the tile by 1 " in str(conflicts.message)
    assert conflicts.gain == pytest.approx(15, rel=0.1)


def test_padding_is_not_advised_where_the_conflict_lies_within_a_row() -> None:
    advice = explained(ALICE).advice[0]
    text = (ALICE / "sgemm.cu").read_text().splitlines()

    assert "padding rows does not help" in str(advice.message) and "64 values apart" in str(
        advice.message
    )
    assert "none of this array's extra wavefronts remain" in str(advice.message)
    assert advice.line is not None and "&As[" in text[advice.line - 1]


def test_a_tile_that_is_m_major_already_is_not_to_be_transposed(tmp_path: Path) -> None:
    strided = next(each for each in patterns() if each.name == "m_major_ahead")
    why = explained(strided.write(tmp_path))
    said = next(each for each in why.advice if "loads of 4 bytes from shared" in str(each.message))

    assert said.idea == "float4" and "transposed" not in str(said.message)
    assert sum(each.times for each in why.counts) == 3


def test_advice_about_waiting_cites_the_issue_model() -> None:
    exposed = next(a for a in explained(rung("transposed")).advice if a.idea == "register_prefetch")
    banks = next(a for a in explained(rung("double_buffer")).advice if a.idea == "reuse_order")
    said = re.search(r"in (\d+) % of the issue model's cycles", str(banks.message))
    spent = re.search(r"spends (\d+) % of its time waiting for them", str(exposed.message))

    assert said and int(said[1]) > 10 and banks.gain is not None and 1.05 < banks.gain < 1.3
    assert spent and int(spent[1]) > 5
    assert "reuse_order" not in [each.idea for each in explained(rung("packed_bulk")).advice]


def test_what_needs_ampere_is_not_advised_for_turing() -> None:
    folder = rung("double_buffer")
    ready = at(folder, "sm_75", LARGE)
    found = preparing.explained(ready, roomy(), gpus.find("RTX 2080 Ti"))

    assert "multistage" not in [each.idea for each in found.advice]


@pytest.mark.parametrize(
    ("name", "elements"), [("cp_async_ptx", None), ("split_k_atomic", None), ("naive_swapped", 1)]
)
def test_other_kernels_are_explained_too(name: str, elements: float | None) -> None:
    found = explained(FIXTURES / "correct" / name, "sm_80")

    assert found.counts and found.bounds and found.tile
    assert elements is None or found.tile.elements == elements


def test_a_kernel_that_writes_its_inputs_is_counted() -> None:
    found = explained(FIXTURES / "broken" / "writes_input", "sm_80")

    assert found.missing is None and len(found.counts) == 2


def test_the_structure_of_a_loop() -> None:
    def loop(idea: str) -> tuple[object, ...]:
        every = [main_loop_code(function) for function in functions(rung(idea), "sm_90")]
        return max(every, key=len)

    assert ffma_while_loading(loop("transposed")) == 0  # type: ignore[arg-type]
    prefetched = ffma_while_loading(loop("register_prefetch"))  # type: ignore[arg-type]
    assert prefetched is not None and prefetched > 256
    assert waits_to_store(loop("register_prefetch"))  # type: ignore[arg-type]
    assert not waits_to_store(loop("double_buffer"))  # type: ignore[arg-type]


class SlowDevice(CpuDevice):
    """Has time for two sizes only."""

    def run(
        self,
        build: Build,
        source_root: str,
        cases: Sequence[PlannedCase],
        lab: Lab,
        progress: Progress,
    ) -> tuple[CaseOutcome, ...]:
        return super().run(build, source_root, cases[:2], lab, progress)


def test_what_is_right_but_too_slow_is_advised(monkeypatch: pytest.MonkeyPatch) -> None:
    explaining = msgspec.structs.replace(bench(), explain=True)
    monkeypatch.setattr(grading, "CpuDevice", SlowDevice)
    slow = grade(rung("one_block"), explaining, lambda _stage, _detail: None).result
    wrong = grade(FIXTURES / "broken" / "misaligned_float4", explaining, lambda _s, _d: None).result

    assert slow.verdict is Verdict.TLE and slow.explanation is not None
    assert slow.explanation.advice[0].idea == "tile32"
    assert wrong.cases[0].verdict is Verdict.AC and wrong.explanation is None


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (MachineError("the issue model stops"), "the issue model stops"),
        (OSError(28, "No space left on device"), "No space left on device; fix that and try again"),
        (KeyError("LDS"), "a fault of the grader: KeyError: 'LDS'"),
    ],
)
def test_what_cannot_be_explained_costs_no_verdict_and_is_said_everywhere(
    failure: Exception,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    def dies(*_given: Any, **_named: Any) -> Any:
        raise failure

    explaining = msgspec.structs.replace(bench(), explain=True)
    monkeypatch.setattr(work, "recall", lambda _key: None)
    monkeypatch.setattr(work, "explain_speed", dies)
    result = grade(ALICE, explaining, lambda _stage, _detail: None).result
    console = Console(file=StringIO(), width=200)
    console.print(terminal.render(result, {}))
    assert isinstance(console.file, StringIO)

    assert result.verdict is Verdict.AC and result.explanation is not None
    assert result.explanation.missing is not None and words in str(result.explanation.missing)
    assert f"Why this speed: unknown: {words}" in console.file.getvalue()
    assert f"<p>Unknown: {escape(words)}</p>" in html.render(result, {})
    assert ("Traceback" in capfd.readouterr().err) == isinstance(failure, KeyError)


def test_without_a_disassembler_a_result_says_so() -> None:
    shared = bench()
    tools = msgspec.structs.replace(shared.toolchain, nvdisasm=None)
    result = grade(
        ALICE,
        msgspec.structs.replace(shared, toolchain=tools, explain=True),
        lambda _stage, _detail: None,
    ).result

    assert result.verdict is Verdict.AC and result.explanation is not None
    assert result.explanation.missing and "no nvdisasm" in str(result.explanation.missing)


def test_a_grade_holds_the_explanation_of_a_right_kernel_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    explaining = msgspec.structs.replace(bench(), explain=True)
    plain = time.monotonic()
    grade(ALICE, bench(), lambda _stage, _detail: None)  # compiles what is compiled once
    plain = time.monotonic() - plain
    started = time.monotonic()
    with monkeypatch.context() as forgetting:
        forgetting.setattr(work, "recall", lambda _key: None)
        good = grade(ALICE, explaining, lambda _stage, _detail: None).result
    took = time.monotonic() - started - plain
    stages: list[str] = []
    again = grade(ALICE, explaining, lambda stage, _detail: stages.append(stage)).result
    bad = grade(FIXTURES / "broken" / "missing_second_sync", explaining, lambda _s, _d: None).result

    assert good.verdict is Verdict.AC and good.explanation is not None
    assert good.explanation.size == LARGE.dims and len(good.explanation.bounds) == 3
    assert again.explanation == good.explanation and "explaining" not in stages
    assert bad.verdict is not Verdict.AC and bad.explanation is None
    assert took < 10, f"the analysis took {took:.1f} s; 3 are meant, on an idle machine"
