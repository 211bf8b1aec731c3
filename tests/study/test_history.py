"""The versions of a kernel, told from stored results and the sources kept beside them."""

from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from grader.base.errors import MachineError
from grader.base.language import language
from grader.base.records import Verdict
from grader.cli.entry import main
from grader.judge.program import Program
from grader.labs.submission import load_submission
from grader.model.advice import advice_title
from grader.model.records import Bound, Limit
from grader.report import html as report
from grader.report import terminal as report_terminal
from grader.report.questions import redundancy
from grader.report.why import answers
from grader.results import store
from grader.results.entries import kept_sources, profile_path, read_index, stored_profile
from grader.results.ladders import shipped_ladders
from grader.results.profile import Profile, ProfileDocument, ProfiledSide
from grader.run.gpu.messages import Watching
from grader.study import explain_program
from grader.study.history import make_history
from grader.study.history_render import climb, headings, html, markdown, notes, terminal
from grader.study.profiler import ProfiledJob, dealt_out, read
from grader.study.profiling import WatchedKernel, figures, make_document
from grader.study.sweep import _bounds
from grader.study.versions import _diff, read_versions
from ptxsim import Declarations
from ptxsim.plan import Launch, Plan, Size
from tests.support.bench import bench
from tests.support.boards import CONFLICTS, FIRST, climbing, version
from tests.support.explained import LARGE, at, built, explained, rung
from tests.support.files import beside
from tests.support.files import table as table_of
from tests.support.pages import drawn
from tests.support.places import ALICE, ROOT
from tests.support.product import GEMM_REF, MAIN, shipped_ladder
from tests.support.results import NOTHING_KNOWN, make_result


def test_every_version_is_told_with_what_changed_and_which_advice_was_followed(
    tmp_path: Path,
) -> None:
    history = climbing(tmp_path)
    first, second, third = history.versions

    assert [each.verdict for each in history.versions] == [Verdict.AC, Verdict.AC, Verdict.CE]
    assert second.diff is not None and (second.diff.added, second.diff.removed) == (2, 1)
    assert [each.idea for each in second.followed] == ["tile32"]
    assert second.became == pytest.approx(2)
    assert first.speed and second.speed and second.speed.value > first.speed.value
    said = [str(each) for each in notes(second)]
    assert "registers 40 → 96" in said
    title = advice_title(second.followed[0])
    assert title != advice_title(CONFLICTS), "both lead to one rung"
    assert f"advice followed: {title} (the model said 2 times as fast)" in said
    assert third.speed is None, "a version that does not compile has no speed"


def test_the_ladder_of_the_same_gpu_and_size_stands_beside_it(tmp_path: Path) -> None:
    history = climbing(tmp_path)
    ladder = shipped_ladder()

    assert history.size == {"m": 8192, "n": 8192, "k": 8192}
    assert len(history.rungs) == sum(step.at(history.size) is not None for step in ladder.steps)
    picture = climb(history)
    assert picture is not None and "version 2" in picture and "cuBLAS" in picture
    assert picture.count("<circle") == 2
    chinese = climb(history, language("zh_CN"))
    assert chinese is not None and "版本 2：" in chinese and "峰值" in chinese
    assert "version" not in chinese and "peak" not in chinese


def test_a_source_that_changed_or_was_not_kept_is_said_not_guessed(tmp_path: Path) -> None:
    history = climbing(tmp_path)
    for path in (tmp_path / "sgemm" / "alice" / ".sources").iterdir():
        path.write_text("something else")
    found, _ = read_versions(read_index(tmp_path).of("alice"))

    assert history.versions[1].diff is not None
    damaged = make_history(found, ()).versions[1]
    assert damaged.diff is None
    assert "one of the two sources was not kept" in str(next(notes(damaged)))


