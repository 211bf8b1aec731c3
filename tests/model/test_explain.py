"""Advice on the ladder and on kernels that other people might write; the whole explanation."""

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import msgspec
import pytest
from markupsafe import escape

from benchmarks.bound_corpus import SMALL, TUNED, Source, patterns
from grader.base import gpus
from grader.base.errors import MachineError
from grader.base.records import Verdict
from grader.build.building import Build
from grader.build.sass import SassInstruction
from grader.judge import pipeline as grading
from grader.judge.pipeline import grade
from grader.labs.lab import Case
from grader.model import advice, records
from grader.model.advice import with_host_calls
from grader.model.facts import SENTENCES, waits_to_store, work_while_loading
from grader.model.main_loop import main_loop_code
from grader.problems.problem import ADVICE, RULES
from grader.report import html
from grader.report.bounds import limit
from grader.run.protocol import CaseOutcome, PlannedCase, quietly
from grader.run.simulator.device import CpuDevice
from grader.study import explain_program, explaining, grade_and_explain
from ptxsim.plan import Allocate, Free, Operation, Place, Plan, Size, Synchronise
from tests.support.bench import bench, of_lab
from tests.support.explained import LARGE, at, explained, functions, rung
from tests.support.files import beside, table
from tests.support.pages import printed, standing_at
from tests.support.places import ALICE, FIXTURES, ROOT
from tests.support.results import NOTHING_KNOWN, make_result

RUNGS = sorted(file.parent for file in ROOT.glob("reference/sgemm/[0-9]*/sgemm.cu"))
LAST_WITH_ADVICE = "multistage"  # above it the evidence is in what the model leaves out
BEGIN_AGAIN = {
    "cute": "register_8x8",
    "cute_pipelined": "multistage",
    "one_kernel": "double_buffer",  # through registers, because cp.async cannot transpose
}  # where they take up the ladder


def test_problems_know_the_rules_by_name() -> None:
    assert all(map(advice._rule, ADVICE))
    reasons = {*records._REASONS, "waiting", "latency", "atomics", *resources()}
    assert {cause for causes in ADVICE.values() for cause in causes} <= reasons
    assert RULES["shown-by"].keys() <= set(SENTENCES.names("title"))


def resources() -> set[str]:
    return {"issue", "FP32", "tensor cores", "shared memory", "L1", "L2", "DRAM"}


def known(size: Size = LARGE) -> dict[str, records.KnownRung]:
    """The ladder's rungs on an H200."""
    card = gpus.find("H200")
    return {each.name: each for each in explaining.known_rungs(bench(), size.dims, card)}


def test_the_measured_ladder_and_the_headers_say_which_rungs_pay() -> None:
    pays = {name.partition("_")[2]: each.pays for name, each in known().items()}

    assert pays["transposed"] and pays["register_8x8"] and pays["rasterised"]  # 0.1 % slower
    assert not any(pays[trap] for trap in ("float4", "double_buffer", "column_per_thread"))
    assert not pays["one_kernel"], "no trap by its header, but measured 5 % slower"
    small = known(Size.of(m=1024, n=1024, k=1024))
    assert not small["sgemm/15_register_8x8"].pays, "blocks of 128×128 leave multiprocessors idle"
    other = next(explaining.known_rungs(bench(), {"m": 5, "n": 5, "k": 5}, None))
    assert other.name == "sgemm/01_naive" and other.gain is None


def number(folder: Path) -> int:
    return int(folder.name.split("_")[0])


