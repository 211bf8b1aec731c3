"""Boards of stored results: ranks, rosters, pseudonyms, pages, exports; ten thousand in time."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from grader.base.errors import UsageError
from grader.base.records import Verdict
from grader.cli.entry import main
from grader.course import board_rendering as render
from grader.course.leaderboard import Board, make_boards, undated
from grader.course.roster import (
    Parties,
    Roster,
    assignment_column,
    csv_text,
    load_pseudonym_key,
    pseudonym,
    read_roster,
)
from grader.labs.course_rules import TimeRules
from grader.results import store
from grader.results.entries import ResultEntry, read_entries
from grader.results.result import SCHEMA_VERSION, Result
from tests.support.boards import check_gradescope, grade, keep, rows_of
from tests.support.commands import environment
from tests.support.files import beside, values
from tests.support.pages import H200, RUNGS, drawn, gpu_result, sample_ladder, timed
from tests.support.results import RIGHT, WRONG, make_result

A100 = msgspec.structs.replace(H200, name="NVIDIA A100")
HARD_NAMES = ("张伟", 'O\'Brien, "Pat"', "=cmd()", "<b>zoë</b>")


def boards(out: Path, *choice: str, **options: object) -> tuple[Board, ...]:
    entries, complaints = read_entries(out)
    assert complaints == []
    return make_boards(entries, *choice, **options)  # type: ignore[arg-type]


def ranks(board: Board) -> list[tuple[int | None, str]]:
    return [(row.rank, row.student) for row in board.rows]


def roster(place: Path, text: str) -> Roster:
    file = place / "roster.csv"
    file.write_text(text, encoding="utf-8")
    return read_roster(file)


def test_ties_share_a_rank_and_cublas_has_none(tmp_path: Path) -> None:
    for student, total in (("a", 80), ("b", 90), ("c", 80), ("d", 70), ("e", None)):
        keep(tmp_path, student, total)
    (board,) = boards(tmp_path)
    assert ranks(board) == [(None, "cuBLAS"), (1, "b"), (2, "a"), (2, "c"), (4, "d"), (5, "e")]
    assert board.rows[0].speed == 50.2
    assert board.rows[-1].points == 0
    assert board.rows[1].ratio == pytest.approx(0.9)


def test_gpu_models_and_devices_are_never_mixed(tmp_path: Path) -> None:
    keep(tmp_path, "a", 80)
    keep(tmp_path, "a", 90, gpu=A100, attempt=1)
    store.save(tmp_path, make_result("b", cases=(RIGHT, WRONG), verdict=Verdict.WA))
    titles = [str(board.title) for board in boards(tmp_path)]
    assert titles == ["sgemm · NVIDIA A100", "sgemm · NVIDIA H200", "sgemm · simulator"]
    simulator = boards(tmp_path)[-1]
    assert [(row.passed, row.cases) for row in simulator.rows] == [(1, 2)]


def test_what_never_met_a_gpu_counts_on_every_gpus_board(tmp_path: Path) -> None:
    lost = msgspec.structs.replace(gpu_result().environment, gpu=None)
    keep(tmp_path, "c", None, environment=lost, cases=(), verdict=Verdict.CE)
    assert [str(board.title) for board in boards(tmp_path)] == ["sgemm · GPU"]
    keep(tmp_path, "a", 80)
    keep(tmp_path, "b", 90, gpu=A100)
    first, second = boards(tmp_path)
    assert ranks(first)[1:] == [(1, "b"), (2, "c")]
    assert ranks(second)[1:] == [(1, "a"), (2, "c")]


def test_best_or_latest_and_the_history(tmp_path: Path) -> None:
    for attempt, total in enumerate((50, 90, 70)):
        keep(tmp_path, "a", total, attempt=attempt)
    (best,), (latest,) = boards(tmp_path), boards(tmp_path, "latest")
    assert (best.rows[1].points, latest.rows[1].points) == (90, 70)
    assert best.rows[1].history == (50, 90, 70)


def test_the_ladder_of_the_same_gpu_stands_beside_the_ranks(tmp_path: Path) -> None:
    keep(tmp_path, "a", 95)
    keep(tmp_path, "b", 50)
    keep(tmp_path, RUNGS[-2].name, 99)  # graded itself: its own result counts, without a rank
    ladder = sample_ladder(RUNGS)
    (board,) = boards(tmp_path, references={RUNGS[-2].name}, ladders=[ladder])
    rows = {row.student: row for row in board.rows}
    assert len(board.rows) == 3 + len(RUNGS) - 1  # cuBLAS too; one rung was not timed at 8192
    naive = rows["01_naive"]
    assert (naive.rank, naive.kind, naive.points) == (None, "reference", None)
    assert naive.ratio == pytest.approx(0.018)
    names = [row.student for row in board.rows]
    assert names[0] == RUNGS[-1].name  # 112 % of cuBLAS
    assert names[-1] == "01_naive"
    assert [row.student for row in board.rows if row.rank] == ["a", "b"]
    assert rows[RUNGS[-2].name].points == 99
    shares = [row.ratio or 0 for row in board.rows]
    assert shares == sorted(shares, reverse=True)
    (without,) = boards(tmp_path, ladders=[sample_ladder(RUNGS, A100)])
    assert "01_naive" not in {row.student for row in without.rows}


def test_a_roster_marks_late_and_missing(tmp_path: Path) -> None:
    keep(tmp_path, "a", 80, attempt=2)
    keep(tmp_path, "b", 70, attempt=9)
    keep(tmp_path, "c", 60, attempt=9)
    people = roster(
        tmp_path,
        "student,name,submitted,due\na,Ann,,\nb,Bob,,\n"
        'c,"Cy, Jr.",2026-01-01T00:00Z,\nd,Dan,,\ne,Eve,,2026-02-01\n',
    )
    due = TimeRules(due="2026-01-05T00:00Z")
    (board,) = boards(tmp_path, roster=people, rules=due)
    marked = {row.student: str(render.marks(row)) for row in board.rows}
    assert marked == {"cuBLAS": "", "a": "", "b": "late", "c": "", "d": "missing", "e": "missing"}


def test_late_counts_from_when_the_work_was_handed_in(tmp_path: Path) -> None:
    came = {"a": ("2026-01-04T23:59:00-08:00",), "b": ("2026-01-04T12:00:00-08:00",), "c": ()}
    for student, submitted in came.items():
        keep(tmp_path, student, 80, attempt=9, submitted=submitted)
    keep(tmp_path, "d", 80, attempt=2, submitted=())  # graded in time: so it came in time
    people = roster(tmp_path, "student,submitted\na,\nb,2026-01-06T00:00Z\nc,2026-01-07\n")
    due = TimeRules(due="2026-01-05T00:00Z")

    def late(known: Roster | None, rules: TimeRules | None = due) -> tuple[set[str], str]:
        found = boards(tmp_path, roster=known, rules=rules)
        return {row.student for row in found[0].rows if row.late}, str(undated(found))

    found, told = late(None)
    assert found == {"a"}  # c: nobody says when, and it was graded after the date
    assert "1 student's work" in told and "student and submitted: --roster" in told
    assert late(people) == ({"a", "b", "c"}, "")  # the roster's word goes before the export's
    assert late(None, None) == (set(), "")
    (board,) = boards(tmp_path, rules=due)
    row = next(row for row in board.rows if row.student == "c")
    assert str(render.marks(row)) == "hand-in time unknown"
    hidden = render.for_students((board,), str.upper)
    assert not any(row.untimed for row in hidden[0].rows)


def test_a_source_that_is_handed_in_again_counts_again(tmp_path: Path) -> None:
    """Good on the 1st, bad on the 2nd, good again on the 3rd: the last is the good one."""
    first, second, third = (f"2026-01-0{day}T12:00:00+00:00" for day in (1, 2, 3))
    keep(tmp_path, "a", 80, submitted=(first, third))
    keep(tmp_path, "a", 20, attempt=1)
    for choice, due, points, late in (
        ("latest", None, 80, False),
        ("latest", second, 80, True),
        ("last-before-deadline", third, 80, False),
        ("last-before-deadline", second, 20, False),
        ("last-before-deadline", first, 80, False),
        ("best", first, 80, False),
    ):
        rules = TimeRules(due=due) if due else None
        (board,) = boards(tmp_path, choice, rules=rules)
        row = board.rows[1]
        assert (row.points, row.late) == (points, late), (choice, due)
        assert row.history == (80, 20, 80)


def test_results_of_another_lab_file_are_marked(tmp_path: Path) -> None:
    keep(tmp_path, "a", 80)
    other = msgspec.structs.replace(make_result().lab, sha256="f" * 64)
    keep(tmp_path, "b", 70, attempt=3, lab=other)
    (board,) = boards(tmp_path)
    assert {r.student: r.other_lab for r in board.rows} == {"cuBLAS": False, "a": True, "b": False}


CHANGED = """\
id: sgemm
extends: sgemm
correctness: [[1, 1, 1]]
performance: [{{mnk: [8192, 8192, 8192], weight: {weight}}}, {{mnk: [4096, 4096, 4096], weight: 1}}]
{more}
"""
CURVE = (
    "scoring: {policy: curve, pieces: [{name: to half, to: 0.5, points: 60}, "
    "{name: to all, to: 1, points: 100}]}\n"
)


@pytest.mark.parametrize(
    ("weight", "more", "points"),
    [
        (3, "", {"ann": 65.0, "bob": 52.5}),  # 80 % and 20 % of cuBLAS; 50 % and 60 %
        (0.25, "", {"bob": 58.0, "ann": 32.0}),
        (1, CURVE, {"bob": 64.0, "ann": 54.0}),
        (3, "scoring: {policy: oj, cap: 70}\n", {"ann": 57.5, "bob": 52.5}),
        (1, "time: {due: '2026-01-01T00:00Z', late: {percent: 10}}\n", {"bob": 55.0, "ann": 50.0}),
    ],
    ids=["weights", "other weights", "a curve", "a cap", "dates"],
)
def test_a_board_counts_by_the_lab_file_that_is_named(
    weight: float,
    more: str,
    points: dict[str, float],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Stored times and verdicts are enough; what else was graded is named, and keeps its points."""
    one = msgspec.structs.replace(RIGHT, size={"m": 1, "n": 1, "k": 1})
    for name, large, small in (("ann", 0.8, 0.2), ("bob", 0.5, 0.6)):
        cases = one, timed(8192, large * 50, 50), timed(4096, small * 50, 50)
        keep(tmp_path, name, 7, cases=cases)
    keep(tmp_path, "cat", None, cases=(one, timed(8192, 50, 50), timed(4096, 50, 50)))  # WA
    keep(tmp_path, "dan", 80, attempt=1)  # of other sizes, and the newest
    file = tmp_path / "lab.yaml"
    file.write_text(CHANGED.format(weight=weight, more=more))
    assert main(["leaderboard", "--lab", str(file), "--out", str(tmp_path), "--csv", "-"]) == 0
    told = capsys.readouterr()
    rows = {row["student"]: row for row in rows_of(told.out.removeprefix("\ufeff"))}
    assert {name: float(rows[name]["points"]) for name in points} == pytest.approx(points)
    assert [name for name in rows if name in points] == [*points]
    assert (float(rows["cat"]["points"]), float(rows["dan"]["points"])) == (0, 80)
    assert [name for name in rows if rows[name]["other_lab_file"]] == ["dan"]
    (line,) = (line for line in told.err.splitlines() if line.startswith("results by another"))
    assert line.startswith("results by another version of this lab file: 4; ")
    assert ": dan " in line and "ann" not in line and "cat" not in line


