"""``grade ladder``: headers, the document, table and page, resuming; on the simulator."""

import io
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from markupsafe import escape
from rich.console import Console

from grader.base.errors import MachineError, UsageError
from grader.base.language import language
from grader.base.records import Verdict
from grader.cli import entry as cli
from grader.cli.boards import known_ladders
from grader.cli.console import WRONG_USAGE
from grader.report import formatting as text
from grader.report import html as report
from grader.results import store
from grader.results.entries import read_entries
from grader.results.ladders import (
    SCHEMA,
    Ladder,
    document_path,
    folder,
    load_ladder,
    make_ladder,
    standing,
    stored_ladders,
)
from grader.results.result import LabRef, Result
from grader.results.rungs import Rung, find_reference, find_rungs
from grader.results.store import StoreError
from grader.study.ladder_host import run_host
from grader.study.ladder_render import html, legend, terminal
from ptxsim.text import Message
from tests.support.commands import QUICK, hand_in
from tests.support.files import beside, values
from tests.support.pages import (
    H200,
    LADDER_SIZES,
    RUNGS,
    SLOWEST,
    drawn,
    gpu_result,
    sample_ladder,
    standing_at,
    timed,
)
from tests.support.places import REFERENCE
from tests.support.product import GEMM
from tests.support.results import SHA

HOST = beside(__file__, "host.cpp")
LESSON_FIRST = [rung.name for rung in sorted(RUNGS, key=lambda rung: not rung.lesson)]


def shown(ladder: Ladder, width: int = 120) -> str:
    return drawn(terminal(ladder), width)


# --- rungs and their headers ------------------------------------------------------------------


def test_a_header_is_read_over_its_lines(tmp_path: Path) -> None:
    hand_in(tmp_path / "07_name", beside(__file__, "header.cu"))
    (tmp_path / "notes").mkdir()
    (rung,) = find_rungs(tmp_path)
    assert (rung.number, rung.name, rung.trap) == (7, "07_name", True)
    assert rung.title == "a title over two lines"
    assert rung.changed == "first, second."
    assert rung.why == "because."


def test_a_missing_reference_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match=r"no rungs here; expected folders such as 01_naive"):
        find_reference(tmp_path, "sgemm")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"reference/other: no rungs of the lab other; name "):
        find_reference(None, "other")
    assert find_reference(None, "other", "sgemm") == REFERENCE
    assert find_reference(None, "sgemm") == REFERENCE  # the checkout's, from anywhere
    monkeypatch.setattr("grader.__file__", str(tmp_path / "site-packages" / "grader" / "x.py"))
    with pytest.raises(UsageError, match=r"no reference/ here or in the .*grade ladder DIR"):
        find_reference(None, "sgemm")


# --- the document -----------------------------------------------------------------------------


def test_a_rung_that_runs_out_of_time_keeps_its_smaller_sizes() -> None:
    ladder = sample_ladder(RUNGS)
    slow = ladder.steps[SLOWEST]
    assert slow.verdict is Verdict.TLE
    assert [speed.size["m"] for speed in slow.speeds] == [1024, 2048]
    assert str(slow.message) == "4096×4096×4096: a launch did not end within 10 s"
    assert [size["m"] for size in ladder.sizes] == list(LADDER_SIZES)
    assert ladder.baseline({"m": 8192, "n": 8192, "k": 8192}) == pytest.approx(51.2)
    assert ladder.baseline({"m": 1, "n": 2, "k": 3}) is None


def made(rungs: Sequence[Rung], *results: Result) -> Ladder:
    """The ladder of these results, one for each rung as far as there are some."""
    by_name = {rung.name: result for rung, result in zip(rungs, results, strict=False)}
    lab = LabRef(id="ladder", sha256=SHA)
    return make_ladder(rungs, by_name, lab, GEMM.info(), grader="0.1.0", host=None)


def test_rungs_without_a_result_are_said_to_have_none() -> None:
    ladder = made(RUNGS, gpu_result("01_naive", 1.8))
    assert ladder.steps[0].speeds[-1].rate == pytest.approx(0.018 * 50.2)
    assert ladder.steps[1].verdict is None
    assert "not graded" in html(ladder)
    assert "–" in shown(ladder)


