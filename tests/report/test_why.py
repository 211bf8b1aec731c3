"""The answers that a report gives, from real explanations."""

from __future__ import annotations

import msgspec
import pytest

from grader.base.records import Verdict
from grader.base.result import Result
from grader.labs.lab import find_lab, load_lab
from grader.report import html
from grader.report.bounds import limit, peak_sentence
from grader.report.why import answers
from ptxsim.message import verbatim
from tests.support.explained import explained, rung
from tests.support.files import values
from tests.support.pages import gpu_result, printed
from tests.support.places import ALICE, FIXTURES
from tests.support.results import RACE, RIGHT, WRONG, make_result

SOURCES = {"sgemm.cu": (ALICE / "sgemm.cu").read_text()}


def said_of(result: Result) -> dict[str, str]:
    return {str(each.question): str(each.answer) for each in answers(result)}


def test_every_thinking_question_is_answered_with_the_kernels_own_figures() -> None:
    said = said_of(make_result(explanation=explained(ALICE)))

    assert len(said) == 12
    text = " ".join(said.values())
    assert "1.1e+12" in said["How many floating-point operations?"]
    assert "Nothing was timed here" in said["What is the peak, and how near is it?"]
    assert "a tile of 128×128" in said["Which part of C does a block compute?"]
    assert "64 elements for each thread" in text
    # M·N·K·(1/128 + 1/128) elements of 4 bytes, and what the kernel was seen to ask for.
    traffic = said["How much does it read from global memory?"]
    assert "34.36 GB" in traffic and "Counted: 34.36 GB" in traffic
    assert "FFMA only" in said["Why no tensor cores?"]
    assert "None: at every branch" in said["Which branches split warps?"]
    assert "512 of them FFMA" in text


@pytest.mark.sampled
def test_a_branch_that_splits_warps_is_named_with_its_cost() -> None:
    """Half of the lanes wait in both loops, which are nearly all that the kernel executes."""
    folder = FIXTURES / "correct" / "split_warps"
    lines = (folder / "sgemm.cu").read_text().splitlines()
    branch = next(number for number, line in enumerate(lines, 1) if line.endswith("// BRANCH"))
    why = explained(folder)
    said = said_of(make_result(explanation=why))

    (counts,) = why.counts
    assert counts.splits and counts.splits[0].line == branch
    # Both are estimates from some of the blocks, on a busy machine from fewer.
    assert 0.99 < counts.splits[0].splits / counts.splits[0].reached <= 1
    assert 0.4 < counts.splits[0].lost / counts.instructions < 0.5
    words = f"sgemm.cu:{branch} splits a warp in 100 % of its executions"
    assert words in said["Which branches split warps?"]
    assert any("divergence" in str(each.message) and each.line == branch for each in why.advice)


@pytest.mark.sampled
@pytest.mark.parametrize(("lab", "words"), values(__file__, "peaks.txt"))
def test_the_peak_is_that_of_the_problem(lab: str, words: str) -> None:
    why = explained(rung("naive"))
    problem = load_lab(find_lab(lab)).problem.info()
    result = msgspec.structs.replace(gpu_result(explanation=why), problem=problem)

    assert str(peak_sentence(result, why, why.counts[0])).startswith(words)


@pytest.mark.sampled
def test_terminal_and_page_show_bound_advice_and_the_line() -> None:
    why = explained(rung("tile32_conflicts"))
    result = make_result(explanation=why)
    sources = {"sgemm.cu": (rung("tile32_conflicts") / "sgemm.cu").read_text()}
    page = html.render(result, sources)

    assert "the limit is shared memory" in printed(result)
    assert f"next: sgemm.cu:{why.advice[0].line}: Bank conflicts" in printed(result)
    assert "Why this speed, what next" in page
    assert "32 wavefronts where 1 would do" in page and "reference/" in page
    assert "this kernel: 7.98 FLOP/B" in page  # at 8192³, not at what was simulated
    assert page.count('class="marked"') >= 1


def test_a_wrong_kernel_is_told_what_to_fix_first() -> None:
    wrong = make_result(cases=(RIGHT, WRONG), verdict=Verdict.WA, findings=(RACE,))
    said = "No advice on speed before every size is right. First 4×6×5: 9 of 24 elements are wrong"
    assert f"{said}; race at sgemm.cu:3" in printed(wrong)
    assert f"{said}; race at sgemm.cu:3" in html.render(wrong, {})
    # Timed and right on the GPU; the simulator saw the race.
    lucky = msgspec.structs.replace(wrong, cases=(RIGHT,))
    assert "before every size is right. First race at sgemm.cu:3" in printed(lucky)

    slow = msgspec.structs.replace(wrong, verdict=Verdict.TLE, explanation=explained(ALICE))
    assert "No advice" not in printed(slow) + html.render(slow, {})


@pytest.mark.sampled
def test_waiting_is_named_by_its_reason() -> None:
    why = explained(rung("multistage"))
    said = said_of(make_result(explanation=why))["What limits this kernel?"]

    (bound,) = why.bounds
    assert bound.speed < bound.most.speed
    sentence = printed(make_result(explanation=why))
    assert f"at most {bound.most.speed:.4g} of " in sentence
    assert f"about {bound.speed:.3g} is expected: the limit is waiting for register" in sentence
    assert "In the issue model the schedulers issue in" in said
    assert "waiting for register banks" in said
    assert bound.waiting is not None
    stalled = msgspec.structs.replace(bound.waiting, stalls=0.9)
    said = str(limit(msgspec.structs.replace(bound, waiting=stalled)))
    assert "more independent work" in said


def test_without_an_explanation_nothing_is_said() -> None:
    result = make_result()

    assert answers(result) == ()
    assert "Why this speed" not in html.render(result, {})
    assert "next:" not in printed(result)


def test_what_is_missing_is_said_beside_the_advice_that_there_is() -> None:
    why = explained(ALICE)
    missing = msgspec.structs.replace(why, counts=(), bounds=(), missing=verbatim("too large"))
    result = make_result(explanation=missing)
    page = html.render(result, SOURCES)

    assert "unknown: too large" in printed(result)
    assert "<p>Unknown: too large</p>" in page and "padding rows does not help" in page
    assert "What limits this kernel?" not in page