@pytest.mark.sampled
@pytest.mark.parametrize(
    "folder",
    [
        pytest.param(each, id=each.name, marks=pytest.mark.nightly if long else [])
        for each in RUNGS
        for long in ["_cute" in each.name or each.name.endswith("_dispatch")]  # to compile
    ],
)
def test_a_rung_is_advised_toward_a_later_one(folder: Path) -> None:
    """And every piece of advice names a line of the submission and a rung that exists."""
    advice = explained(folder).advice

    if number(folder) <= number(rung(LAST_WITH_ADVICE)):
        assert advice, "every rung up to this one has something to learn from the next"
    idea = folder.name.partition("_")[2]
    stands_at = number(rung(BEGIN_AGAIN.get(idea, idea)))
    for each in advice:
        assert each.rung and number(Path(each.rung)) > stands_at, each
        assert known()[each.rung].pays, f"{each.idea} leads to a trap, or to a slower rung"
        assert each.gain is None or each.gain > 1
        assert each.file is not None and each.line is not None
        assert (folder / each.file).read_text().splitlines()[each.line - 1].strip()


@pytest.mark.sampled
@pytest.mark.parametrize(("idea", "first"), table(__file__, "first_advice.txt"))
def test_the_first_advice_is_the_next_idea(idea: str, first: str) -> None:
    assert explained(rung(idea)).advice[0].idea == first


def test_the_first_advice_addresses_the_limit_of_the_report() -> None:
    """On the first GPU, which is the lab's and the one that every command speaks of."""
    found = explained_on_cpu(rung("unrolled"))
    first = found.bounds[0]

    assert [each.gpu for each in found.bounds] == [each.name for each in gpus.shown("sm_80")]
    assert first.gpu == gpus.standing_for("sm_80").name == "A100 80GB PCIe"
    assert not ADVICE[found.advice[0].rule].isdisjoint(first.causes)
    waiting = msgspec.structs.replace(
        NOTHING_WAITS, stalls=0.1, shared_loads=0.2, global_loads=0.05, fp32=0.6
    )
    waits = msgspec.structs.replace(first, resource="waiting", waiting=waiting)
    assert waits.causes == ("shared_loads", "stalls")
    assert str(limit(waits)) == "waiting for loads from shared memory"


def explained_on_cpu(folder: Path, size: Size = LARGE) -> records.Explanation:
    return explain_program(at(folder, "sm_80", size), None)


NOTHING_WAITS = records.Waiting(**dict.fromkeys(records.Waiting.__struct_fields__, 0.0))


@pytest.mark.parametrize(
    ("edge", "name"), [(4096, "small-tile"), (1024, "small-tile-alone")], ids=str
)
def test_a_small_tile_that_waits_is_told_of_a_larger_one_and_deeper_steps(
    edge: int, name: str, tmp_path: Path
) -> None:
    """Not of its bank conflicts; where a grid of larger tiles is too small, only of steps."""
    (tmp_path / "sgemm.cu").write_text(beside(__file__, "tile64.cu.in", depth=8, side=8))
    found = explained_on_cpu(tmp_path, Size.of(m=edge, n=edge, k=edge))
    said = [each for each in found.advice if each.rule == "small-tile"]
    rest = [each.rule for each in found.advice if each.rule != "tail"]

    assert not {"latency", "stalls"}.isdisjoint(found.bounds[0].causes)
    assert rest[0] == "small-tile" and "a tile of C some 64 wide" in str(said[0].message)
    assert said[0].message.text == SENTENCES.say(f"rule.{name}").text
    assert ("128×128" in str(said[0].message)) == (edge == 4096)
    assert "fewer, deeper steps along K" in str(said[0].message)
    assert "small-tile" not in [each.rule for each in explained(rung("register_8x8")).advice]


@pytest.mark.sampled
def test_advice_carries_its_evidence() -> None:
    naive = explained(rung("naive")).advice[0]
    conflicts = explained(rung("tile32_conflicts")).advice[0]
    text = (rung("naive") / "sgemm.cu").read_text().splitlines()

    assert naive.line is not None and "A[" in text[naive.line - 1]
    assert "9 lines of 128 bytes" in str(naive.message)
    assert "rows padded by 1" in str(naive.message)
    assert "32 wavefronts where 1 would do" in str(conflicts.message)
    assert "lanes 0 and 1 access words 32 apart" in str(conflicts.message)
    assert "pad each row of the tile by 1 " in str(conflicts.message)
    assert conflicts.gain == pytest.approx(15, rel=0.1)


