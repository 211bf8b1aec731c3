"""A result on the terminal: long tables fit it and lose no character; the curve of points."""

import re
from collections.abc import Mapping, Sequence

import msgspec
import pytest
from rich.cells import cell_len

from grader.base.finding import wrong_elements
from grader.base.language import ENGLISH
from grader.base.problem import Strip
from grader.base.records import BuildInfo, Verdict
from grader.judge import scoring
from grader.labs.lab import Case, find_lab, load_lab
from grader.labs.scoring_rules import Scoring, Stretch
from grader.report import curve, html
from grader.report import formatting as text
from grader.report.bounds import limit, peak_sentence
from grader.report.kernels import KernelRow, kernel_rows
from grader.report.tables import LongTable
from grader.report.terminal import Detail
from grader.report.why import answers
from grader.results import store
from grader.results.case import CaseResult, Run
from grader.results.result import LaunchKind, Result
from grader.results.score import Score, Share
from ptxsim.findings import kernel_name, plain_name, readable
from ptxsim.plan import Size
from ptxsim.text import Message, phrase, verbatim
from tests.support.explained import explained, rung
from tests.support.files import values
from tests.support.pages import drawn, gpu_result, printed, timed
from tests.support.places import ALICE, FIXTURES
from tests.support.results import RACE, RIGHT, WRONG, make_result

SOURCE = "line one\nline two\n\ttile[3] = x;\nline four\nline five\nline six\n"


def shown(result: Result, sources: Mapping[str, str] | None = None, width: int = 100) -> str:
    return printed(result, sources, width)


def test_an_accepted_result_is_short_and_says_that_nothing_was_timed() -> None:
    output = shown(make_result())
    assert output.startswith("alice: AC accepted")
    assert "1×1×1" in output and "sgemm<…>" in output and "96" in output and "8448" in output
    assert str(text.NO_SCORE_ON_CPU) in output
    assert len(output.splitlines()) < 15


def test_wrong_values_show_where_and_how_the_pattern_looks() -> None:
    output = shown(make_result(cases=(RIGHT, WRONG), verdict=Verdict.WA))
    assert "alice: WA wrong answer" in output
    assert "9 of 24 elements are wrong" in output
    assert "first wrong element: C[row 1, column 4] is nan, should be -1.25" in output
    assert "  ..\n  .#\n  +#" in output
    assert "each sign is 2×2 elements" in output


def test_what_wrong_elements_hold_is_drawn() -> None:
    assert WRONG.error
    strip = Strip(element="C[row 3, column 5]", operand="A·B", signs="..--2x+", edge=4)
    corner, signs = "in[row 7, column 0]", " o\n- "
    plane = Strip(element="out[row 8, column 0]", operand="in", signs=signs, edge=1, corner=corner)
    error = msgspec.structs.replace(WRONG.error, strips=(strip, plane))
    case = msgspec.structs.replace(WRONG, error=error)
    result = make_result(cases=(RIGHT, case), verdict=Verdict.WA)
    output = shown(result)
    assert "of A·B, 4 in a sign\n  ..--2x+\n" in output
    assert "of in from in[row 7, column 0] on\n   o\n  -" in output
    assert "- missing, 2 several times" in re.sub(r"\s+", " ", output)
    page = html.render(result, {})
    assert page.count('class="wrong"') > html.render(make_result(), {}).count('class="wrong"')
    assert str(text.STRIPS_DRAWN) in page


def test_a_message_stands_once_below_the_table_with_its_sizes() -> None:
    late = "endless-loop at sgemm.cu:9: did not end in time, and more words than a column holds"
    cases = [
        msgspec.structs.replace(
            WRONG, message=verbatim(late), error=None, size={"m": i, "n": 6, "k": 5}
        )
        for i in range(1, 6)
    ]
    unrun = msgspec.structs.replace(
        RIGHT, verdict=None, error=None, message=verbatim("not run: 1×6×5 did not end in time")
    )
    lines = shown(make_result(cases=(*cases, unrun), verdict=Verdict.TLE), width=80).splitlines()
    table = [line.split() for line in lines if line.endswith(("0.02", "0.01"))]
    assert table[0] == ["1×6×5", "WA", "0.02"] and table[5] == ["1×1×1", "not", "run", "0.01"]
    rest = "\n".join(lines[lines.index("", lines.index("") + 1) :])
    assert rest.startswith(
        "\n1×6×5, 2×6×5, 3×6×5 and 2 more sizes: endless-loop at sgemm.cu:9: did not end in\n"
        "time, and more words than a column holds\n"
        "1×1×1: not run: 1×6×5 did not end in time\n"
    )


