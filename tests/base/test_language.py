"""The language of texts: catalogues, which one is chosen, starters and a grading in Chinese."""

import ast
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from babel.messages.catalog import Message as Entry
from rich.cells import cell_len

from grader.base.errors import LabError, UsageError
from grader.base.language import (
    ENGLISH,
    FOLDER,
    Language,
    choose_language,
    known_languages,
    language,
)
from grader.base.records import Verdict
from grader.cli import entry as cli
from grader.cli.comments import translated
from grader.cli.new_command import new_submission
from grader.cli.parser import language_of
from grader.judge.pipeline import Graded
from grader.labs.lab import DEFAULT_LAB, load_lab
from grader.model.advice import advice_title
from grader.report import html, terminal
from grader.results import store
from grader.results.rungs import find_rungs
from grader.study import grade_and_explain
from ptxsim.text import Message
from tests.support.bench import bench
from tests.support.boards import CONFLICTS
from tests.support.catalogues import assert_chinese, catalogues, extracted, oddities, read, updated
from tests.support.files import table, values
from tests.support.pages import drawn
from tests.support.places import ROOT

_PLACE = re.compile(r"\{[a-z_][a-z0-9_]*(?::[^{}]*)?\}|%\([a-z_0-9]+\)[a-z]")
_MAKERS = ("phrase", "counted")


def entries(path: Path) -> Iterator[Entry]:
    return (entry for entry in read(path) if entry.id)


def texts(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, tuple | list) else (str(value),)


@pytest.mark.parametrize("path", catalogues(), ids=lambda path: path.stem)
def test_a_catalogue_holds_the_texts_of_today(path: Path) -> None:
    """``python -m tests.language`` makes it so."""
    assert path.read_text(encoding="utf-8") == updated(path)
    assert not read(path).obsolete


@pytest.mark.parametrize("path", catalogues(), ids=lambda path: path.stem)
def test_what_is_filled_in_is_the_same(path: Path) -> None:
    """All of it; the count may be missing where English leaves it out in one of its forms, and in
    "{names} and {count} more sizes" a translation may count them all."""
    for entry in entries(path):
        allowed = {place for text in texts(entry.id) for place in _PLACE.findall(text)}
        needed = set.intersection(*({*_PLACE.findall(text)} for text in texts(entry.id)))
        for string in texts(entry.string):
            assert string, f"no translation of {entry.id!r}"
            places = {*_PLACE.findall(string.replace("{names} 等 {all}", "{names} 等 {count}"))}
            assert needed <= places <= allowed, entry.id
        assert not entry.fuzzy


@pytest.mark.parametrize("path", catalogues(), ids=lambda path: path.stem)
def test_a_plural_has_all_its_forms(path: Path) -> None:
    forms = read(path).num_plurals
    for entry in entries(path):
        assert isinstance(entry.id, tuple) == isinstance(entry.string, tuple)
        assert not isinstance(entry.string, tuple) or len(entry.string) == forms, entry.id


@pytest.mark.parametrize("path", catalogues(), ids=lambda path: path.stem)
def test_every_idea_of_the_advice_has_a_title(path: Path) -> None:
    rules = (ROOT / "grader" / "model" / "advice").glob("*.py")
    text = "".join(each.read_text() for each in rules)
    ideas = set(
        re.findall(r'advice\(\w+, "(\w+)"|idea ?= ?"(\w+)"(?: if .* else f?"(\w+)")?', text)
    )
    for idea in filter(None, itertools.chain.from_iterable(ideas)):
        said = msgspec.structs.replace(CONFLICTS, idea=idea, rule="")
        assert (title := advice_title(said)).text != "{words}", idea
        assert language(path.stem)(title) != str(title)


def test_chinese_has_its_own_spaces_and_punctuation() -> None:
    strings = [text for entry in entries(FOLDER / "zh_CN.po") for text in texts(entry.string)]
    assert [odd for text in strings for odd in oddities(text)] == []