ACCESSES = {  # rung: what a warp does at the line that moves most bytes; wanted is the least
    "naive": ("A[i * size_t(k) + p]", True, 16, 2, [*range(16)] * 2),
    "coalesced": ("A[i * size_t(k) + p]", True, 32, 4, [*range(32)]),
    "tile32_conflicts": ("As[", False, 32, 1, [32 * lane for lane in range(32)]),
    "tile32": ("As[", False, 1, 1, None),
}


@pytest.mark.parametrize("name", ACCESSES)
def test_the_lines_that_move_most_bytes_are_drawn(name: str) -> None:
    words, in_global, cost, least, lanes = ACCESSES[name]
    first, *others = explained(rung(name)).accesses
    text = (rung(name) / "sgemm.cu").read_text().splitlines()

    assert first.line and words in text[first.line - 1]
    assert (first.in_global, first.cost, first.least) == (in_global, cost, least)
    assert lanes is None or [*first.lanes] == lanes
    assert first.share > 0.9 and 1 <= len(others) <= 2
    assert all(each.share < 0.1 and each.least <= each.cost for each in others)


def test_what_lanes_access_is_drawn_on_page_and_terminal() -> None:
    coalesced = explained(rung("naive")).accesses[1]  # the store of C, by half a warp for a column
    assert (coalesced.cost, coalesced.least) == (4, 4)
    assert [*coalesced.lanes] == [lane // 8 for lane in range(32)]
    result = make_result(explanation=explained(rung("tile32_conflicts")))
    said, page = printed(result, detail="accesses"), html.render(result, {})
    words = "wavefronts for each request: 32, without bank conflicts 1; "
    assert words in said and f"<figcaption>sgemm.cu:27: {words}" in page
    assert "banks of lanes  0 to 15:" + "  0" * 16 in said
    assert "banks of lanes 16 to 31: 16 17 18 19 20 21 22 23" in said  # of a store, beside it
    assert page.count('class="wrong"') == 2 * 32  # the advice's picture, too
    result = make_result(explanation=explained(rung("naive")))
    said, page = printed(result, detail="accesses"), html.render(result, {})
    assert "sectors of lanes 16 to 31:  2  2  2  2  2  2  2  2  3" in said
    assert "sectors of 32 bytes for each request: 16, needed 2; 100 % of" in page
    assert "sectors of lanes" not in printed(result) + printed(result, detail="brief")


def test_padding_is_not_advised_where_the_conflict_lies_within_a_row() -> None:
    advice = next(each for each in explained(ALICE).advice if each.rule == "bank-conflicts")
    text = (ALICE / "sgemm.cu").read_text().splitlines()

    said = str(advice.message)
    assert "padding rows does not help" in said and "64 values apart" in said
    assert "none of this array's extra wavefronts remain" in said
    assert advice.line is not None and "&As[" in text[advice.line - 1]


@pytest.mark.sampled
def test_a_tile_that_is_m_major_already_is_not_to_be_transposed(tmp_path: Path) -> None:
    strided = next(each for each in patterns("sgemm") if each.name == "m_major_ahead")
    why = explained(strided.write(tmp_path))
    said = next(each for each in why.advice if "loads of 4 bytes from shared" in str(each.message))

    assert said.idea == "float4" and "transposed" not in str(said.message)
    assert sum(each.times for each in why.counts) == 3


@pytest.mark.sampled
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
    found = explain_program(ready, gpus.find("RTX 2080 Ti"))

    assert "multistage" not in [each.idea for each in found.advice]


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("name", "elements"), [("cp_async_ptx", None), ("split_k_atomic", None), ("naive_swapped", 1)]
)
def test_other_kernels_are_explained_too(name: str, elements: float | None) -> None:
    found = explained(FIXTURES / "correct" / name, "sm_80")

    assert found.counts and found.bounds and found.tile
    assert elements is None or found.tile.elements == elements


