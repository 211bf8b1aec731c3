"""A grading in Chinese: everything that is said, for a right program and for wrong ones."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path

import msgspec
import pytest
from rich.cells import cell_len
from rich.console import Console

from grader.base.language import ENGLISH, Language, language
from grader.base.records import Verdict
from grader.judge.pipeline import Graded, grade
from grader.report import html, terminal
from grader.results import store
from ptxsim.message import Message
from tests.support.bench import bench
from tests.support.catalogues import assert_chinese
from tests.support.files import table
from tests.support.places import ROOT

CHINESE = language("zh_CN")
_SOURCE = re.compile(r"^.*│.*$", re.MULTILINE)
RIGHT = ROOT / "starter"
WRONG = ROOT / "tests" / "fixtures" / "broken"


def shown(graded: Graded, spoken: Language) -> str:
    text = StringIO()
    report = terminal.render(graded.result, graded.sources, spoken)
    Console(file=text, width=200, highlight=False).print(report)
    return text.getvalue()


def graded_in_chinese(folder: Path) -> tuple[Graded, list[str]]:
    stages: list[str] = []

    def told(stage: Message, words: Message) -> None:
        stages.append(CHINESE(words or stage))

    asked = msgspec.structs.replace(bench(), explain=True)
    return grade(folder, asked, told), stages


def test_a_right_one(tmp_path: Path) -> None:
    graded, stages = graded_in_chinese(RIGHT)
    output = shown(graded, CHINESE)
    assert graded.result.verdict is Verdict.AC
    lines = output.splitlines()
    assert lines[0].startswith("starter: AC 通过")
    heads = ("判定", "误差 / 容差", "线程块", "共享内存字节")
    for words in (*heads, "下一步：", "没有合并访存", "瓶颈："):
        assert words in output
    assert "没有性能得分：CPU 上的模拟器只检查正确性" in output
    assert_chinese(output)
    assert stages[:2] == ["正在编译", "正在记录 11 个规模下的核函数启动"]
    assert_chinese("\n".join(stages))
    page = html.render(graded.result, {}, CHINESE)
    assert '<html lang="zh-CN">' in page and "没有合并访存" in page
    stored_in_one_language_and_shown_in_another(graded, tmp_path)
    columns_stand_below_each_other(output.splitlines())


def stored_in_one_language_and_shown_in_another(graded: Graded, out: Path) -> None:
    again = Graded(result=store.load(store.save(out, graded.result)), contents={}, printed="")
    before = Graded(result=graded.result, contents={}, printed="")
    for spoken in (ENGLISH, CHINESE, ENGLISH):
        assert shown(again, spoken) == shown(before, spoken)
    words = " ".join(shown(again, ENGLISH).split())
    assert graded.result.explanation
    assert str(graded.result.explanation.advice[0].message)[1:] in words


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "words"), table(__file__, "in_chinese.txt"))
def test_a_wrong_one(name: str, words: str) -> None:
    graded, _ = graded_in_chinese(WRONG / name)
    output = shown(graded, CHINESE)
    assert graded.result.verdict is not Verdict.AC
    assert words in output
    said = _SOURCE.sub("", output)
    for line in graded.result.build.log.splitlines() if graded.result.build else ():
        said = said.replace(line, "")  # the compiler speaks English
    assert_chinese(said)


def columns_stand_below_each_other(lines: list[str]) -> None:
    """Though a Chinese sign is as wide as two others."""
    head = next(line for line in lines if line.startswith("M×N×K"))
    rows = [line for line in lines if re.match(r"\d+×\d+×\d+ .* AC ", line)]
    place = cell_len(head[: head.index("判定")])
    assert rows and all(cell_len(row[: row.index("AC")]) == place for row in rows)
