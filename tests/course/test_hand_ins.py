"""The course's side of ``grade submit``, with a script in the place of Slurm's; tests/whole/
test_submit.py has a real sshd and a real Slurm."""

import io
import json
import os
import resource
import subprocess
import sys
import threading
import time
import unicodedata
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from grader.base.errors import GraderError, UsageError
from grader.course.hand_ins import receive
from grader.course.serving import Service
from tests.support.commands import QUICK, STARTER, environment, run, script
from tests.support.places import ROOT

SCRIPT = """\
cd "{place}"
case $1 in
  settings) cat settings ;;
  queue) grep -s "^$2|" jobs | sed "s/^$2/$(date +%s)/" ;;
  submit) [ ! -e down ] || {{ echo "sbatch: error: no answer" >&2; exit 1; }}
    echo "$@ [$SUBMIT_OPTIONS]" >>submitted; wc -l <submitted ;;
  find) echo "$2" >>sought; [ ! -e named ] || cat named ;;
  cancel) echo "$2" >>cancelled ;;
  version) echo "slurm 22" ;;
  board) shift; echo "board $*" ;;
esac
"""


class Course:
    """A checkout of which only slurm/serve.sh is used."""

    def __init__(self, place: Path) -> None:
        self.place = place
        (place / "labs").mkdir()
        for name in ("quick", "other"):
            (place / "labs" / f"{name}.yaml").write_text(QUICK.replace("quick", name))
        script(place / "slurm" / "serve.sh", SCRIPT.format(place=place))
        self.configure()

    def configure(self, **more: str) -> None:
        settings = {
            "GRADE_OUT": str(self.place / "out"),
            "GRADE_SUBMIT": str(self.place / "out" / ".submit"),
            "GRADE_LAB": str(self.place / "labs" / "quick.yaml"),
            "GRADE_POLL": "0.1",
            **more,
        }
        text = "".join(f"{name}={value}\0" for name, value in settings.items())
        (self.place / "settings").write_text(text)

    def ask(
        self, do: str, files: dict[str, str] | None = None, student: str | None = None, **more: Any
    ) -> list[dict[str, Any]]:
        """Return the answer of one connection."""
        contents = {name: text.encode() for name, text in (files or {}).items()}
        listed = [[name, len(content)] for name, content in contents.items()]
        request = {"do": do, "version": 1, "files": listed, "follow": False, **more}
        read, write = os.pipe()
        sent = json.dumps(request).encode() + b"\n" + b"".join(contents.values())
        threading.Thread(target=lambda: os.write(write, sent)).start()
        target = io.BytesIO()
        with os.fdopen(read, "rb") as source:
            service = Service(self.place, student or "ada", shared=student is not None)
            service.serve(source, target)
        os.close(write)
        return [json.loads(line) for line in target.getvalue().splitlines() if line[:1] == b"{"]

    def hand_in(self, text: str = STARTER, **more: Any) -> tuple[str, str, str]:
        """Return job, id and what was said; "" as job if it was refused."""
        answer = self.ask("submit", {"sgemm.cu": text}, **more)
        job = next((each for each in answer if each["say"] == "job"), {"job": "", "id": ""})
        said = " ".join(each["text"] for each in answer if each.get("text"))
        return job["job"], job["id"], said

    def folder(self, id: str, student: str = "ada") -> Path:
        return self.place / "out" / ".submit" / student / id

    def end(self, job: str, id: str, status: int, student: str = "ada") -> None:
        (self.folder(id, student) / "ended").write_text(f"{job} {status}\n")

    def submitted(self) -> list[str]:
        file = self.place / "submitted"
        return file.read_text().splitlines() if file.exists() else []


@pytest.fixture
def course(tmp_path: Path) -> Course:
    return Course(tmp_path)


# --- what is sent --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    (
        *("../a.cu", "/a.cu", "a/../b.cu", "a//b.cu", "", ".a.cu", "a/.git/b.cu", "-/../a.cu"),
        *("a\\b.cu", "C:a.cu", "a\nb.cu", "a\0b.cu", "a.cu.", "a.cu ", " a.cu", "$(touch x).cu"),
        *("\x1b[2J.cu", "\u202ea.cu", unicodedata.normalize("NFD", "é.cu"), "a`b`.cu", "con|.cu"),
    ),
)
def test_odd_names_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="plain letters"):
        receive([(name, 1)], io.BytesIO(b"x"))


def test_names_of_any_script_are_taken() -> None:
    listed = [("sgemm.cu", 1), ("李四/tile v2.cuh", 2), ("-x.h", 0), ("a+b@c.inc", 1)]
    found = receive(listed, io.BytesIO(b"abcd"))
    assert found == {"sgemm.cu": b"a", "李四/tile v2.cuh": b"bc", "-x.h": b"", "a+b@c.inc": b"d"}
    with pytest.raises(UsageError):
        receive([("a.cu", 1), ("a.cu", 1)], io.BytesIO(b"ab"))