def test_a_rung_that_ever_launches_several_kernels_has_no_mark() -> None:
    def result(*kernels: int | None) -> Result:
        pairs = zip(gpu_result().cases, kernels, strict=True)
        return gpu_result(cases=tuple(msgspec.structs.replace(c, kernels=n) for c, n in pairs))

    ladder = made(RUNGS[:3], result(1, 1), result(1, 3), result(1, None))
    assert [step.kernels for step in ladder.steps] == [1, 3, None]
    marked = [line.split()[0] for line in shown(ladder).splitlines() if "● " in line]
    assert marked == [RUNGS[0].name, "●"]  # the last explains the mark
    assert html(ladder).count("●") == 3  # beside the rung, as a tip there, and below the table


def test_documents_are_stored_one_for_each_gpu(tmp_path: Path) -> None:
    a100 = msgspec.structs.replace(H200, name="NVIDIA A100/80GB")
    ladders = [sample_ladder(RUNGS), sample_ladder(RUNGS, a100), sample_ladder(RUNGS, None)]
    for ladder in ladders:
        name = ladder.gpu.name if ladder.gpu else None
        store.write_document(document_path(tmp_path, name), ladder)
    (tmp_path / "ladder" / "broken.json").write_text("{")
    (tmp_path / "ladder" / "later.json").write_text(f'{{"schema": "{SCHEMA}", "version": 99}}')
    found, complaints = stored_ladders(tmp_path)
    assert sorted(found, key=repr) == sorted(ladders, key=repr)
    assert ["broken.json" in str(line) for line in complaints] == [True, False]
    assert "newer grader" in str(complaints[1])
    assert read_entries(tmp_path) == ([], [])  # no board takes them for results
    with pytest.raises(StoreError, match="expected 'sgemm-grader/ladder'"):
        load_ladder(store.save(tmp_path, gpu_result()))


def test_ladders_of_the_folder_above_are_known(tmp_path: Path) -> None:
    console = Console(file=io.StringIO(), width=200)
    ladder = sample_ladder(RUNGS)
    store.write_document(document_path(tmp_path, H200.name), ladder)
    (tmp_path / "ladder" / "notes.json").write_text("{}")
    assert ladder in known_ladders(tmp_path / "h200", console)
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == ""  # what lies above is somebody else's
    assert ladder in known_ladders(tmp_path, console)
    assert "skipped: " in console.file.getvalue()


# --- the lesson, and what is beside it ---------------------------------------------------------


def test_a_file_beside_the_rungs_says_which_are_the_lesson(tmp_path: Path) -> None:
    lesson = [rung.number for rung in RUNGS if rung.lesson]
    assert lesson == [1, 5, 6, 13, 15, 18, 19, 21, 23, 25]

    shutil.copytree(REFERENCE / "01_naive", tmp_path / "01_naive")
    assert [rung.lesson for rung in find_rungs(tmp_path)] == [True]
    for wrong in ("lesson = [1, 7]", "lesson = 1", "lesons = [1]", "lesson = ["):
        (tmp_path / "ladder.toml").write_text(wrong)
        with pytest.raises(UsageError, match=r"ladder\.toml: "):
            find_rungs(tmp_path)


