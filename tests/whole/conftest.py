"""What these tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands import STARTER

LAB = """\
id: quick
correctness: [[1, 1, 1]]
performance: [{mnk: [64, 64, 64]}]
cpu: [[1, 1, 1], [2, 3, 5]]
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "lab.yaml").write_text(LAB)
    folder = tmp_path / "submissions" / "alice"
    folder.mkdir(parents=True)
    (folder / "sgemm.cu").write_text(STARTER)
    return tmp_path