def test_roster_mistakes_are_told_with_their_line(tmp_path: Path) -> None:
    for text, words in (
        ("who\na\n", r"roster.csv:1: no column 'student'"),
        ("student\na\na\n", r"roster.csv:3: student 'a' appears twice"),
        ("student,due\na,tomorrow\n", r"roster.csv:2: due: expected a time"),
        ('student\n"a\n', r"not a CSV file"),
    ):
        with pytest.raises(UsageError, match=words):
            roster(tmp_path, text)
    with pytest.raises(UsageError, match="cannot be read"):
        read_roster(tmp_path / "none.csv")


def test_bad_files_are_named_skipped_and_kept(tmp_path: Path) -> None:
    """tests/whole/test_odd.py has other kinds of files."""
    keep(tmp_path, "a", 80)
    folder = tmp_path / "sgemm" / "a"
    good = next(folder.glob("*.json")).read_text()
    newer = good.replace(f'"version": {SCHEMA_VERSION}', '"version": 99')
    for name, text in (("cut", good[:-9]), ("empty", ""), ("newer", newer)):
        (folder / f"{name}.json").write_text(text)
    (folder / "timeless.json").write_text(good.replace('"created": "2', '"created": "x'))
    (tmp_path / "stray.json").write_text("{}")
    entries, complaints = read_entries(tmp_path)
    assert len(entries) == 1
    for name, complaint in zip(("cut", "empty", "newer", "timeless"), complaints, strict=True):
        assert f"{name}.json" in str(complaint) and "\n" not in str(complaint)
        assert (folder / f"{name}.json").exists()
    assert "newer grader" in str(complaints[2])