@pytest.mark.parametrize(
    "sizes", [[], [-1], [4 << 20, 1], [1] * 65, [1 << 60], [5 << 20, -(1 << 20)]]
)
def test_more_than_a_submission_may_have_is_refused_unread(sizes: list[int]) -> None:
    with pytest.raises(UsageError, match="at most 4 MiB"):
        receive([(f"{i}.cu", size) for i, size in enumerate(sizes)], io.BytesIO())


def test_a_hand_in_is_kept_as_it_came(course: Course) -> None:
    job, id, said = course.hand_in(STARTER + "// \r\n")
    assert job == "1" and "handed in at " in said
    kept = course.folder(id)
    assert (kept / "ada" / "sgemm.cu").read_bytes().endswith(b"// \r\n")
    assert json.loads((kept / "hand-in.json").read_text())["lab"] == "quick"
    assert oct(course.place.joinpath("out", ".submit").stat().st_mode)[-3:] == "700"
    (line,) = course.submitted()
    assert f"submit  {kept}/ada --job-name=grade-{id}" in line and "--submitted 20" in line
    assert "--sandbox" not in line  # of a student's own account


@pytest.mark.parametrize(
    ("files", "more", "says"),
    [
        ({"kernel.cu": "x"}, {}, "sgemm.cu is missing"),
        ({"sgemm.cu": STARTER}, {"lab": "../../etc"}, "no lab"),
        ({"sgemm.cu": STARTER}, {"lab": "nothing"}, "no lab nothing in this course"),
        ({"sgemm.cu": STARTER}, {"labs": ["beef"]}, "another version"),
        ({"sgemm.cu": STARTER}, {"partition": "-x"}, "partition: not understood"),
        ({"sgemm.cu": STARTER}, {"account": "a --wrap=id"}, "account: not understood"),
        ({"sgemm.cu": STARTER}, {"gpu": ".."}, "gpu: not understood"),
        ({"sgemm.cu": STARTER}, {"version": 2}, "another version of grade-submit.py"),
        ({"sgemm.cu": STARTER}, {"do": "reboot"}, "not a request"),
        ({"sgemm.cu": STARTER}, {"student": "ben", "gpu": "h100"}, "the course chooses it"),
        ({"sgemm.cu": STARTER}, {"student": "ben", "account": "x"}, "the course chooses it"),
    ],
)
def test_what_is_refused_leaves_nothing(
    files: dict[str, str], more: dict[str, Any], says: str, course: Course
) -> None:
    answer = course.ask(more.pop("do", "submit"), files, **more)
    assert says in " ".join(each.get("text", "") for each in answer), answer
    assert answer[-1] == {"say": "end", "status": 2}
    assert not course.submitted() and not list(course.place.rglob("hand-in.json"))
    assert not list(course.place.glob("out/.submit/*/.*"))


def test_a_name_in_authorized_keys_is_a_name(course: Course) -> None:
    for name in ("..", "a/b", ".x", "", "a b "):
        with pytest.raises(GraderError):
            Service(course.place, name, shared=True)


# --- once, and limits ----------------------------------------------------------------------------


def test_the_same_again_is_the_same_hand_in(course: Course) -> None:
    job, id, _ = course.hand_in()
    assert course.hand_in()[:2] == (job, id)  # while it waits
    course.end(job, id, 1)
    again = course.hand_in()
    assert again[:2] == (job, id) and "--again hands it in anew" in again[2]
    assert len(course.submitted()) == 1
    second = course.hand_in(again="x")
    assert second[0] == "2" and second[1] != id
    assert course.hand_in(again="x")[:2] == second[:2]


def test_other_files_or_another_lab_are_another(course: Course) -> None:
    ids = set()
    for number, (text, more) in enumerate(
        [
            (STARTER, {}),
            (STARTER + " ", {}),
            (STARTER, {"lab": "other"}),
            (STARTER, {"profile": True}),
        ]
    ):
        job, id, _ = course.hand_in(text, **more)
        assert job == str(number + 1)
        course.end(job, id, 0)
        ids.add(id)
    assert len(ids) == 4


def test_one_job_at_a_time(course: Course) -> None:
    job, id, _ = course.hand_in()
    refused = course.hand_in("// other\n" + STARTER)
    assert refused[0] == "" and f"job {job} is not over yet: --fetch {id} waits" in refused[2]
    assert course.hand_in(student="ben")[0] == "2"  # nobody else waits for it
    (course.place / "jobs").write_text(f"{job}|RUNNING|0|None\n")
    assert course.hand_in("// other\n" + STARTER)[0] == ""
    (course.place / "jobs").write_text(f"{job}|NODE_FAIL|0|None\n")
    assert course.hand_in("// other\n" + STARTER)[0] == "3"


