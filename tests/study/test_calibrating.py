"""``grade calibrate``, and the figures that a course keeps of its cards."""

import ctypes
import re
from io import StringIO
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

import grader.run
from grader.base import UsageError, gpus
from grader.cli import calibrate_command
from grader.model.calibration import FITTED, calibration
from grader.run.gpu.messages import host_library
from grader.study import calibrate, course_cards
from tests.support.places import ROOT

CARD = msgspec.structs.replace(FITTED.card, gpu="NVIDIA A100-PCIE-40GB", launch_us=10.16)


@pytest.fixture(autouse=True)
def a_card(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(vars(grader.run), "measure_card", lambda: CARD)


def test_what_was_measured_is_what_grades_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SGEMM_GRADER_PREPARED", str(tmp_path))
    monkeypatch.setattr(calibrate_command, "require_gpu", lambda: None)
    console = Console(width=100, record=True, file=StringIO())
    options = calibrate_command.CalibrateOptions(file=None)

    assert calibrate_command.run(options, console) == 0

    assert (tmp_path / "calibration" / "NVIDIA-A100-PCIE-40GB.json").is_file()
    assert course_cards() == (CARD,)
    a100 = gpus.named("A100 40GB")
    assert calibration(a100, course_cards()).launch_us == pytest.approx(2 * FITTED.launch_us, 1e-3)
    assert re.search(r"launch_us +10\.16 +5\.08", console.export_text())


def test_without_the_folder_it_needs_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SGEMM_GRADER_PREPARED", raising=False)
    with pytest.raises(UsageError, match="name a file, or set SGEMM_GRADER_PREPARED"):
        calibrate(None)
    assert calibrate(tmp_path / "card.json")[0] == tmp_path / "card.json"


@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
def test_its_program_compiles(arch: str) -> None:
    """For cards with other products on tensor cores; a GPU's machine runs it."""
    library = ctypes.CDLL(str(host_library(arch, ROOT / "grader" / "run" / "gpu" / "card.cu")))

    assert library.measure_card
