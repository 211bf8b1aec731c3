"""``grade new`` in Chinese: the comments and the README change, the code does not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from grader.base.language import language, translated
from grader.cli import entry as cli
from grader.cli.new_command import new_submission
from grader.labs.lab import load_lab
from tests.support.places import ROOT

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


def test_a_string_is_no_comment() -> None:
    source = 'const char* text = "// row of C";  // row of C\nconst char slash = \'"\';  // none\n'
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
