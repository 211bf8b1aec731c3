"""What these tests share."""

from pathlib import Path

import pytest

from tests.support.commands import QUICK, hand_in


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "lab.yaml").write_text(QUICK)
    hand_in(tmp_path / "submissions" / "alice")
    return tmp_path