def test_sizes_that_differ_in_the_count_of_wrong_elements_share_a_message() -> None:
    def racy(size: dict[str, int], wrong: int, total: int) -> CaseResult:
        words = phrase(
            "{wrong} ({cause})", wrong=wrong_elements(wrong, total), cause=verbatim("race")
        )
        return msgspec.structs.replace(WRONG, size=size, message=words)

    nan = [phrase("{count} of them still NaN", count=count) for count in (2, 3)]
    told = text.told([msgspec.structs.replace(WRONG, message=each) for each in nan])
    assert [str(each.message) for each in told] == ["some of them still NaN"]
    told = text.told([racy(WRONG.size, 9, 24), racy({"m": 8, "n": 6, "k": 5}, 3, 48), WRONG])
    assert [(str(each.sizes), str(each.message)) for each in told] == [
        ("4×6×5, 8×6×5", "elements are wrong (race)"),
        ("4×6×5", "9 of 24 elements are wrong"),
    ]


def test_messages_that_differ_in_numbers_are_told_of_the_first_size() -> None:
    def missing(k: int, wrong: int) -> CaseResult:
        words = phrase("{amount}: {cause}", amount=wrong_elements(wrong, 24), cause=edge(k))
        return msgspec.structs.replace(WRONG, size={"m": 4, "n": 6, "k": k}, message=words)

    def edge(k: int) -> Message:
        return phrase("no thread reaches rows {first} to {last}", first=k, last=2 * k)

    told = text.told([missing(5, 24), missing(7, 20), missing(9, 24)])
    assert [(str(each.sizes), str(each.message)) for each in told] == [
        (
            "4×6×5 (and with other numbers 4×6×7, 4×6×9)",
            "24 of 24 elements are wrong: no thread reaches rows 5 to 10",
        )
    ]


def test_a_finding_shows_its_line_with_two_around_it() -> None:
    output = shown(make_result(findings=(RACE,), verdict=Verdict.WA), {"sgemm.cu": SOURCE})
    assert "error: race: two threads touch tile[3] with no barrier between them" in output
    assert "sgemm.cu:3, block (1,0,0) thread (7,0,0), 12 times" in output
    lines = [line.rstrip() for line in output.splitlines() if "│" in line]
    assert lines == [
        "    1 │ line one",
        "    2 │ line two",
        "  > 3 │     tile[3] = x;",
        "    4 │ line four",
        "    5 │ line five",
    ]


def test_neighbouring_findings_of_one_kind_are_told_once() -> None:
    next_line = msgspec.structs.replace(RACE, line=4)
    far = msgspec.structs.replace(RACE, line=1)
    output = shown(make_result(findings=(RACE, next_line, far)), {"sgemm.cu": SOURCE})
    assert output.count("error: race") == 2
    assert "12 times; the same at line 4" in output
    assert "  > 3 │     tile[3] = x;\n  > 4 │ line four" in output


def test_findings_without_a_source_or_beyond_its_end_have_no_excerpt() -> None:
    beyond = msgspec.structs.replace(RACE, line=700)
    assert "│" not in shown(make_result(findings=(beyond,)), {"sgemm.cu": SOURCE})
    assert "│" not in shown(make_result(findings=(RACE,)))


def test_students_cannot_steer_the_terminal() -> None:
    evil = "\x1b]0;owned\x07\x1b[2J[bold]x[/bold]\u202e"
    finding = msgspec.structs.replace(RACE, message=verbatim(evil), line=1)
    build = BuildInfo(ok=False, command="nvcc", log=evil, seconds=1, kernels=())
    result = make_result(evil, findings=(finding,), build=build, error=verbatim(evil))
    output = shown(result, {"sgemm.cu": evil})
    assert "\x1b" not in output and "\x07" not in output and "\u202e" not in output
    assert output.count("[bold]x[/bold]") == 4


def test_a_compile_error_shows_the_compilers_words() -> None:
    log = "sgemm.cu(3): error: expected a ';'\n\n1 error detected in the compilation"
    build = BuildInfo(ok=False, command="nvcc", log=log, seconds=1, kernels=())
    result = make_result(
        build=build, cases=(), verdict=Verdict.CE, error=verbatim("sgemm.cu(3): error: …")
    )
    output = shown(result)
    assert "alice: CE compile error" in output
    assert "sgemm.cu(3): error: expected a ';'" in output
    assert str(text.NO_SCORE_ON_CPU) not in output


def test_a_very_long_log_is_cut() -> None:
    build = BuildInfo(ok=False, command="", log="x\n" * 5000, seconds=1, kernels=())
    output = shown(make_result(build=build, cases=(), verdict=Verdict.CE))
    assert "4920 more lines" in output
    assert len(output.splitlines()) < 100