def test_the_changed_lines_are_on_the_page_and_their_beginning_in_the_terminal(
    tmp_path: Path,
) -> None:
    before = "".join(f"// {n}\n" for n in range(500))
    version(make_result(), tmp_path, before, 1)
    version(make_result(), tmp_path, before.replace("7\n", "7 <b>\x1b[2J\n"), 2)
    found, _ = read_versions(read_index(tmp_path).of("alice"))
    history = make_history(found, ())
    diff, page = history.versions[1].diff, html(history)

    assert diff is not None and (diff.added, diff.removed) == (50, 50)
    assert diff.lines[:5] == ("@ sgemm.cu", "@@ -6,5 +6,5 @@", " // 5", " // 6", "-// 7")
    assert len(diff.lines) == 200 and diff.more > 0 and f"and {diff.more} more lines" in page
    assert "+// 7 &lt;b&gt;" in page and "<b>" not in page
    shown = drawn(terminal(history), 100)
    assert "+// 7 <b>" in shown and "\x1b" not in shown and shown.count("+// ") == 6


def test_only_what_the_machine_code_shows_is_credited(tmp_path: Path) -> None:
    """No tile without a load from shared memory; and nobody gets 32×32 for 16×16."""
    naive, tiled = explained(rung("naive"), "sm_80"), explained(rung("tile32"), "sm_80")
    quiet = msgspec.structs.replace(naive, advice=())
    for minute, why in enumerate((naive, quiet, naive, tiled)):
        version(make_result(explanation=why), tmp_path, f"int a{minute};", minute)
    found, _ = read_versions(read_index(tmp_path).of("alice"))
    _, gone, _, followed = make_history(found, ()).versions

    assert gone.followed == () and [each.idea for each in followed.followed] == ["tile32"]
    assert "advice followed: Tiles in shared memory (" in " ".join(map(str, notes(followed)))


def test_every_command_speaks_of_the_same_expected_speed(tmp_path: Path) -> None:
    """Of the lab's first GPU or of the one that is named."""
    why = explain_program(at(rung("unrolled"), "sm_80", LARGE), None)
    result = make_result(explanation=why)
    version(result, tmp_path, "int a;", 1)
    found, _ = read_versions(read_index(tmp_path).of("alice"))
    for asked, name in ((None, "A100 80GB PCIe"), ("2080", "RTX 2080 Ti")):
        history = make_history(found, shipped_ladders(), asked)
        (estimate,) = (each for each in _bounds(why)[0] if each.gpu == name)
        speed = history.versions[0].speed

        assert history.gpu == name and speed and speed.value == estimate.speed
        assert history.rungs == (), "they are measured, or the most that counts allow"
        assert "TFLOPS expected" in map(str, headings(history))
    shown = drawn(report_terminal.render(result, {}, detail="brief"), 200)
    assert f"A100 80GB PCIe: {why.bounds[0].expected[0]:.3g} to" in shown


def test_untimed_versions_are_compared_by_their_estimates(tmp_path: Path) -> None:
    """Not by what the counts allow at most, which is the same here."""
    most = Limit(resource="issue", speed=55)
    for minute, speed in ((1, 50.0), (2, 40.0)):
        bound = Bound(
            gpu="H200", size=NOTHING_KNOWN.size, speed=speed, resource="issue", limits=(most,),
            peak=66, most=most,
        )  # fmt: skip
        why = msgspec.structs.replace(NOTHING_KNOWN, bounds=(bound,))
        version(make_result(explanation=why), tmp_path, f"int a{minute};", minute)
    found, _ = read_versions(read_index(tmp_path).of("alice"))
    assert make_history(found, ()).versions[1].became == pytest.approx(0.8)


@pytest.mark.sampled
def test_who_follows_the_advice_gets_what_it_promises_and_the_credit(tmp_path: Path) -> None:
    """From a naive kernel to 8×8, each step written as the first advice for the one before says."""
    climb = table_of(__file__, "climb.txt")
    for step, (_, edge, side, unroll) in enumerate(climb):
        folder = tmp_path / str(step)
        folder.mkdir()
        source = (rung("naive") / "sgemm.cu").read_text()
        if step:
            source = beside(__file__, "climb.cu.in", edge=edge, side=side, unroll=unroll)
        (folder / "sgemm.cu").write_text(source)
        version(make_result(explanation=explained(folder, "sm_80")), tmp_path, source, step)
    found, _ = read_versions(read_index(tmp_path).of("alice"))
    versions = make_history(found, (), "A100").versions

    assert [each.advice[0].idea for each in versions] == [idea for idea, *_ in climb]
    for before, after in pairwise(versions):
        assert after.followed == before.advice[:1]
        assert after.became == pytest.approx(before.advice[0].gain, rel=0.2)


