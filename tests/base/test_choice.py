"""The language: of the command line, else of the environment, else of the lab, else English."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.base.errors import LabError, UsageError
from grader.base.language import choose_language, known_languages
from grader.cli.options import language_of
from grader.labs.lab import DEFAULT_LAB, load_lab


@pytest.mark.parametrize(
    ("option", "environment", "lab", "code"),
    [
        ("zh_CN", {"LANG": "en_US.UTF-8"}, "en", "zh_CN"),
        ("zh", {}, None, "zh_CN"),
        ("zh-Hans", {}, None, "zh_CN"),
        ("en", {"LANG": "zh_CN.UTF-8"}, "zh_CN", "en"),
        (None, {"LANG": "zh_CN.UTF-8"}, None, "zh_CN"),
        (None, {"LANG": "zh_CN.UTF-8", "LC_ALL": "en_GB.UTF-8"}, "zh_CN", "en"),
        (None, {"LANG": "en_US", "LC_MESSAGES": "zh_CN.GB18030"}, None, "zh_CN"),
        (None, {"LANG": "de_DE.UTF-8", "LANGUAGE": "de:zh_CN:en"}, None, "zh_CN"),
        (None, {"LANG": "C.UTF-8"}, "zh_CN", "zh_CN"),
        (None, {"LC_ALL": "POSIX", "LANG": "zh_CN"}, None, "en"),
        (None, {"LANG": "de_DE.UTF-8"}, "zh_CN", "zh_CN"),
        (None, {"LANG": ""}, None, "en"),
    ],
)
def test_which_one(
    option: str | None, environment: dict[str, str], lab: str | None, code: str
) -> None:
    assert choose_language(option, environment, lab).code == code


def test_an_unknown_one_is_named_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"--language tlh: .* en, zh_CN"):
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
