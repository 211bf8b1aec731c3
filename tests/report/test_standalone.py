"""A picture as PNG needs fonts: with some of the machine's hidden, letters are missed, not lost."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from grader.sandbox import bubblewrap
from tests.support.bench import needs_bubblewrap
from tests.support.boards import climbing

FONTS = Path("/usr/share/fonts")
LATIN = next(FONTS.rglob("DejaVuSans.ttf"), None)
needs_latin = pytest.mark.skipif(
    LATIN is None and "CI" not in os.environ,
    reason="no PNG is drawn with a Latin font alone: apt-get install fonts-dejavu-core",
)


def history_with_fonts(
    fonts: tuple[Path, ...], tmp_path: Path, *options: str
) -> subprocess.CompletedProcess[str]:
    """``grade history --svg --png`` where only these fonts are, in the user's own folder."""
    climbing(tmp_path)
    own = tmp_path / "home/.local/share/fonts"
    own.mkdir(parents=True)
    for font in fonts:
        shutil.copy(font, own)
    found = bubblewrap.working()
    assert found is not None
    command = [str(found[0]), "--dev-bind", "/", "/"]
    for hidden in (FONTS, Path("/usr/local/share/fonts")):
        command += ["--tmpfs", str(hidden)] if hidden.exists() else []
    command += ["--setenv", "HOME", str(own.parents[2]), "--unsetenv", "XDG_DATA_HOME"]
    command += [sys.executable, "-m", "grader.cli", "history", "alice", "--out", str(tmp_path)]
    command += ["--svg", str(tmp_path / "c.svg"), "--png", str(tmp_path / "c.png"), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def assert_all_but_the_png(tmp_path: Path) -> None:
    assert (tmp_path / "c.svg").exists()
    assert (tmp_path / "sgemm" / "alice" / "history-gpu.html").exists()
    assert not (tmp_path / "c.png").exists()


@pytest.mark.sampled
@needs_bubblewrap
def test_without_any_font_one_line_says_what_to_install(tmp_path: Path) -> None:
    done = history_with_fonts((), tmp_path)

    assert done.returncode == 3
    complaint = done.stderr.splitlines()[-1]
    assert "PNG: found no font for " in complaint and "fonts-dejavu-core" in complaint
    assert "fonts-wqy-microhei" in complaint and "--svg needs none" in complaint
    assert_all_but_the_png(tmp_path)


@pytest.mark.sampled
@needs_latin
@needs_bubblewrap
def test_a_font_in_the_users_own_folder_is_enough(tmp_path: Path) -> None:
    assert LATIN is not None, "apt-get install fonts-dejavu-core"
    done = history_with_fonts((LATIN,), tmp_path)

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


@needs_latin
@needs_bubblewrap
def test_a_font_without_chinese_draws_no_boxes_for_it(tmp_path: Path) -> None:
    assert LATIN is not None, "apt-get install fonts-dejavu-core"
    done = history_with_fonts((LATIN,), tmp_path, "--language", "zh_CN")

    assert done.returncode == 3
    complaint = done.stderr.splitlines()[-1]
    assert "字体" in complaint and "fonts-wqy-microhei" in complaint
    named = complaint.partition("显示")[2].partition("的字体")[0]
    assert named and not any(each.isascii() and each.isalnum() for each in named)
    assert_all_but_the_png(tmp_path)