def test_attempts_of_a_day(course: Course) -> None:
    """What the machine failed at counts for nothing; nor do yesterday's, or another lab's."""
    course.configure(GRADE_ATTEMPTS="2")
    for number, status in enumerate((0, 3, 1)):
        job, id, said = course.hand_in(f"// {number}\n{STARTER}")
        assert job, said
        course.end(job, id, status)
    refused = course.hand_in("// 4\n" + STARTER)
    tomorrow = (datetime.now().astimezone() + timedelta(days=1)).strftime("%Y-%m-%dT00:00")
    assert (
        refused[0] == ""
        and f"2 of 2 hand-ins a day for quick are used; again from {tomorrow}" in refused[2]
    )
    assert course.hand_in(f"// 2\n{STARTER}")[1] == id  # a replay is answered all the same
    other = course.hand_in("// 4\n" + STARTER, lab="other")
    assert other[0]
    course.end(*other[:2], 0)
    facts = course.folder(id) / "hand-in.json"
    earlier = json.loads(facts.read_text())
    when = datetime.fromisoformat(earlier["when"]) - timedelta(days=1)
    facts.write_text(json.dumps({**earlier, "when": when.isoformat()}))
    assert course.hand_in("// 4\n" + STARTER)[0]


def test_what_was_cancelled_counts_if_it_ran(course: Course) -> None:
    course.configure(GRADE_ATTEMPTS="1")
    job, id, _ = course.hand_in()
    (answer,) = (each for each in course.ask("cancel", id=id) if each["say"] == "text")
    assert answer["text"] == f"Job {job} was cancelled."
    assert (course.place / "cancelled").read_text().split() == [job]
    (course.place / "jobs").write_text(f"{job}|CANCELLED|0|None\n")
    second = course.hand_in("// 2\n" + STARTER)
    assert second[0] == "2"  # the first had not begun
    (course.place / "jobs").write_text(f"{job}|CANCELLED|0|None\n2|CANCELLED|0|None\n")
    (course.folder(second[1]) / "cancelled").touch()
    (course.place / "out" / "logs").mkdir(parents=True)
    (course.place / "out" / "logs" / "2.log").touch()
    assert "are used" in course.hand_in("// 3\n" + STARTER)[2]


def test_what_the_machine_lost_is_handed_in_again_with_its_time(course: Course) -> None:
    job, id, _ = course.hand_in()
    facts = course.folder(id) / "hand-in.json"
    stamped = {**json.loads(facts.read_text()), "when": "2026-01-31T12:00:00+08:00"}
    facts.write_text(json.dumps(stamped))
    course.end(job, id, 3)
    again = course.hand_in()
    assert again[:2] == ("2", id)
    assert "--submitted 2026-01-31T12:00:00+08:00" in course.submitted()[1]


def test_a_crash_before_the_job_was_noted(course: Course) -> None:
    """Slurm is asked for a job of this name; a job that is over has left its own note."""
    _, id, _ = course.hand_in()
    (course.folder(id) / "job").unlink()
    (course.place / "named").write_text("41\n")
    assert course.hand_in()[:2] == ("41", id)
    assert (course.place / "sought").read_text() == f"grade-{id}\n"
    (course.folder(id) / "job").unlink()
    course.end("40", id, 0)
    assert course.hand_in()[:2] == ("40", id)
    assert len(course.submitted()) == 1


def test_slurm_that_takes_no_job(course: Course) -> None:
    (course.place / "down").touch()
    answer = course.ask("submit", {"sgemm.cu": STARTER})
    assert "sbatch: error: no answer" in answer[-2]["text"] and answer[-1]["status"] == 3
    (course.place / "down").unlink()
    assert course.hand_in()[0] == "1"


def test_a_shared_account_needs_a_sandbox_and_chooses_itself(course: Course) -> None:
    course.configure(GRADE_TYPES="a100 2080ti", GRADE_OPTIONS="--sandbox off")
    job, id, _ = course.hand_in(student="ben", gpu="a100")
    (line,) = course.submitted()
    assert line.endswith("--sandbox require]") and line.startswith("submit a100 ")
    for do in ("follow", "cancel"):  # of others nobody is told whether it is there
        answer = course.ask(do, student="eve", id=id)
        assert "no such hand-in" in answer[-2]["text"] and answer[-1]["status"] == 2
    assert not (course.place / "cancelled").exists()
    assert job and [each["say"] for each in course.ask("status", student="eve")] == ["hello", "end"]


