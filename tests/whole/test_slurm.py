"""The scripts in slurm/ on a real cluster of five nodes. The simulator stands in for the GPUs."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.base.native import cache_folder
from grader.base.records import Verdict
from grader.results import store
from grader.results.result import Result
from ptxsim import answer_of
from tests.support.cluster import Cluster, missing
from tests.support.commands import STARTER, Done, environment, hand_in, run, script
from tests.support.places import BROKEN, ROOT

pytestmark = pytest.mark.skipif(
    bool(missing()) and not os.environ.get("CI"),
    reason="no job is submitted to a real Slurm: not installed: " + ", ".join(missing()),
)
ENDLESS = (BROKEN / "host_endless_loop" / "sgemm.cu").read_text()
LAB = """\
id: quick
correctness: [[1, 1, 1]]
performance: [{{mnk: [64, 64, 64]}}]
cpu: [[2, 3, 5], [33, 17, 20]]
limits: {{simulate_s: 2, record_s: {seconds}, total_s: 300}}
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    # Sockets need a short path, wherever the other temporary folders are.
    folder = tempfile.TemporaryDirectory(prefix="slurm-", dir="/tmp")
    with folder as path, Cluster(Path(path) / "c") as running:
        yield running


class Site:
    """A user's folder, and a checkout that nothing may be written to, on the cluster."""

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        self.home = folder / "check out"
        for part in ("slurm", "grader/base/catalogues"):
            shutil.copytree(ROOT / part, self.home / part)
        call = f'PYTHONPATH="{ROOT}" exec "{sys.executable}" -m grader.cli "$@"'
        wrapper = script(self.home / "grade", call)
        self.place = folder / "some where"
        self.out = self.place / "out put"
        self.place.mkdir()
        (self.place / "lab.yaml").write_text(LAB.format(seconds=2))
        (self.place / "slow.yaml").write_text(LAB.format(seconds=200))
        self.cluster = cluster
        self.environment = {
            **cluster.environment,
            "GRADE_BIN": str(wrapper),
            "GRADE_OUT": str(self.out),
            "GRADE_LAB": str(self.place / "lab.yaml"),
            "GRADE_DEVICE": "cpu",
            "GRADE_POLL": "1",
            "COLUMNS": "120",
            "SGEMM_GRADER_CACHE": str(cache_folder()),
            "GRADE_CACHE": str(cache_folder()),
        }

    def submissions(self, **texts: str) -> list[str]:
        for name, text in texts.items():
            hand_in(self.place / "work" / name, text)
        return [f"work/{name}" for name in texts]

    def run(self, *command: str | Path, **changes: str) -> Done:
        return run(command, self.place, **{**self.environment, **changes})

    def script(self, name: str) -> Path:
        return self.home / "slurm" / name

    def sbatch(self, *arguments: str | Path, **changes: str) -> str:
        done = self.run("sbatch", "--parsable", *arguments, **changes)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def wait(self, *states: str, job: str | None = None, seconds: float = 120) -> None:
        """Until the job is in one of the states; without any, until nothing is in the queue."""
        deadline = time.monotonic() + seconds
        selection = ("-j", job) if job else ()
        while True:
            there = set(self.run("squeue", "-h", "-o", "%T", *selection).stdout.split())
            there -= {"COMPLETED", "FAILED"}
            if there & set(states) or not (states or there):
                return
            assert time.monotonic() < deadline, (there, self.logs())
            time.sleep(0.1)

    def logs(self) -> str:
        return "\n".join(path.read_text() for path in sorted(self.out.rglob("*.log")))

    def verdicts(self) -> dict[str, Verdict]:
        return {student: result.verdict for student, result in self.results().items()}

    def results(self, out: Path | None = None) -> dict[str, Result]:
        """By student; fails where a student has two, or a file is not whole."""
        loaded = [store.load(path) for path in store.stored(out or self.out)]
        assert len({result.submission.student for result in loaded}) == len(loaded)
        assert not list((out or self.out).rglob("*.tmp"))
        return {result.submission.student: result for result in loaded}