def test_kept_sources_come_back_with_the_compilers_line_ends(tmp_path: Path) -> None:
    result = version(make_result(), tmp_path, "int a;\r\n", 1)
    path = store.result_path(tmp_path, result)

    assert kept_sources(path, result.submission.files) == {"sgemm.cu": "int a;\n"}
    assert list(store.stored(tmp_path)) == [path], "sources are no results"


def test_a_students_text_is_no_markup(tmp_path: Path) -> None:
    name = "a|b <script>*x*"
    version(make_result(name), tmp_path, FIRST, 1)
    found, _ = read_versions(read_index(tmp_path).of(name))
    history = make_history(found, ())

    assert "## a\\|b \\<script\\>\\*x\\*" in markdown(history)
    assert "<script>*x*" not in html(history)


def test_the_command_prints_markdown_and_writes_page_and_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    climbing(tmp_path)
    svg = tmp_path / "c.svg"
    chosen = ["--out", str(tmp_path), "--markdown", "--svg", str(svg)]

    assert main(["history", "alice", *chosen]) == 0

    printed = capsys.readouterr().out
    assert printed.count("\n| ") == 5 and "![" in printed and "](c.svg)" in printed
    assert svg.read_text().startswith('<svg xmlns="http://www.w3.org/2000/svg" width=')
    assert "var(" not in svg.read_text(), "other programs know no variables of CSS"
    page = tmp_path / "sgemm" / "alice" / "history-gpu.html"
    assert "What changed" in page.read_text()


def test_a_student_without_results_gets_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["history", "nobody", "--out", str(tmp_path)]) == 2
    assert "nobody: no results in" in capsys.readouterr().err

    climbing(tmp_path)
    assert main(["history", "alice", "--out", str(tmp_path), "--device", "cpu"]) == 2
    assert "there are sgemm on NVIDIA H200" in capsys.readouterr().err


# --- profiles


EDGE = 1024


class _Row(msgspec.Struct):
    folder: str
    launches: tuple[Profile, ...]


class _Recorded(msgspec.Struct):
    profiled: tuple[_Row, ...]


@cache
def recorded(folder: str) -> tuple[Profile, ...]:
    """As ncu counted it at 1024³."""
    path = ROOT / "tests" / "model" / "data" / "h200_counters.json"
    rows = msgspec.json.decode(path.read_bytes(), type=_Recorded).profiled
    return next(row.launches for row in rows if row.folder == folder)


def table(launches: tuple[Profile, ...]) -> str:
    """In the form of ``ncu --csv --page raw``."""
    names = list(launches[0].metrics)
    quoted = [
        ['"ID"', '"Kernel Name"', *(f'"{name}"' for name in names)],
        ['""'] * (2 + len(names)),
    ]
    for i, each in enumerate(launches):
        values = (f'"{each.metrics[name]:,.2f}"' for name in names)
        quoted.append([f'"{i}"', f'"{each.kernel}"', *values])
    return "==PROF== Disconnected\n" + "\n".join(map(",".join, quoted))


def job(*kernels: str, baseline: bool) -> Watching:
    one: dict[str, Any] = {"grid": (1, 1, 1), "block": (1, 1, 1), "shared_bytes": 0}
    launches = tuple(Launch(kernel=name, params=b"", pointers=(), **one) for name in kernels)
    size = Size.of(m=EDGE, n=EDGE, k=EDGE)
    plan = Plan(size=size, allocations=(), operations=launches)
    return Watching(problem=GEMM_REF, cubin="/some/cubin", plan=plan, baseline=baseline)


def document() -> ProfileDocument:
    """alice beside a rung that stands for the baseline, and the naive rung."""
    own, base, naive = (
        recorded(f)
        for f in ("submissions/alice", "reference/sgemm/24_rasterised", "reference/sgemm/01_naive")
    )
    plan = job(baseline=False).plan
    submission = load_submission(ALICE, MAIN)
    ready = Program(
        submission=submission,
        context=bench(),
        built=built(ALICE, "sm_90"),
        declared=Declarations(entries={}, symbols={}),
        plans=(plan,),
    )
    names = ("alice", "01_naive")
    watched = [WatchedKernel(ready=ready, name=n, first=n == "01_naive") for n in names]
    seen = [
        ProfiledJob(own=own, baseline=base, variant="cublasLt 2"),
        ProfiledJob(own=naive, baseline=(), variant=""),
    ]
    return make_document(watched, seen, bench(), "NVIDIA H200", "x.ncu-rep")