def test_a_group_is_one(course: Course) -> None:
    roster = course.place / "roster.csv"
    roster.write_text("student,name,group\nada,Ada,team\nben,Ben,team\neve,Eve,\n")
    course.configure(GRADE_ROSTER=str(roster))
    job, id, _ = course.hand_in(student="ada")
    assert course.hand_in(student="ben")[:2] == (job, id)
    assert course.hand_in("// x\n" + STARTER, student="ben")[0] == ""
    assert (course.folder(id, "team") / "team" / "sgemm.cu").exists()
    assert course.hand_in(student="eve")[1] and (course.place / "out/.submit/eve").exists()


def test_late_work_is_told_so(course: Course) -> None:
    lab = course.place / "labs" / "quick.yaml"
    lab.write_text(f"{QUICK}time: {{due: '2026-01-01T00:00+08:00'}}\n")
    assert "days late" in course.hand_in()[2]
    zh = course.hand_in(language="zh_CN")[2]
    assert zh != course.hand_in()[2]


@pytest.mark.parametrize(
    ("shown", "says"),
    [("", "--pseudonyms"), ("names", "board  --lab"), ("none", "this course shows no board")],
)
def test_the_board_is_shown_as_the_course_says(shown: str, says: str, course: Course) -> None:
    course.configure(GRADE_BOARD=shown)
    answer = course.ask("board")
    assert says in answer[1]["text"]
    assert ("--pseudonyms" in answer[1]["text"]) == (not shown)


# --- the queue -----------------------------------------------------------------------------------


def test_slurm_is_asked_once_for_all_who_wait(tmp_path: Path) -> None:
    """By the real script. A stamp from a clock that is ahead is none."""
    asked, queue = tmp_path / "asked", tmp_path / "out" / ".submit" / ".queue"
    queue.parent.mkdir(parents=True)
    answer = "7|PENDING|gpu|Priority\n8|PENDING|cpu|None\n9|PENDING|gpu|Resources\n3|RUNNING|gpu|"
    call = f'echo once >>"{asked}"\n[ ! -e "{tmp_path}/down" ] && echo "{answer}"'
    script(tmp_path / "squeue", call)
    home = tmp_path / "home"
    (home / "slurm").mkdir(parents=True)
    for name in ("serve.sh", "settings.sh"):
        (home / "slurm" / name).symlink_to(ROOT / "slurm" / name)
    settings = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "GRADE_OUT": str(tmp_path / "out")}
    command = [str(home / "slurm" / "serve.sh"), "queue", "9"]
    started = [subprocess.Popen(command, env={**os.environ, **settings}) for _ in range(8)]
    assert [each.wait() for each in started] == [0] * 8
    assert asked.read_text() == "once\n"
    stamps, *lines = queue.read_text().splitlines()
    assert lines == [
        "7|PENDING|1|Priority",
        "8|PENDING|1|None",
        "9|PENDING|2|Resources",
        "3|RUNNING|0|",
    ]
    queue.write_text("\n".join([f"{int(time.time()) + 900} 1", *lines]) + "\n")
    run(command, tmp_path, **settings)
    assert asked.read_text().count("once") == 2
    (tmp_path / "down").touch()
    old = queue.read_text().splitlines()
    queue.write_text("\n".join(["1 1", *old[1:]]) + "\n")
    run(command, tmp_path, **settings)
    now = queue.read_text().splitlines()
    assert now[1:] == lines and now[0].endswith(" 1") and not now[0].startswith("1 ")
    run(command, tmp_path, **settings)
    assert asked.read_text().count("once") == 3  # nor is a Slurm that is down asked more often
    assert stamps


def test_a_place_in_the_queue_is_told(course: Course) -> None:
    job, _, _ = course.hand_in()
    (course.place / "jobs").write_text(f"{job}|PENDING|3|Resources\n")
    (said,) = (each["text"] for each in course.ask("status") if each["say"] == "text")
    assert said.endswith(f"quick: job {job} waits (Resources) at place 3 in the queue")


# --- as a process --------------------------------------------------------------------------------


def test_a_full_disk_and_files_that_come_cut_short(tmp_path: Path) -> None:
    """Nothing is kept of them, and nothing is given to Slurm."""
    course = Course(tmp_path)
    text = STARTER + "//" + "x" * 100_000

    def small_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))

    listed = [["sgemm.cu", len(text)]]
    request = json.dumps({"do": "submit", "version": 1, "files": listed, "follow": False}) + "\n"
    command = [sys.executable, "-m", "grader.cli", "serve-submission", "--home", str(tmp_path)]
    for sent, says in ((text, "cannot keep it, and nothing counts"), (text[:-1], "cut short")):
        done = subprocess.run(
            command, input=(request + sent), env=environment(), preexec_fn=small_disk,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        answer = [json.loads(line) for line in done.stdout.splitlines()]
        assert says in answer[-2]["text"] and answer[-1]["status"] == 3 == done.returncode, done
        assert not course.submitted() and not list(tmp_path.glob("out/.submit/*/*/*"))