def test_a_kernel_that_writes_its_inputs_is_counted() -> None:
    assert len(explained(FIXTURES / "broken" / "writes_input", "sm_80").counts) == 2


def test_the_structure_of_a_loop() -> None:
    def loop(idea: str) -> tuple[SassInstruction, ...]:
        return max(map(main_loop_code, functions(rung(idea), "sm_90")), key=len)

    def ffma(idea: str) -> int | None:
        return work_while_loading(loop(idea), lambda item: item.base == "FFMA")

    prefetched = ffma("register_prefetch")
    assert ffma("transposed") == 0 and prefetched is not None and prefetched > 256
    assert waits_to_store(loop("register_prefetch"))
    assert not waits_to_store(loop("double_buffer"))


class SlowDevice(CpuDevice):
    """Has time for two sizes only."""

    def run(
        self, build: Build, root: str, cases: Sequence[PlannedCase], *more: Any, **named: Any
    ) -> tuple[CaseOutcome, ...]:
        return super().run(build, root, cases[:2], *more, **named)


@pytest.mark.sampled
def test_what_is_right_but_too_slow_is_advised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grading, "CpuDevice", SlowDevice)
    slow = grade_and_explain(rung("one_block"), bench(), quietly).result
    wrong = grade_and_explain(FIXTURES / "broken" / "misaligned_float4", bench(), quietly).result

    assert slow.verdict is Verdict.TLE and slow.explanation is not None
    assert slow.explanation.advice[0].idea == "tile32"
    assert wrong.cases[0].verdict is Verdict.AC and wrong.explanation is None


@pytest.mark.sampled
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
    dies = Mock(side_effect=failure)
    monkeypatch.setattr(explaining, "recall", lambda *_: None)
    monkeypatch.setattr("grader.model.explain_speed", dies)
    result = grade_and_explain(ALICE, bench(), quietly).result

    assert result.verdict is Verdict.AC and result.explanation is not None
    assert result.explanation.missing is not None and words in str(result.explanation.missing)
    assert f"Why this speed: unknown: {words}" in printed(result)
    assert f"<p>Unknown: {escape(words)}</p>" in html.render(result, {})
    assert ("Traceback" in capfd.readouterr().err) == isinstance(failure, KeyError)


def test_without_a_disassembler_a_result_says_so() -> None:
    tools = msgspec.structs.replace(bench().toolchain, nvdisasm=None)
    without = msgspec.structs.replace(bench(), toolchain=tools)
    result = grade_and_explain(ALICE, without, quietly).result

    assert result.verdict is Verdict.AC and result.explanation is not None
    assert result.explanation.missing and "no nvdisasm" in str(result.explanation.missing)


def test_kernels_of_too_many_branches_are_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explaining, "recall", lambda *_: None)
    monkeypatch.setattr("grader.model.explanation._MOST_WORK", 1)
    result = grade_and_explain(ALICE, bench(), quietly).result

    assert result.verdict is Verdict.AC and result.explanation is not None
    assert "too many branches" in str(result.explanation.missing)


@pytest.mark.sampled
def test_a_grade_holds_the_explanation_of_a_right_kernel_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = time.monotonic()
    grade(ALICE, bench(), quietly)  # compiles what is compiled once
    plain = time.monotonic() - plain
    started = time.monotonic()
    with monkeypatch.context() as forgetting:
        forgetting.setattr(explaining, "recall", lambda *_: None)
        good = grade_and_explain(ALICE, bench(), quietly).result
    took = time.monotonic() - started - plain
    stages: list[str] = []
    again = grade_and_explain(ALICE, bench(), lambda stage, _words: stages.append(stage)).result
    bad = grade_and_explain(FIXTURES / "broken" / "missing_second_sync", bench(), quietly).result

    assert good.verdict is Verdict.AC and good.explanation is not None
    assert good.explanation.size == LARGE.dims and len(good.explanation.bounds) == 3
    assert again.explanation == good.explanation and "explaining" not in stages
    assert bad.verdict is not Verdict.AC and bad.explanation is None
    assert took < 10, f"the analysis took {took:.1f} s; 3 are meant, on an idle machine"


