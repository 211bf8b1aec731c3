"""The versions of a kernel, told from stored results and the sources kept beside them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from grader.base import Bound, Limit
from grader.base.language import language
from grader.base.records import Verdict
from grader.cli.entry import main
from grader.explain.advice import advice_title
from grader.results import store
from grader.results.entries import kept_sources, read_index
from grader.study.history import make_history
from grader.study.history_render import climb, html, markdown, notes
from grader.study.versions import read_versions
from tests.support.boards import FIRST, climbing, version
from tests.support.product import shipped_ladder
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
    title = advice_title("tile32")
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