def test_a_rung_leads_to_the_next_of_the_lesson(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rung"]) == 0
    listed = re.findall(r"^(\d\d_\w+) ", capsys.readouterr().out, re.MULTILINE)
    assert listed == [rung.name for rung in RUNGS if rung.lesson]

    assert cli.main(["rung", "reduction"]) == 0
    answer = capsys.readouterr()
    assert len(re.findall(r"^\d\d_\w+ ", answer.out, re.MULTILINE)) == 9
    assert answer.err == ""  # all are the lesson

    for name, following in (("7", "sgemm/13_register_4x4"), ("hgemm/12_persistent", None)):
        assert cli.main(["rung", name]) == 0
        answer = capsys.readouterr()
        assert answer.out.startswith("// Rung ")
        assert re.findall(r"grade rung (\S+)", answer.err) == [following] * bool(following)


def test_a_lab_may_keep_its_rungs_to_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = tmp_path / "lab.yaml"
    for due, words in (("2999-12-31", "from 2999-12-31T00:00+00:00 on"), ("2001-01-01", "")):
        time = f"time: {{due: '{due}T00:00Z'}}"
        lab.write_text(f"extends: sgemm\nid: mine\nrungs: after-due\n{time}\n")
        assert cli.main(["rung", "7", "--lab", str(lab)]) == (WRONG_USAGE if words else 0)
        answer = capsys.readouterr()
        assert bool(answer.out) == (not words)
        assert f"this lab shows rungs of the ladder {words}" in answer.err or not words
    lab.write_text("extends: sgemm\nid: mine\nrungs: hide\n")
    assert cli.main(["rung", "--lab", str(lab)]) == WRONG_USAGE
    assert "this lab does not show rungs of the ladder" in capsys.readouterr().err


def test_the_page_begins_with_the_lesson() -> None:
    page = html(sample_ladder(RUNGS))
    assert re.findall(r"<summary>(\d\d_\w+)", page) == LESSON_FIRST
    assert page.count("Detours") == 2
    assert "Detours" not in html(made(tuple(rung for rung in RUNGS if rung.lesson)))


# --- where a submission stands ----------------------------------------------------------------


def ladder_of(*ratios: float | None) -> Ladder:
    """A ladder whose rungs have these ratios at 8192³; None: not timed there."""
    cases = [(timed(8192, ratio * 50, 50),) if ratio else () for ratio in ratios]
    return made(RUNGS[: len(ratios)], *(gpu_result(cases=each) for each in cases))


@pytest.mark.parametrize(("ratio", "below", "ahead"), values(__file__, "standing.txt"))
def test_standing(ratio: float, below: int | None, ahead: list[int]) -> None:
    ladder = ladder_of(0.02, 0.005, None, 0.015, 0.12, 0.25, 0.9)
    found = standing([timed(8192, ratio * 50, 50)], H200, [ladder])
    assert found
    assert (found.below.number if found.below else None) == below
    assert [rung.number for rung in found.ahead] == ahead
    assert found.rungs == 6
    assert found.measured == ladder.created
    own = str(text.standing(found, GEMM.info()))
    if below and ahead:
        words = RUNGS[ahead[-1] - 1].name.partition("_")[2].replace("_", " ")
        assert f"between rung {below} (" in own
        assert f"and rung {ahead[-1]} ({words}, " in own
    elif ahead:
        assert "slower than rung 1 (naive, 2.0 %)" in own
    else:
        assert "faster than every rung; the fastest is rung 7" in own


def test_standing_needs_the_same_gpu_model_and_size() -> None:
    ladder = ladder_of(0.02, 0.9)
    a100 = msgspec.structs.replace(H200, name="NVIDIA A100")
    case = timed(8192, 25, 50)
    wrong = msgspec.structs.replace(case, verdict=Verdict.WA)
    assert standing([case], a100, [ladder]) is None
    assert standing([case], None, [ladder]) is None
    assert standing([case], H200, []) is None
    assert standing([timed(512, 5, 50)], H200, [ladder]) is None
    assert standing([wrong], H200, [ladder]) is None
    own = standing([case], H200, [ladder_of(0.4), ladder])
    assert own
    assert own.below  # the first ladder that fits, which is the one measured here
    assert own.below.ratio == pytest.approx(0.4)


def test_the_report_says_where_it_stands() -> None:
    result = gpu_result(standing=standing_at(0.86))
    page = report.render(result, {})
    assert result.standing
    (ahead,) = result.standing.ahead
    assert f"Rung {ahead.number} adds: {ahead.title}" in page
    assert "this submission" in page
    chinese = report.render(result, {}, language("zh_CN"))
    title = language("zh_CN")(Message(text=ahead.title))
    assert title != ahead.title and f"第 {ahead.number} 级增加了：{title}" in chinese
    assert ">On the reference ladder</h2>" in page
    assert ">On the reference ladder</h2>" not in report.render(gpu_result(), {})


def test_older_documents_have_no_standing(tmp_path: Path) -> None:
    path = store.save(tmp_path, gpu_result(standing=standing_at(0.5)))
    assert store.load(path) == gpu_result(standing=standing_at(0.5))
    document = msgspec.json.decode(path.read_bytes())
    del document["standing"]
    path.write_bytes(msgspec.json.encode(document))
    assert store.load(path) == gpu_result()


# --- the table and the page -------------------------------------------------------------------


def test_the_table_begins_with_the_cpu_and_ends_with_cublas() -> None:
    lines = shown(sample_ladder(RUNGS)).splitlines()
    assert "restrict 2.7 GFLOPS" in lines[1]
    rows = [line for line in lines if line[:2].isdigit()]
    assert [row.split()[0] for row in rows[: len(RUNGS)]] == LESSON_FIRST
    assert "112.0%" in rows[len(RUNGS) - 1]
    assert any(line.startswith("cuBLAS") and "51.2 100.0%" in line for line in lines)
    assert "03_one_block, a trap: 4096×4096×4096: a launch did not end" in lines[-1]
    assert shown(sample_ladder(RUNGS), width=80).count("%") == 4 * (len(RUNGS) + 1) - 2


def test_the_page_says_what_was_measured() -> None:
    page = html(sample_ladder(RUNGS))
    largest = f"{RUNGS[-1].name}, reaches 57.34 TFLOPS, 112.0 % of cuBLAS"
    for part in (largest, "NVIDIA H200", "FP32 peak", "66.9", "&lt;2 cores&gt;", RUNGS[5].changed):
        assert part in page, part
    assert page.count("<figure>") == 3 and "<script" not in page
    chinese = html(sample_ladder(RUNGS), language("zh_CN"))
    for words in (RUNGS[0].title, RUNGS[5].changed, RUNGS[5].why):
        assert escape(words) in page and escape(words) not in chinese
    untimed = html(sample_ladder(RUNGS, None))
    assert "Only a GPU can be timed" in untimed
    assert "<figure>" not in untimed


def test_many_sizes_can_be_told_apart() -> None:
    edges = (512, 1000, 1024, 2048, 2500, 3072, 4096, 4097, 6144, 8191, 8192)
    cases = tuple(timed(edge, 20 + edge / 1000, 50) for edge in edges)
    kinds = legend(made(RUNGS, *(gpu_result(cases=cases) for _ in RUNGS)))
    assert [name for _, name in kinds] == [str(edge) for edge in edges]
    assert len({kind for kind, _ in kinds}) == len(edges)


# --- the command ------------------------------------------------------------------------------


@pytest.mark.sampled
def test_the_command_grades_resumes_and_forgets_what_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lab.yaml").write_text(QUICK)
    rungs = tmp_path / "rungs"
    for name in ("01_naive", "06_tile32"):
        shutil.copytree(REFERENCE / name, rungs / name)
    naive = rungs / "01_naive" / "sgemm.cu"
    right = naive.read_text()
    naive.write_text(right.replace("float sum = 0.0f", "float sum = 1.0f"))
    assert naive.read_text() != right
    (rungs / "00_host").mkdir()
    (rungs / "00_host" / "host.cpp").write_text(HOST)
    words = ["ladder", "rungs", "--device", "cpu", "--lab", "lab.yaml"]

    assert cli.main([*words, "--only", "06*"]) == 0
    assert [s.verdict for s in load(tmp_path).steps] == [None, Verdict.AC]
    assert cli.main(words) == 0
    assert "1 of 2 are already graded" in capsys.readouterr().err
    wrong = load(tmp_path)
    assert [step.verdict for step in wrong.steps] == [Verdict.WA, Verdict.AC]
    assert wrong.host
    assert [(loop.name, loop.gflops) for loop in wrong.host.loops] == [
        ("plain", 1.25),
        ("restrict, accumulator", 3.5),
    ]
    naive.write_text(right)  # what is stored is of another source now
    assert cli.main(words) == 0
    repaired = load(tmp_path)
    assert [step.verdict for step in repaired.steps] == [Verdict.AC, Verdict.AC]
    assert repaired.sizes == ()
    assert [step.kernels for step in repaired.steps] == [1, 1]
    said = capsys.readouterr()
    assert "1 of 2 are already graded" in said.err
    assert re.search(r"01_naive +● +AC", said.out)
    page = document_path(Path("results"), None).with_suffix(".html")
    assert "Only a GPU can be timed" in page.read_text()
    assert len(list(folder(Path("results"), None).glob("quick/*/*.json"))) == 3
    assert cli.main([*words, "--bounds", "--only", "06*"]) == 0
    bounded = load(tmp_path)
    assert bounded.steps[0].ceilings == ()
    assert bounded.untimed == ("A100 80GB PCIe", "RTX 2080 Ti")
    assert [found.arch for found in bounded.steps[1].ceilings] == ["sm_80", "sm_75"]
    assert all(0 < found.speed < 19.6 for found in bounded.steps[1].ceilings)
    assert "≤ RTX 2080 Ti" in capsys.readouterr().out
    assert cli.main(words) == 0  # the source is the same: they stay
    assert load(tmp_path).steps == bounded.steps
    assert "≤ A100 80GB PCIe" in html(bounded)


def load(place: Path) -> Ladder:
    return load_ladder(document_path(place / "results", None))


def test_a_host_program_that_says_nothing_is_named(tmp_path: Path) -> None:
    assert run_host(tmp_path) is None
    (tmp_path / "00_host").mkdir()
    (tmp_path / "00_host" / "host.cpp").write_text("int main() {}")
    with pytest.raises(MachineError, match=r"host\.cpp: printed no line such as"):
        run_host(tmp_path)