def test_a_grade_holds_no_help_that_its_lab_withholds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grading, "standing", lambda *_: standing_at(0.86))
    graded = grade_and_explain(ALICE, bench(), quietly).result
    full = graded.explanation
    lab = of_lab(bench(), advice="hide", answers="hide")
    found = grade_and_explain(ALICE, lab, quietly).result.explanation
    assert full and found and full.advice and not full.withheld
    assert (found.advice, found.withheld) == ((), {"advice": None, "answers": None})
    graded_so = grade_and_explain(ALICE, of_lab(bench(), rungs="hide"), quietly).result
    found = graded_so.explanation
    assert graded.standing and graded_so.standing is None
    assert found and [each.message for each in found.advice] == [e.message for e in full.advice]
    assert any(each.rung for each in full.advice) and not any(each.rung for each in found.advice)


# --- the corpus of benchmarks.estimates: every pattern is right ----------------------------------

PATTERNS = tuple(each for family in TUNED for each in patterns(family))


def test_there_are_120_patterns_of_different_names() -> None:
    assert len({(each.family, each.name) for each in PATTERNS}) == len(PATTERNS) >= 120


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param(each, id=each.name, marks=[] if place % 20 == 0 else [pytest.mark.nightly])
        for place, each in enumerate(PATTERNS)
    ],
)
def test_a_pattern_is_right(pattern: Source, tmp_path: Path) -> None:
    if pattern.name.startswith("cute") and bench().toolchain.cutlass_include is None:
        pytest.skip("needs the CUTLASS headers: pip install nvidia-cutlass")
    context = pattern.context()
    lab = msgspec.structs.replace(context.lab, cpu=(Case(id="cpu-1", size=SMALL[pattern.family]),))
    graded = grade(
        pattern.write(tmp_path), msgspec.structs.replace(context, lab=lab), lambda _s, _d: None
    )

    said = [str(graded.result.error), *(str(each.message) for each in graded.result.findings)]
    assert graded.result.verdict is Verdict.AC, said


# --- host calls ----------------------------------------------------------------------------------

SIZE = Size.of(m=1024, n=1024, k=1024)
AT = Place(file="sgemm.cu", line=12)
WORKSPACE = (
    Allocate(allocation=3, place=AT),
    Allocate(allocation=4),
    Free(allocation=3),
    Free(allocation=4),
)


def said(operations: tuple[Operation, ...], host_ms: float | None) -> list[tuple[str, str]]:
    plan = Plan(size=SIZE, allocations=(), operations=operations)
    device_ms = None if host_ms is None else 2.0
    found = with_host_calls(NOTHING_KNOWN, plan, device_ms, host_ms, ratio=0.5).advice
    assert all((each.file, each.line) == (AT.file, AT.line) for each in found)
    return [(each.idea, str(each.message)) for each in found]


def test_advice_says_what_keeping_the_workspace_brings() -> None:
    ((idea, words),) = said(WORKSPACE, host_ms=1.0)
    assert idea == "host_calls"
    assert "allocates 2× and frees 2×, which takes 1 ms on top of 2 ms" in words
    assert "keep the memory in a static pointer" in words
    assert words.endswith("the ratio would be about 0.75 instead of 0.50")


def test_who_only_waits_is_not_told_to_keep_memory() -> None:
    ((_, words),) = said((Synchronise(place=AT),), host_ms=1.0)
    assert words.startswith("every call waits for the device 1×, which takes 1 ms")
    assert "remove the synchronization; the caller waits" in words and "memory" not in words


@pytest.mark.parametrize("host_ms", [None, 0.0, 0.03])
def test_nothing_is_said_of_calls_that_cost_little_or_were_not_measured(
    host_ms: float | None,
) -> None:
    assert said(WORKSPACE, host_ms) == []