def test_babel_finds_every_text() -> None:
    """They are literals; a text that is put together at run time would have no translation."""
    known = {text for entry in extracted() if entry.id for text in texts(entry.id)}
    for path in (*(ROOT / "grader").rglob("*.py"), *(ROOT / "ptxsim" / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute)):
                continue
            called = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            count = {"phrase": 1, "saying": 1, "counted": 2}.get(called, 0)
            for text in node.args[:count]:
                where = f"{path.relative_to(ROOT)}:{node.lineno}"
                assert isinstance(text, ast.Constant) and text.value in known, where


# --- which language


@pytest.mark.parametrize(("option", "environment", "lab", "code"), values(__file__, "choices.txt"))
def test_which_one(
    option: str | None, environment: dict[str, str], lab: str | None, code: str
) -> None:
    assert choose_language(option, environment, lab).code == code


def test_an_unknown_one_is_named_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"^tlh: .* en, zh_CN"):
        choose_language("tlh", {})
    assert known_languages()[0] == "en"


def test_the_option_may_stand_anywhere() -> None:
    assert language_of(["a", "--language", "zh", "--json"]) == ("zh", ["a", "--json"])
    assert language_of(["export", "csv", "--language=zh"]) == ("zh", ["export", "csv"])
    assert language_of(["--", "--language", "zh"]) == (None, ["--", "--language", "zh"])
    assert language_of(["a", "--language"]) == (None, ["a", "--language"])


def test_a_lab_names_one_that_there_is(tmp_path: Path) -> None:
    lab = tmp_path / "lab.yaml"
    lab.write_text(DEFAULT_LAB.read_text() + "\nlanguage: zh_CN\n")
    assert load_lab(lab).language == "zh_CN"
    lab.write_text(DEFAULT_LAB.read_text() + "\nlanguage: tlh\n")
    with pytest.raises(LabError, match=r"language: expected en or zh_CN, got 'tlh'"):
        load_lab(lab)


# --- grade new in Chinese


LABS = ROOT / "grader" / "labs"
STARTERS = sorted(
    file.relative_to(ROOT)
    for folder in (ROOT / "starter", ROOT / "starters")
    for file in folder.rglob("*.cu*")
)
CHINESE = language("zh_CN")
SIGN = re.compile(r"[\u4e00-\u9fff]")
COMMENT = re.compile(r"//.*")


@pytest.mark.parametrize("file", STARTERS, ids=str)
def test_only_comments_change(file: Path) -> None:
    english = (ROOT / file).read_text(encoding="utf-8")
    chinese = translated(english, CHINESE)
    assert code(chinese) == code(english)
    for paragraph in re.split(r"\n *//\n|\n(?! *//)", chinese):
        if comment := "".join(COMMENT.findall(paragraph)):
            assert SIGN.search(comment), comment


def code(source: str) -> list[str]:
    """The lines, without comments and without lines that hold nothing else."""
    assert "/*" not in source
    lines = (COMMENT.sub("", line).rstrip() for line in source.splitlines())
    return [line for line in lines if line]


def test_every_rung_says_in_chinese_what_it_changes(capsys: pytest.CaptureFixture[str]) -> None:
    for lab in (ROOT / "reference").iterdir():
        for rung in find_rungs(lab):
            assert cli.main(["rung", f"{lab.name}/{rung.name}", "--language", "zh"]) == 0
            shown = capsys.readouterr().out
            english = "".join(file.read_text() for file in sorted((lab / rung.name).glob("*.cu")))
            assert code(shown) == code(english)
            head, _, rest = shown.partition("\n// 改动：")
            assert head.startswith(f"// 第 {rung.number} 级"), head
            assert "\n// 原因：" in rest and "\n// Why:" not in rest