# --- what students may see --------------------------------------------------------------------


def test_pseudonyms_are_stable_and_keyed(tmp_path: Path) -> None:
    key = load_pseudonym_key(tmp_path)
    assert load_pseudonym_key(tmp_path) == key
    assert (tmp_path / ".pseudonym-key").stat().st_mode & 0o077 == 0
    assert pseudonym(key, "alice") == pseudonym(key, "alice")
    assert pseudonym(key, "alice") != pseudonym(bytes(32), "alice")
    assert len({pseudonym(key, f"student{i}") for i in range(1000)}) == 1000


def test_the_students_page_leads_back_to_nobody(tmp_path: Path) -> None:
    for student in ("alice", "bob", "carol"):
        keep(tmp_path, student, 80)
    people = roster(tmp_path, "student,name\nalice,Alice A.\ndan,Dan D.\n")
    due = TimeRules(due="2025-01-01T00:00Z")
    found = boards(tmp_path, roster=people, rules=due)
    assert found[0].rows[1].late
    key = load_pseudonym_key(tmp_path)
    hidden = render.for_students(found, lambda student: pseudonym(key, student))
    digest = found[0].rows[1].sha256
    assert digest
    for text in (render.html(hidden, None), render.table_csv(hidden, None)):
        for secret in ("alice", "Alice", "bob", "carol", "dan", "Dan", "late</", "2026-01"):
            assert secret not in text
        assert digest[:12] not in text
        assert pseudonym(key, "alice") in text
    tied = [row.student for row in hidden[0].rows if row.kind == "student"]
    assert tied == sorted(tied)