def test_ncus_launches_are_dealt_out_to_jobs_and_baselines() -> None:
    own, naive = recorded("submissions/alice"), recorded("reference/sgemm/01_naive")
    cublas = tuple(
        Profile(kernel=name, metrics=own[0].metrics) for name in ("cutlass_split", "cutlass_sum")
    )
    launches = read(table((*own, *cublas, *naive)))
    jobs = [job(own[0].kernel, baseline=True), job(naive[0].kernel, baseline=False)]

    first, second = dealt_out(jobs, launches, ["cublasLt 3"])

    assert [each.kernel for each in first.baseline] == ["cutlass_split", "cutlass_sum"]
    assert first.variant == "cublasLt 3" and second.baseline == ()
    assert first.own == own and second.own == naive
    with pytest.raises(MachineError, match="did not profile the baseline"):
        dealt_out(jobs, (*own, *naive), ["cublasLt 3"])
    with pytest.raises(MachineError, match="did not profile the launches"):
        dealt_out(jobs, launches[1:], ["cublasLt 3"])
    with pytest.raises(MachineError, match="2 launches that nobody made"):
        dealt_out([job(own[0].kernel, baseline=False)], launches[:3], [])


def test_the_naive_kernels_traffic_is_redundant_for_the_caches_and_not_for_dram() -> None:
    (size,) = document().sizes
    naive = size.side("first")
    assert naive is not None
    said = str(redundancy(size, naive))

    assert "01_naive asks for 19.33 GB, 2304 times its inputs (0.008389 GB)" in said
    assert "0.008401 GB come from DRAM, 1 times the inputs" in said
    assert "not its traffic with DRAM" in said
    again = {**naive.launches[0].metrics, "dram__bytes_read.sum": 5 * size.inputs}
    greedy = ProfiledSide(role="own", name="x", launches=(Profile(kernel="k", metrics=again),))
    assert "redundant even once the caches are counted" in str(redundancy(size, greedy))
    blind = ProfiledSide(role="own", name="x", launches=(Profile(kernel="k", metrics={}),))
    assert not redundancy(size, blind)


def test_the_figures_of_all_sides_stand_beside_each_other() -> None:
    found = document()
    rows = {str(name): values for name, values in figures(found.sizes[0], found, "sm_90")}

    # alice reads shared memory with half of its wavefronts lost: see the recorded counters.
    assert rows["wavefronts by bank conflicts"][0] == "4,194,304 (40 %)"
    assert rows["FFMA of the instructions"][0] == "86.5 %"
    assert [side.role for side in found.sizes[0].sides] == ["own", "baseline", "first"]
    assert rows["read from DRAM, GB"][2] == "0.008401"


def test_a_stored_profile_reaches_the_questions_and_the_page(tmp_path: Path) -> None:
    why = explained(ALICE)
    result = make_result(explanation=why)
    path = store.save(tmp_path, result)
    store.write_document(profile_path(path), document())

    found = stored_profile(path)
    assert found == document() and list(store.stored(tmp_path)) == [path]
    said = {str(each.question): str(each.answer) for each in answers(result, {}, found)}
    naive = said["Is the naive kernel's global traffic redundant, once caches are counted?"]
    assert naive.startswith("At 1024×1024×1024: 01_naive asks for") and "This kernel asks" in naive
    assert "01_naive asks for 19.33 GB" in report.render(result, {}, profile=found)


def test_long_versions_are_compared_by_counting_their_lines() -> None:
    """A diff of lines that hardly ever have a neighbour in common takes minutes."""
    old = {f"{name}.cuh": "\n".join(f"//{i % 60}" for i in range(700)) for name in "abc"}
    new = {name: text.replace("\n", "\n//\n") for name, text in old.items()}
    found = _diff(old, new)
    assert found is not None and not found.exact
    assert (found.added, found.removed) == (3 * 699, 0)
