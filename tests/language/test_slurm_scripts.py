"""The scripts in slurm/ look their sentences up in the catalogues of ``grade``."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from grader.language import choose_language
from grader.model import Message
from tests.support.catalogues import of_shell
from tests.support.places import ROOT

SCRIPTS = sorted((ROOT / "slurm").glob("*.sh"))
FILLED = {"job": '12&\\"', "log": "/a b/{x}.log"}


def texts() -> list[str]:
    found = []
    for script in SCRIPTS:
        with script.open("rb") as file:
            found += [text for _, _, text, _ in of_shell(file, None, None, None)]
    return found


def said(asked: list[str], home: Path, **environment: str) -> list[str]:
    """By the scripts, each with the same arguments."""
    given = shlex.join(word for pair in FILLED.items() for word in pair)
    lines = [f"source {shlex.quote(str(ROOT / 'slurm' / 'say.sh'))}"]
    lines += [f"say {shlex.quote(text)} {given}" for text in asked]
    asks = {"PATH": "/usr/bin:/bin", "GRADE_HOME": str(home), **environment}
    done = subprocess.run(["bash", "-euc", "\n".join(lines)], env=asks, capture_output=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout.decode().splitlines()


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"LANG": "C.UTF-8", "LANGUAGE": "zh_CN"},
        {"LANG": "de_DE.UTF-8", "LANGUAGE": "fr:zh:en"},
        {"LANG": "zh_TW.UTF-8"},
        {"LANG": "zh_CN.UTF-8", "LC_MESSAGES": "en_GB.UTF-8"},
    ],
)
def test_a_script_speaks_as_grade_does(environment: dict[str, str]) -> None:
    spoken = choose_language(None, environment)
    wanted = [spoken(Message(text=text, args=FILLED)) for text in texts()]
    assert len(wanted) > 10
    assert said(texts(), ROOT, **environment) == wanted


def test_another_language_is_one_file(tmp_path: Path) -> None:
    folder = tmp_path / "grader" / "language"
    folder.mkdir(parents=True)
    (folder / "de.po").write_text(
        'msgid ""\nmsgstr ""\n"Language: de\\n"\n\n'
        'msgid ""\n"job {job} "\n"goes on"\nmsgstr ""\n"Auftrag {job} "\n"läuft \\"weiter\\""\n'
    )
    asked = ["job {job} goes on", "cancelled"]
    spoken = [f'Auftrag {FILLED["job"]} läuft "weiter"', "cancelled"]
    assert said(asked, tmp_path, LANG="de_AT") == spoken