# --- terminal, CSV, page ----------------------------------------------------------------------


def test_terminal_and_csv(tmp_path: Path) -> None:
    for i, name in enumerate(HARD_NAMES):
        keep(tmp_path, name, 80 - i)
    found = boards(tmp_path)
    text = drawn(render.terminal(found, None))
    assert "O'Brien" in text and "78.00" in text
    row = msgspec.structs.replace(found[0].rows[-1], late=True, history=(1, 2))
    late = msgspec.structs.replace(found[0], rows=(*found[0].rows, row))
    narrow = drawn(render.terminal((late,), None), width=60)
    assert 'O\'Brien, "Pat"' in narrow and "\n    late" in narrow and "history" not in narrow
    assert "<b>zoë" not in render.html(found, None)
    rows = rows_of(render.table_csv(found, None))
    assert [row["student"] for row in rows[1:]] == [*HARD_NAMES[:2], "'=cmd()", HARD_NAMES[3]]
    assert tuple(rows[0]) == render.CSV_COLUMNS


@pytest.mark.parametrize(("cell", "written"), values(__file__, "formulas.txt"))
def test_no_field_begins_a_formula(cell: str, written: str) -> None:
    """Not even in a spreadsheet that splits the file at other signs than commas."""
    text = csv_text(["a"], [["x", cell]])
    assert list(csv.reader(io.StringIO(text, newline="")))[1] == ["x", written]
    for separator in ";\t|":
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator):
            assert not any(field.lstrip().startswith(tuple("=+-@＝＋－＠")) for field in row)


