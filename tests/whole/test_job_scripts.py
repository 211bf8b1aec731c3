"""The scripts in slurm/ by themselves; test_slurm.py runs them on a cluster."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.commands import assert_clean_shell
from tests.support.commands import script as write_script
from tests.support.places import ROOT

SCRIPTS = sorted((ROOT / "slurm").glob("*.sh"))
COMMANDS = [path for path in SCRIPTS if path.name != "settings.sh"]
JOBS = ("run.sh", "leaderboard.sh")  # what they say before they have a log, nobody sees


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts_are_clean_and_short(script: Path) -> None:
    assert len(script.read_text().splitlines()) <= 80
    assert_clean_shell(script)


def stops(script: Path, place: Path, says: str, **settings: str) -> None:
    """It ends with status 3 and a line that is seen, and runs no command of the grader's."""
    (place / "alice").mkdir(exist_ok=True)
    called = place / "called"
    write_script(place / "grade", f"touch '{called}'")
    environment = {
        "PATH": f"{place}:/usr/bin:/bin",
        "HOME": str(place),
        "SLURM_JOB_ID": "7",
        "SLURM_SUBMIT_DIR": str(place),
        **settings,
    }
    done = subprocess.run(
        ["bash", str(script), "alice"], cwd=place, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 3, done.stderr
    assert says in done.stderr
    if script.name in JOBS and environment["SLURM_JOB_ID"]:
        assert says in (place / "slurm-7.out").read_text()
    assert not called.exists()


@pytest.mark.parametrize("script", COMMANDS, ids=lambda path: path.name)
def test_a_script_that_was_copied_elsewhere_stops(script: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copy(script, tmp_path))
    stops(copy, tmp_path, "checkout")


@pytest.mark.parametrize("script", COMMANDS, ids=lambda path: path.name)
def test_settings_that_fail_stop_a_script(script: Path, tmp_path: Path) -> None:
    """Another lab would be graded, or nothing be stored."""
    home = tmp_path / "check out"
    shutil.copytree(ROOT / "slurm", home / "slurm")
    copy = home / "slurm" / script.name
    checkout = {"GRADE_HOME": str(home)}
    stops(copy, tmp_path, "GRADE_SITE=/nowhere cannot", GRADE_SITE="/nowhere", **checkout)
    stops(copy, tmp_path, "GRADE_OUT=/proc/x cannot", GRADE_OUT="/proc/x", **checkout)
    default = home / "slurm" / "site.env"
    default.symlink_to("gone")  # there, and not even root can read it
    stops(copy, tmp_path, "site.env cannot be read", **checkout)
    default.unlink()
    default.write_text('GRADE_LAB="lab.yaml\nGRADE_OUT=results\n')
    stops(copy, tmp_path, "site.env: line 1: unexpected EOF", **checkout)


def test_a_job_is_no_command(tmp_path: Path) -> None:
    stops(ROOT / "slurm" / "run.sh", tmp_path, "submit it with sbatch", SLURM_JOB_ID="")


@pytest.mark.parametrize(("status", "noted"), [(0, "7 0\n"), (1, "7 1\n"), (143, None), (3, None)])
def test_a_hand_in_is_over_where_grade_came_to_its_end(
    status: int, noted: str | None, tmp_path: Path
) -> None:
    """A node that dies tells grade to end, and Slurm starts the job again."""
    (tmp_path / "logs").mkdir()
    environment = {
        "PATH": "/usr/bin:/bin",
        "SLURM_JOB_ID": "7",
        "SLURM_SUBMIT_DIR": str(tmp_path),
        "GRADE_HOME": str(ROOT),
        "GRADE_OUT": str(tmp_path),
        "GRADE_BIN": str(write_script(tmp_path / "grade", f"exit {status}")),
        "GRADE_HAND_IN": str(tmp_path),
        "GRADE_RETRIES": "0",
    }
    done = subprocess.run(["bash", ROOT / "slurm/run.sh", "alice"], env=environment, check=False)
    ended = tmp_path / "ended"
    assert done.returncode == status, (tmp_path / "logs" / "7.log").read_text()
    assert (ended.read_text() if ended.exists() else None) == noted