@pytest.fixture
def site(tmp_path: Path, cluster: Cluster) -> Iterator[Site]:
    made = Site(tmp_path, cluster)
    (made.home / "slurm" / "site.env").touch()
    before = _files(made.home)
    yield made
    cluster.run("scancel", "--user", "root" if os.geteuid() == 0 else os.environ["USER"])
    made.wait()
    assert _files(made.home) == before  # a checkout may be read-only


def _files(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


def test_one_submission(site: Site) -> None:
    (alice,) = site.submissions(alice=STARTER)
    job = site.sbatch("--gres=gpu:2080ti:1", site.script("run.sh"), alice)
    site.wait()
    result = site.results()["alice"]
    slurm = result.environment.slurm
    assert result.verdict is Verdict.AC and slurm is not None
    assert (slurm.job, slurm.node[:4], slurm.partition) == (job, "ti-0", "gpu")
    assert len(list(site.out.rglob("*.html"))) == 1
    assert "AC accepted" in (site.out / "logs" / f"{job}.log").read_text()


@pytest.mark.sampled
@pytest.mark.parametrize("tasks", [6, pytest.param(40, marks=pytest.mark.nightly)])
def test_an_array_and_a_node_that_dies(tasks: int, site: Site, cluster: Cluster) -> None:
    texts = {f"s{i:02}": STARTER for i in range(tasks - 3)}
    texts["error"] = "int x = ;"
    texts["hang"] = (BROKEN / "endless_loop" / "sgemm.cu").read_text()
    texts["crash"] = (BROKEN / "null_pointer" / "sgemm.cu").read_text()
    folders = site.submissions(**texts)
    array = f"--array=0-{tasks - 1}"
    site.sbatch(array, "--gres=gpu:1", "--cpus-per-task=4", site.script("run.sh"), *folders)
    site.wait("RUNNING")
    victims = site.run("squeue", "-h", "-t", "R", "-o", "%N").stdout.split()
    cluster.crash(victims[0])
    cluster.say_down(victims[0])
    cluster.boot(victims[0])
    site.wait()
    expected = dict.fromkeys(texts, Verdict.AC)
    expected |= {"error": Verdict.CE, "hang": Verdict.TLE, "crash": Verdict.RE}
    assert site.verdicts() == expected


@pytest.mark.slow
def test_the_time_limit_is_told(site: Site) -> None:
    (slow,) = site.submissions(slow=ENDLESS)
    site.sbatch(
        "--time=1", "--signal=B:USR1@55", site.script("run.sh"), slow,
        GRADE_LAB=str(site.place / "slow.yaml"),
    )  # fmt: skip
    site.wait()
    result = site.results()["slow"]
    assert result.verdict is Verdict.TLE and "out of time" in str(result.error)


def test_names_that_look_like_settings_and_options(site: Site) -> None:
    """As from a bare ``*``: after ``--`` none is taken for anything but a name."""
    names = ("GRADE_BIN=evil", "-x y", "class", "a'$(touch pwned)\nb")
    for name in names:
        hand_in(site.place / name)
    site.sbatch(site.script("run.sh"), "--settings", f"GRADE_OUT={site.out}", "--", *names)
    site.wait()
    assert site.verdicts() == dict.fromkeys(names, Verdict.AC), site.logs()
    assert not list(site.place.rglob("pwned"))


@pytest.mark.sampled
def test_a_class_is_compiled_in_a_job_for_its_type_of_gpu(site: Site) -> None:
    """Its folder has a name that the shell must quote in bash's own way."""
    folder = site.place / "it's\nJos\u00e9"
    shutil.copytree(ROOT / "starter", folder / "ann")
    calls = site.place / "calls"
    note = f'echo "${{SLURM_JOB_PARTITION:-login}} $*" >>"{calls}"\n'
    noting = script(site.place / "noting", f'{note}exec "{site.environment["GRADE_BIN"]}" "$@"')
    asked = {"GRADE_BIN": str(noting), "GRADE_CPU_PARTITION": "cpu", "LC_ALL": "C"}
    done = site.run(site.script("class.sh"), folder, "2080ti", **asked)
    assert done.returncode == 0, done.stderr
    site.wait()
    assert site.results(site.out / "2080ti")["ann"].verdict is Verdict.AC, site.logs()
    (log,) = (site.out / "2080ti" / "logs").glob("compile-*.log")
    assert "compiled" in log.read_text()
    assert "\ncpu class --compile sm_75 " in calls.read_text()
    done = site.run(site.script("class.sh"), folder, "voodoo", **asked)
    assert done.returncode == 2 and "no GPU is known as voodoo: set GRADE_ARCH" in done.stderr


@pytest.mark.sampled
def test_what_slurm_would_refuse_is_said_before_anything_is_submitted(site: Site) -> None:
    node = site.place / "node"  # a grader that is asked for nothing else, so that it answers fast
    sandboxes = (
        "sandbox       ok  bubblewrap",
        "sandbox       -   limits only\nLandlock      -   old",
    )
    config = "MaxArraySize is 101: raise GRADE_CHUNK"
    for sandbox, words, settings, says in (
        (
            0,
            "a100",
            {},
            ("partition  gpu\n", "memory     8192 MiB. GRADE_MEM: MiB that a job requests"),
        ),
        (0, "", {}, ("sandbox    bubblewrap\n",)),
        (1, "", {}, ("sandbox    refused: hidden sizes", "limits only\nLandlock      -   old")),
        (1, "a100 101", {}, ("array      101 tasks, of at most 101\n",)),
        (0, "a100 102", {}, (f"array      refused: 102 tasks; {config}",)),
        (0, "", {"GRADE_MEM": "99999"}, ("memory     refused: 99999 MiB: ", "16384 MiB at most")),
        (0, "h100", {}, ("GPU        refused: --gres=gpu:h100:1: ", "gpu:2080ti:4 in gpu*")),
        (0, "", {"SBATCH_PARTITION": "no"}, ("partition  refused: Invalid partition", "cpu (up)")),
        (0, "", {"GRADE_CPU_PARTITION": "no"}, ("on CPUs    refused: ", "set GRADE_CPU_PARTITION")),
    ):
        script(node, f'[ $1 = labs ] && echo 8192 sm_80 || echo "{sandboxes[sandbox]}"')
        done = site.run(site.script("check.sh"), *words.split(), GRADE_BIN=str(node), **settings)
        assert all(each in done.stdout for each in says), done
        assert done.returncode == ("refused" in done.stdout) == ("refused" in "".join(says)), done
    site.submissions(ann=STARTER)
    known = {*site.run("squeue", "-h", "-t", "all", "-o", "%i").stdout.split()}
    done = site.run(site.script("class.sh"), "work", "a100", GRADE_MEM="99999")
    assert done.returncode == 1 and not done.stdout
    assert "memory     refused: " in done.stderr and "nothing was submitted" in done.stderr
    assert {*site.run("squeue", "-h", "-t", "all", "-o", "%i").stdout.split()} <= known


@pytest.mark.sampled
def test_put_back_into_the_queue(site: Site) -> None:
    (alice,) = site.submissions(alice=STARTER)
    slow = str(site.place / "slow.yaml")
    (site.place / alice / "sgemm.cu").write_text(ENDLESS)
    job = site.sbatch(site.script("run.sh"), alice, GRADE_LAB=slow)
    site.wait("RUNNING", job=job)
    log = site.out / "logs" / f"{job}.log"
    while "recording" not in (log.read_text() if log.exists() else ""):
        time.sleep(0.1)
    site.run("scontrol", "requeue", job)
    (site.place / alice / "sgemm.cu").write_text(STARTER)
    site.wait("PENDING", job=job)
    site.wait()
    result = site.results()["alice"]
    assert result.verdict is Verdict.AC
    assert result.environment.slurm and result.environment.slurm.restarts == 1


@pytest.mark.sampled
def test_a_machine_that_fails_is_tried_again_and_then_left(site: Site) -> None:
    (alice,) = site.submissions(alice=STARTER)
    tried = site.place / "tried"
    broken = script(site.place / "broken", f'echo once >>"{tried}"\nexit 3')
    job = site.sbatch(site.script("run.sh"), alice, GRADE_BIN=str(broken), GRADE_RETRIES="1")
    site.wait()
    assert tried.read_text().split() == ["once", "once"]
    shown = site.run("scontrol", "show", "job", job).stdout
    assert "ExitCode=3:0" in shown
    assert site.results() == {}


@pytest.mark.slow
def test_two_classes_at_once_and_again(site: Site) -> None:
    site.submissions(**dict.fromkeys(("ann", "bob", "cid", "dan", "eve"), STARTER))
    shutil.copytree(site.place / "work", site.place / "other")
    (site.place / "other" / "eve" / "sgemm.cu").write_text("int x = ;")
    outs = {"work": site.out, "other": site.place / "results of others"}
    for folder, out in outs.items():
        # Settings reach the jobs of a site that keeps environments from them, too.
        export = {"work": "ALL", "other": "NONE"}[folder]
        done = site.run(
            site.script("class.sh"), folder, "a100",
            GRADE_OUT=str(out), GRADE_CHUNK="2", SBATCH_EXPORT=export,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "5 submissions in 3 tasks" in done.stdout
    site.wait()
    for folder, out in outs.items():
        found = Counter(result.verdict for result in site.results(out / "a100").values())
        assert found == ({Verdict.AC: 5} if folder == "work" else {Verdict.AC: 4, Verdict.CE: 1})
        assert (out / "a100" / "leaderboard.html").exists()
        assert json.loads((out / "a100" / "missing.json").read_text()) == {"students": []}
    (site.place / "work" / "eve" / "sgemm.cu").write_text(STARTER + "// better\n")
    started = time.monotonic()
    again = site.run(site.script("class.sh"), "work", "a100")
    assert "1 submissions in 1 tasks" in again.stdout, again
    site.wait()
    assert time.monotonic() - started < 30
    nothing = site.run(site.script("class.sh"), "work", "a100")
    assert "Nothing is left to grade" in nothing.stdout


@pytest.mark.sampled
def test_the_ladder_on_two_types_of_gpu(site: Site) -> None:
    done = site.run(
        site.script("ladder.sh"), "a100", "2080ti", GRADE_OPTIONS="--only 01_naive --no-report"
    )
    assert done.returncode == 0, done.stderr
    assert "the ladder on a100" in done.stdout
    site.wait()
    for kind in ("a100", "2080ti"):
        (document,) = (site.out / kind / "ladder").glob("*.json")
        assert "01_naive" in document.read_text()


@pytest.mark.sampled
def test_nothing_of_the_callers_environment(site: Site) -> None:
    """--export=NONE, another working directory, settings from the checkout's own file."""
    (alice,) = site.submissions(alice=STARTER)
    kept = ("GRADE_BIN", "GRADE_OUT", "GRADE_LAB", "GRADE_DEVICE", "SGEMM_GRADER_CACHE")
    settings = {name: site.environment[name] for name in kept}
    file = site.home / "slurm" / "site.env"
    file.write_text("".join(f"{name}='{value}'\n" for name, value in settings.items()))
    call = ("sbatch", "--parsable", "--export=NONE", site.script("run.sh"), site.place / alice)
    done = answer_of(call, cwd="/", env=site.cluster.environment)
    assert done.returncode == 0, done.stderr
    site.wait()
    job = done.stdout.strip()
    assert site.results()["alice"].verdict is Verdict.AC, site.logs()
    assert (site.out / "logs" / f"{job}.log").exists()


@pytest.mark.sampled
def test_what_a_student_types(site: Site) -> None:
    good, wrong = site.submissions(good=STARTER, wrong=STARTER.replace("C[", "C[1 + ", 1))
    done = site.run(site.script("judge.sh"), good, "--gres=gpu:a100:1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("Started slurm job ")
    assert "waiting...\n" in done.stdout
    assert re.search(r"\nJob \d+ started on [\s\S]*AC accepted", done.stdout)
    (log,) = (site.out / "logs").iterdir()
    job = log.stem
    assert done.stdout.endswith(log.read_text())  # to the end, and nothing twice
    shown = site.run("scontrol", "show", "job", job).stdout
    assert f"StdOut={log}\n" in shown and "MinMemoryNode=8G" in shown
    done = site.run(site.script("judge.sh"), wrong)
    assert done.returncode == 1
    assert "RE runtime error" in done.stdout
    # What an earlier job recorded is no answer of this one, which records nothing.
    real = site.environment["GRADE_BIN"]
    call = f'case $1 in labs | report) exec "{real}" "$@" ;; esac; exit 3'
    broken = script(site.place / "broken", call)
    asked = {"GRADE_BIN": str(broken), "GRADE_RETRIES": "0"}
    done = site.run(site.script("judge.sh"), good, **asked)
    assert done.returncode == 3
    assert "No result was recorded" in done.stdout


@pytest.mark.nightly  # it compiles the engine twice
def test_nothing_of_the_grader_is_compiled_in_a_job(site: Site) -> None:
    (alice,) = site.submissions(alice=STARTER)
    ready, cold = site.place / "ready", site.place / "cold"
    done = site.run(site.environment["GRADE_BIN"], "doctor", "--prepare", ready)
    assert done.returncode == 0, done.stderr
    shared = {"GRADE_PREPARED": str(ready), "SGEMM_GRADER_CACHE": str(cold)}
    site.sbatch(site.script("run.sh"), alice, **shared)
    site.wait()
    assert site.verdicts() == {"alice": Verdict.AC}, site.logs()
    assert not list(cold.glob("native/*"))


@pytest.mark.sampled
def test_waiting_asks_slurm_seldom(site: Site) -> None:
    """Once in 15 seconds; and what is said of the queue makes sense from the first line on."""
    (alice,) = site.submissions(alice=STARTER)
    asked, real = site.place / "asked", site.run("which", "squeue").stdout.strip()
    script(site.place / "bin" / "squeue", f'echo once >>"{asked}"\nexec {real} "$@"')
    path = f"{site.place / 'bin'}:{site.environment['PATH']}"
    started = time.monotonic()
    done = site.run(site.script("judge.sh"), alice, "--begin=now+4", GRADE_POLL="", PATH=path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(asked.read_text().split()) <= 1 + (time.monotonic() - started) / 15
    assert "(BeginTime) at place 1 in the queue" in done.stdout
    assert "None" not in done.stdout and "place 0" not in done.stdout


def test_judge_says_what_is_wrong_with_a_folder(site: Site) -> None:
    (alice,) = site.submissions(alice=STARTER)
    for name, says in (
        ("nowhere", "nowhere: no such folder"),
        (f"{alice}/sgemm.cu", "a file; name the folder that holds it"),
        ("work", f"a folder of submissions; name one, such as {alice}, or grade all with"),
    ):
        done = site.run(site.script("judge.sh"), name)
        assert done.returncode == 2 and says in done.stderr and not done.stdout


@pytest.mark.sampled
def test_ctrl_c_leaves_the_job_running(site: Site) -> None:
    (alice,) = site.submissions(alice=STARTER)
    with subprocess.Popen(
        [site.script("judge.sh"), alice, "--begin=now+3"],
        cwd=site.place,
        env=environment(**site.environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as judge:
        assert judge.stdout
        while "place" not in judge.stdout.readline():
            pass
        judge.send_signal(signal.SIGINT)
        said = judge.stdout.read()
    assert "goes on" in said
    assert judge.returncode == 130
    site.wait()
    assert site.results()["alice"].verdict is Verdict.AC