# --- the command ------------------------------------------------------------------------------


def test_the_command(tmp_path: Path) -> None:
    keep(tmp_path / "results", "alice", 80)
    done = grade("leaderboard", cwd=tmp_path)
    assert done.returncode == 0
    assert "alice" in done.stdout and done.stderr == ""
    done = grade("leaderboard", "--csv", "-", "--pseudonyms", cwd=tmp_path)
    assert done.stdout.startswith("board,rank,student")
    assert "alice" not in done.stdout + done.stderr and "sgemm · NVIDIA H200" in done.stderr
    done = grade("leaderboard", "--html", "board.html", cwd=tmp_path)
    assert "alice" in done.stdout and "written: board.html" in done.stderr
    assert "alice" in (tmp_path / "board.html").read_text()
    done = grade("leaderboard", "--due", "soon", cwd=tmp_path)
    assert done.returncode == 2
    assert "expected a time" in done.stderr


def test_a_terminal_gets_nothing_that_controls_it(tmp_path: Path) -> None:
    keep(tmp_path / "results", "al\x1b]0;ice", 80)
    into_a_file = grade("export", "csv", "--to", "-", cwd=tmp_path)
    assert "al\x1b]0;ice" in into_a_file.stdout
    ours, terminal = os.openpty()
    words = (sys.executable, "-m", "grader.cli", "leaderboard", "--csv", "-")
    subprocess.run(words, cwd=tmp_path, env=environment(), stdout=terminal, check=True)
    os.close(terminal)
    shown = os.read(ours, 1 << 16)
    os.close(ours)
    assert b"al\xef\xbf\xbd]0;ice" in shown and b"\x1b" not in shown


@pytest.mark.nightly
def test_ten_thousand_results_in_three_seconds(tmp_path: Path) -> None:
    results = tmp_path / "results" / "sgemm"
    # Documents as large as real ones: every line of a kernel has its counts.
    document = store.encode(make_result("NAME", cases=(RIGHT,) * 10)).decode()
    counts = ("global_requests", "global_sectors", "global_bytes", "shared_requests")
    counts += ("instructions", "flops", "shared_wavefronts", "shared_bytes")
    line = json.dumps({"file": "sgemm.cu", "line": 7, **dict.fromkeys(counts, 5)})
    document = document.replace('"lines":[]', f'"lines":[{",".join([line] * 60)}]')
    for i in range(2500):
        folder = results / f"student{i:04d}"
        folder.mkdir(parents=True)
        for attempt in range(4):
            text = document.replace("NAME", folder.name)
            (folder / f"{attempt:012x}-cpu.json").write_text(text)
    assert board_seconds(tmp_path, "--html", "board.html") <= 3
    page = (tmp_path / "board.html").read_text()
    assert page.count('<th scope="row">') == 2500
    assert len(page) < 2500 * 350  # so that a thousand students' page stays below 400 KB