def test_a_score_is_shown_in_the_judges_form() -> None:
    benches, baselines = (16.183, 16.1785, 16.1763), (18.6725, 18.7723, 18.8029)
    runs = tuple(
        Run(speed=bench, baseline_speed=cublas)
        for bench, cublas in zip(benches, baselines, strict=True)
    )
    timed = gpu_result().cases[0]
    assert timed.timing is not None
    timing = msgspec.structs.replace(timed.timing, runs=runs)
    case = msgspec.structs.replace(timed, id="performance-0", timing=timing)
    score = Score(total=86.07, max=100, policy="oj")
    output = shown(gpu_result(cases=(case,), score=score))
    assert (
        "Score 86.07 max.100 (Unweighted)\n"
        "Judgement Message:\n"
        "  1st run. bench: 16.183 TFLOPS, cublas: 18.6725 TFLOPS.\n"
        "  2nd run. bench: 16.1785 TFLOPS, cublas: 18.7723 TFLOPS.\n"
        "  3rd run. bench: 16.1763 TFLOPS, cublas: 18.8029 TFLOPS.\n"
        "  max bench: 16.183 TFLOPS, max cublas: 18.8029 TFLOPS.\n"
    ) in output
    assert "No performance score" not in output

    small = msgspec.structs.replace(
        case, id="small", size={"m": 512, "n": 512, "k": 512}, amount=2 * 512**3
    )
    shares = (Share(case="performance-0", weight=3), Share(case="small", weight=0.5))
    weighted = msgspec.structs.replace(score, shares=shares)
    output = shown(gpu_result(cases=(small, case), score=weighted))
    assert "Score 86.07 max.100 (Weighted)" in output
    assert "  512×512×512, weight 0.5:\n" in output and "  8192×8192×8192, weight 3:\n" in output
    even = tuple(Share(case=share.case, weight=1) for share in shares)
    equal = msgspec.structs.replace(score, shares=even)
    output = shown(gpu_result(cases=(small, case), score=equal))
    assert "(Unweighted)" in output and "  512×512×512:\n" in output


@pytest.mark.parametrize(("mangled", "readable"), values(__file__, "kernel_names.txt"))
def test_kernel_names_are_readable(mangled: str, readable: str) -> None:
    assert kernel_name(mangled) == readable


def test_kernel_names_of_any_kind_can_be_shown() -> None:
    assert all(map(kernel_name, (f"_Z{'9' * 5000}", f"_ZN{'0' * 5000}", f"_Z{'1a' * 5000}", "_Z٣")))
    for name in ("k" * 70_000, f"_Z70000{'k' * 70_000}v", f"_Z7000{'k' * 7000}I{'k' * 500}Ev"):
        assert max(len(kernel_name(name)), len(plain_name(name)), len(readable(name))) < 90


def test_a_narrow_terminal_is_enough() -> None:
    result = make_result(cases=(RIGHT, WRONG), findings=(RACE,), verdict=Verdict.WA)
    output = shown(result, {"sgemm.cu": SOURCE}, width=60)
    assert max(map(len, output.splitlines())) <= 60


def test_occupancy_by_block_registers_and_shared_memory() -> None:
    launch = LaunchKind(
        kernel="_Z5sgemmILi8EEvPKfS1_Pfiii",
        grid=(4, 4, 1),
        block=(16, 16, 1),
        shared_bytes=80_000,
        times=1,
    )
    build = make_result().build
    assert build
    known = msgspec.structs.replace(build, arch="sm_80")

    def rows(**changes: object) -> KernelRow:
        (row,) = kernel_rows(make_result(**{"build": known, "launches": (launch,), **changes}))
        return row

    row = rows()  # 8448 static + 80000 dynamic + 1 KiB of the system's: one fits in 164 KiB
    assert (row.block, row.shared_bytes) == ("16×16", 88_448)
    assert str(row.resident) == "8 of 64 (shared memory)"
    lean = msgspec.structs.replace(launch, shared_bytes=0)
    assert str(rows(launches=(lean,)).resident) == "16 of 64 (registers)"  # 96 × 256 threads, twice
    assert not rows(launches=()).resident
    assert not rows(build=build).resident  # written before the architecture was
    older = msgspec.structs.replace(build, arch="sm_75")  # has 64 KiB: not one block fits
    assert not rows(build=older).resident
    twice = (lean, msgspec.structs.replace(lean, block=(32, 1, 1)))
    assert len(kernel_rows(make_result(build=known, launches=twice))) == 2


