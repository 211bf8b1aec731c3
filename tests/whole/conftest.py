"""What these tests share."""

from pathlib import Path

import pytest

from tests.support.commands import QUICK, STARTER


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "lab.yaml").write_text(QUICK)
    folder = tmp_path / "submissions" / "alice"
    folder.mkdir(parents=True)
    (folder / "sgemm.cu").write_text(STARTER)
    return tmp_path