def board_seconds(place: Path, *options: str) -> float:
    """Of the processor: what else runs beside the tests is no fault of the leaderboard's."""
    process = subprocess.Popen(
        [sys.executable, "-m", "grader.cli", "leaderboard", *options],
        cwd=place,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    assert usage.ru_maxrss <= 300_000  # KiB
    return usage.ru_utime + usage.ru_stime


def test_several_labs_share_a_folder_and_no_board(tmp_path: Path) -> None:
    keep(tmp_path, "ada", 80)
    other = gpu_result("ada", 60)
    other = msgspec.structs.replace(
        other,
        lab=msgspec.structs.replace(other.lab, id="sums"),
        problem=msgspec.structs.replace(
            other.problem, name="sums", title="sums", unit="GB/s", baseline="CUB"
        ),
    )
    store.save(tmp_path, other)
    first, second = boards(tmp_path, ladders=(sample_ladder(RUNGS),))
    assert [(each.lab, each.unit, each.baseline) for each in (first, second)] == [
        ("sgemm", "TFLOPS", "cuBLAS"),
        ("sums", "GB/s", "CUB"),
    ]
    # The ladder is one of products: only their board shows it.
    assert sum(row.kind == "reference" for row in first.rows) > 0
    assert {row.kind for row in second.rows} == {"student", "baseline"}
    text = drawn(render.terminal((first, second), None))
    assert "of CUB" in text and "GB/s" in text
    assert "of CUB" in render.html((first, second), None)


# --- exports --------------------------------------------------------------------------------------


CANVAS = beside(__file__, "gradebook.csv")


def board_of(*results: Result) -> Board:
    entries = [msgspec.json.decode(store.encode(result), type=ResultEntry) for result in results]
    return make_boards(entries)[0]


def test_canvas(tmp_path: Path) -> None:
    file = tmp_path / "gradebook.csv"
    file.write_text(CANVAS, encoding="utf-8")
    roster = read_roster(file)
    found = board_of(gpu_result("al", 80.0), gpu_result("wei", None), gpu_result("eq", 90.5))
    shares = render.board_shares(found)
    text, _ = render.canvas(shares, Parties(roster), 'SGEMM, "fast" (12345)', 20)
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert rows[0][5] == 'SGEMM, "fast" (12345)'
    assert rows[1] == ["    Points Possible", "", "", "", "", "20"]
    assert sorted(rows[2:]) == [
        ["=cmd()", "13", "s3", "eq", "Lab B", "18.10"],
        ['Davis, Jr., "Al"', "11", "s1", "al", "Lab A", "16.00"],
        ["张伟", "12", "s2", "wei", "Lab A", "0.00"],
    ]
    assert "Missing One" not in text  # a blank would clear the 70 given by hand


@pytest.mark.parametrize(("title", "found"), values(__file__, "assignments.txt"))
def test_an_assignment_is_a_column_of_the_gradebook(title: str, found: str, tmp_path: Path) -> None:
    file = tmp_path / "gradebook.csv"
    file.write_text(CANVAS.replace("SGEMM (12345)", "SGEMM (12345),Twice (1),Twice (2),Mine"))
    try:
        assert assignment_column([file], title) == found
    except UsageError as error:
        assert found in str(error) and title != found


def test_canvas_needs_ids(tmp_path: Path) -> None:
    file = tmp_path / "roster.csv"
    file.write_text("student\nal\n")
    with pytest.raises(UsageError, match="no Canvas IDs"):
        render.canvas({"al": 0.8}, Parties(read_roster(file)), "SGEMM", 100)


def test_the_export_command(tmp_path: Path) -> None:
    out = tmp_path / "results"
    kept = keep(out, "al", 80)
    path = store.result_path(out, kept).relative_to(tmp_path)
    (tmp_path / "gradebook.csv").write_text(CANVAS, encoding="utf-8")
    done = grade("export", "gradescope", path, cwd=tmp_path)
    check_gradescope(json.loads(done.stdout))
    line = grade("export", "csoj", path, cwd=tmp_path).stdout
    assert json.loads(line)["score"] == 80
    assert json.loads(grade("export", "prairielearn", path, cwd=tmp_path).stdout)["score"] == 0.8
    canvas = ("export", "canvas", "--assignment", "SGEMM")
    done = grade(*canvas, "--roster", "gradebook.csv", "--to", "up.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    uploaded = (tmp_path / "up.csv").read_text(encoding="utf-8")
    assert ",SGEMM (12345)\n" in uploaded and "80.00" in uploaded
    assert grade(*canvas, cwd=tmp_path).returncode == 2
    assert json.loads(grade("export", "json", cwd=tmp_path).stdout)[0]["gpu"] == "NVIDIA H200"
    assert "al" in grade("export", "csv", cwd=tmp_path).stdout
    store.save(out, make_result("al"))
    done = grade(*canvas, "--roster", "gradebook.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert "several boards" in done.stderr