# --- long tables ---------------------------------------------------------------------------------


def table(width: int) -> list[str]:
    columns = [("", True), ("student", False), ("empty", False), ("history", False)]
    long = LongTable("Board", columns, (1,), prose=3)
    long.add(["1", "zhang_san_of_a_group_of_four", "", "two days late, other lab file"])
    long.add(["12", "张三丰李四王五赵六", "", ""], "dim")
    return drawn(long, width).splitlines()


def test_columns_line_up() -> None:
    title, blank, header, rule, first, second = table(80)
    assert (title, blank) == ("Board", "")
    assert header.index("student") == first.index("zhang") == second.index("张")
    assert first.index("two days") == header.index("history")
    assert first.startswith("  1  ") and set(rule.strip()) == {"─"}


def test_a_narrow_terminal_shortens_names_and_puts_prose_below() -> None:
    """Each name keeps its line; a column where nothing stands has no header either."""
    lines = table(28)
    assert max(map(cell_len, lines)) <= 28 and len(lines) == 8
    assert lines[4:] == [
        "  1  zhang_san_of_a_group_…",
        *("    two days late, other lab", "    file"),
        " 12  张三丰李四王五赵六",
    ]
    assert "empty" not in "".join(lines)


# --- the curve


SHIPPED = load_lab(find_lab("sgemm-curve")).scoring


def result(rules: Scoring, *speeds: tuple[int, float]) -> Result:
    """Timed sizes of these edges, beside a baseline of 50 TFLOPS."""
    cases = [
        Case(id=f"performance-{edge}", size=Size.of(m=edge, n=edge, k=edge)) for edge, _ in speeds
    ]
    results = tuple(timed(edge, speed, 50.0) for edge, speed in speeds)
    times = {each.id: each.timing for each in results}
    score = scoring.score(Verdict.AC, cases, times, rules)
    return gpu_result(cases=results, score=score)


def test_the_next_points_of_the_published_rule() -> None:
    """100·ratio: five points are five hundredths of cuBLAS."""
    shown = result(Scoring(), (8192, 40.0))
    assert "The next 5 points, to 85.00: 42.5 TFLOPS at 8192×8192×8192, 2.5 more" in printed(shown)


@pytest.mark.parametrize(("speed", "speeds_for"), values(__file__, "next_points.txt"))
def test_the_next_points_of_the_shipped_curve(speed: float, speeds_for: float) -> None:
    shown = result(SHIPPED, (8192, speed))
    ahead = curve.next_points(shown)
    assert ahead is not None and shown.score is not None
    pieces = scoring.beside_the_baseline(SHIPPED).pieces
    there = scoring.points_at(pieces, ahead.speed / 50)
    assert there == pytest.approx(min(shown.score.total + 5, 120), abs=0.01)
    assert ahead.speed == pytest.approx(speeds_for, rel=0.001)


def test_the_roofline_is_named_where_points_follow_it() -> None:
    """On the terminal, on the page and in the judge's words, with the baseline beside it."""
    sized = Case(id="performance-8192", size=Size.of(m=8192, n=8192, k=8192))
    roof = Stretch(name="half", to=0.5, points=60)
    rules = Scoring(policy="curve", measure="roofline", pieces=(roof,))
    lab = msgspec.structs.replace(load_lab(), scoring=rules, performance=(sized,))
    case = timed(8192, 16.725, 50.0)
    by = scoring.measures(lab, "NVIDIA H200", ())
    score = scoring.score(Verdict.AC, (sized,), {case.id: case.timing}, rules, by)
    result = gpu_result(cases=(case,), score=score)
    said, page = printed(result), html.render(result, {})
    assert "25.0 % of the roofline, 66.9082 TFLOPS: points follow this share" in said
    assert "0.3345 of cuBLAS" in said and "25.0 % of the roofline (66.9 TFLOPS)" in said
    assert "of the roofline</th>" in page and "as a share of the roofline" in page
    assert "The next 5 points, to 35.00: 19.5" in said


def test_several_sizes_get_faster_together() -> None:
    shown = result(Scoring(), (4096, 20.0), (8192, 30.0))  # 40 and 60 points
    said = str(curve.next_sentence(shown))
    assert "33 TFLOPS at 8192×8192×8192, 3 more than now, and the same 10.0 % at the other" in said


def test_there_is_an_end() -> None:
    shown = result(SHIPPED, (8192, 80.0))
    assert curve.next_points(shown) is None
    assert "no more points to gain: 120 are the most" in str(curve.next_sentence(shown))
    assert not curve.next_sentence(gpu_result(total=None))