def test_a_string_is_no_comment() -> None:
    source = 'const char* text = "// row of C";  // row of C\nconst char slash = \'"\';  // sic\n'
    assert translated(source, CHINESE) == source.replace(";  // row of C", ";  // C 的行")


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LC_ALL", "C")
    assert cli.main(["new", "ann", "--language", "zh"]) == 0
    assert cli.main(["new", "bob"]) == 0
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert cli.main(["new", "carol", "--lab", "reduction"]) == 0
    readmes = {file.parent.name: file for file in tmp_path.glob("submissions/*/README*")}
    assert {name: bool(SIGN.search(file.read_text("utf-8"))) for name, file in readmes.items()} == {
        "ann": True,
        "bob": False,
        "carol": True,
    }
    assert {file.name for file in tmp_path.glob("submissions/*/*.md")} == {"README.md"}
    assert "// C 的行" in (tmp_path / "submissions/ann/sgemm.cu").read_text("utf-8")
    original = (ROOT / "starter" / "sgemm.cu").read_bytes()
    assert (tmp_path / "submissions/bob/sgemm.cu").read_bytes() == original


def test_a_language_without_a_readme_keeps_the_english_one(tmp_path: Path) -> None:
    lab = load_lab(LABS / "sgemm.yaml")
    unknown = type(CHINESE)("de", language("en").translations)
    folder = new_submission("dora", tmp_path, lab, None, unknown)
    assert [file.name for file in folder.glob("*.md")] == ["README.md"]
    assert "Write the fastest" in (folder / "README.md").read_text()


# --- a grading in Chinese


_SOURCE = re.compile(r"^.*│.*$", re.MULTILINE)
RIGHT = ROOT / "starter"
WRONG = ROOT / "tests" / "fixtures" / "broken"


def shown(graded: Graded, spoken: Language) -> str:
    return drawn(terminal.render(graded.result, graded.sources, spoken), 200)


def graded_in_chinese(folder: Path) -> tuple[Graded, list[str]]:
    stages: list[str] = []

    def told(stage: Message, words: Message) -> None:
        stages.append(CHINESE(words or stage))

    return grade_and_explain(folder, bench(), told), stages


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


# --- documents in both languages


SUFFIX = ".zh.md"
DOCUMENTS = (
    *(path.with_name(path.name.replace(".zh", "")) for path in sorted(ROOT.glob("docs/*.zh.md"))),
    *sorted((ROOT / "starter").glob("README.md")),
    *sorted((ROOT / "starters").glob("*/README.md")),
)
CODE = re.compile(r"```.*?```", re.DOTALL)
# Four English words in a row are a sentence that nobody translated.
SENTENCE = re.compile(r"(?:\b[a-z]{2,}\b[ ,.;]+){3}\b[a-z]{2,}\b")


def prose(text: str) -> str:
    return re.sub(r"`[^`\n]*`|\]\([^)]*\)", " ", CODE.sub("", text))


def shape(text: str) -> list[str]:
    """What a document is made of, in order: headings, tables with their columns, items, code."""
    parts = []
    for line in CODE.sub(lambda found: f"\n{found[0]!r}\n", text).splitlines():
        if mark := re.match(r"#+ |- |!\[", line):
            parts.append(mark[0])
        elif line.startswith("|"):
            parts.append(f"row of {line.count('|')}")
        elif line.startswith("'```"):
            parts.append(line)
    return parts


def words_of_code(text: str) -> Counter[str]:
    return Counter(re.findall(r"`([^`\n]+)`", CODE.sub("", text)))


def links(text: str) -> Counter[str]:
    """The files that links lead to; to a translation or its picture is to the original."""
    targets = re.findall(r"\]\(([^)#]*)", text)
    return Counter(target.replace(".zh.", ".") for target in targets)


def figures(text: str) -> Counter[str]:
    return Counter(re.findall(r"\d[\d.]*\d", re.sub(r"(?<=\d) (?=\d)", "", prose(text))))


@pytest.mark.parametrize("english", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_both_say_the_same(english: Path) -> None:
    first = english.read_text(encoding="utf-8")
    second = english.with_suffix(SUFFIX).read_text(encoding="utf-8")
    assert shape(first) == shape(second)
    assert words_of_code(first) == words_of_code(second)
    assert links(first) == links(second)
    assert figures(first) == figures(second)
    assert SENTENCE.findall(prose(second)) == []