def test_the_page_draws_the_curve_with_the_submission_on_it() -> None:
    shown = result(SHIPPED, (4096, 37.5), (8192, 25.0))
    page = html.render(shown, {})
    assert page == html.render(shown, {})
    assert all(f">{piece.name}</text>" in page for piece in SHIPPED.pieces)
    picture = page[page.index("The curve of points") :]
    picture = picture[: picture.index("</svg>")]
    assert "4096×4096×4096: 72.83 points; 8192×8192×8192: 60.00 points" in picture
    path = re.search(r'polyline points="([^"]+)"', picture)
    assert path is not None
    line = [tuple(map(float, each.split(","))) for each in path[1].split()]
    assert [x for x, _ in line] == sorted(x for x, _ in line)
    assert [y for _, y in line] == sorted((y for _, y in line), reverse=True)
    own = re.findall(r'cx="([\d.]+)" cy="([\d.]+)" r="5" class="point"', picture)
    # 120 points are the top, at y = 16, and none the bottom, at 216.
    heights = sorted(216 - float(y) for _, y in own)
    assert heights == pytest.approx([100, 200 * 72.83 / 120], abs=0.1)
    assert "The next 5 points" in page


def test_older_documents_have_no_curve() -> None:
    assert curve.pictures(gpu_result(), ENGLISH) == ()
    bare = msgspec.structs.replace(gpu_result(), score=None)
    assert "The curve of points" not in html.render(bare, {})


# --- why this speed


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


def test_a_problem_of_a_courses_own_gets_no_figure_of_a_shipped_one() -> None:
    result = make_result(explanation=explained(ALICE))
    own = msgspec.structs.replace(result.problem, name="ours")
    said = said_of(msgspec.structs.replace(result, problem=own))
    assert "FFMA only" in said["Why no tensor cores?"]
    assert said["Why no tensor cores?"] != said_of(result)["Why no tensor cores?"]


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

    assert str(peak_sentence(result, why)).startswith(words)


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


# By level: what a hint says of this kernel, and what it does not.
HINTS: Mapping[Detail, Sequence[str]] = {
    "1": (
        "next: sgemm.cu:{line}: Look here: on H200 the limit is shared memory.",
        "Bank conflicts",
    ),
    "2": ("next: sgemm.cu:{line}: Bank conflicts: ", "grade rung"),
    "3": ("To see it: grade rung sgemm/", "This lab"),
}


@pytest.mark.parametrize("level", HINTS)
def test_a_hint_says_no_more_than_its_level(level: Detail) -> None:
    why = explained(rung("tile32_conflicts"))
    words, more = (each.format(line=why.advice[0].line) for each in HINTS[level])
    said = printed(make_result(explanation=why), detail=level)
    assert words in said and more not in said and "all advice" not in said
    assert f"{words}\n" in said or level != "1"


@pytest.mark.parametrize(
    ("withheld", "given"), [({"advice": None}, "1"), ({"rungs": "2026-04-01T00:09+08:00"}, "12")]
)
def test_no_hint_says_what_the_lab_withholds(withheld: dict[str, str | None], given: str) -> None:
    why = explained(rung("tile32_conflicts"))
    left = tuple(msgspec.structs.replace(each, rung=None) for each in why.advice)
    left = () if "advice" in withheld else left
    why = msgspec.structs.replace(why, advice=left, withheld=withheld)
    result = make_result(explanation=why)
    for level in HINTS:
        said = printed(result, detail=level).splitlines()
        refused = [each for each in said if each.startswith("next: This lab ")]
        assert len(refused) == (level not in given)
        when = "shows rungs of the ladder from 2026-04-01T00:09+08:00 on."
        assert all(each.endswith(("does not show the model's ideas.", when)) for each in refused)
    content = store.encode(result).decode() + html.render(result, {}) + printed(result)
    assert ("Bank conflicts" in content, "sgemm/" in content) == ("advice" not in withheld, False)


def test_a_page_answers_no_questions_where_the_lab_withholds_that() -> None:
    why = msgspec.structs.replace(explained(ALICE), withheld={"answers": None})
    assert answers(make_result(explanation=why)) == ()


def test_who_is_wrong_gets_no_hint_at_speed() -> None:
    wrong = make_result(cases=(RIGHT, WRONG), verdict=Verdict.WA, findings=(RACE,))
    assert "No advice on speed before every size is right." in printed(wrong, detail="2")
    said = printed(make_result(), detail="3")
    assert "next: The speed is not explained here; grade explains it." in said


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
    low, high = bound.expected
    words = f"{low:.3g} to {high:.3g} is expected: the limit is waiting for register"
    assert low < bound.speed < high and words in sentence
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
