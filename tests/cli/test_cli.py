"""The command line as a user meets it: real processes, exit statuses, one-line errors."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from grader.base.records import Verdict
from grader.cli.doctor_command import MachineCheck
from grader.cli.entry import load, main, unsupported
from grader.cli.export_command import COMMAND
from grader.cli.formats import RENDERERS
from grader.cli.grade_command import Format
from grader.labs.lab import shipped_labs
from grader.results import store
from grader.results.result import LabRef
from ptxsim.text import Message, verbatim
from tests.support import boards, commands
from tests.support.catalogues import assert_chinese
from tests.support.commands import Processes, environment
from tests.support.files import beside, table, values
from tests.support.places import ROOT
from tests.support.results import RACE, WRONG, make_result

HIDDEN = """\
groups:
  public: {weight: 60}
  hidden:
    weight: 40
    seed_file: hidden.seed
    cpu: [{ranges: [5, 7, [1, 9]]}]
    performance: [{ranges: [9, 9, [1, 9]]}]
"""
GRADE = (sys.executable, "-m", "grader.cli")
NAIVE = ROOT / "starter"
LAB = commands.QUICK


def run(*arguments: str | Path, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    return commands.run(commands.grade(*arguments), cwd, COLUMNS="200", **more)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder to work in, with a small lab file."""
    (tmp_path / "lab.yaml").write_text(LAB)
    return tmp_path


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which alice has been graded by the small lab; tests share it."""
    place = tmp_path_factory.mktemp("graded")
    (place / "lab.yaml").write_text(LAB)
    submission(place, "alice")
    assert (
        run("submissions/alice", "--lab", "lab.yaml", "--device", "cpu", cwd=place).returncode == 0
    )
    return place


def submission(place: Path, name: str, text: str | None = None) -> Path:
    """A copy of the starter, or a submission with this sgemm.cu."""
    folder = place / "submissions" / name
    shutil.copytree(NAIVE, folder)
    if text is not None:
        (folder / "sgemm.cu").write_text(text)
    return folder


def test_a_wrong_calibration_is_told_before_anything_is_compiled(place: Path) -> None:
    """By the commands that grade one submission, a class and the ladder."""
    submission(place, "alice", "#error compiled")
    (place / "calibration").mkdir()
    (place / "calibration" / "card.json").write_text("{}")
    for command in (("submissions/alice",), ("class", "submissions"), ("ladder",)):
        done = run(*command, "--device", "cpu", cwd=place, SGEMM_GRADER_PREPARED=str(place))
        assert done.returncode == 2
        assert "card.json: not what grade calibrate writes: " in done.stderr
    assert not (place / "results").exists()


def starter_with(old: str, new: str) -> str:
    text = (NAIVE / "sgemm.cu").read_text()
    assert old in text
    return text.replace(old, new)


# --- a grading ---------------------------------------------------------------------------------


def test_an_accepted_submission(place: Path) -> None:
    submission(place, "alice")
    done = run("submissions/alice", "--lab", "lab.yaml", cwd=place)
    assert done.returncode == 0, done.stderr
    assert "alice: AC accepted" in done.stdout and "result: results/" in done.stdout
    for words in ("compiling", "recording", "simulating"):
        assert words in done.stderr and words not in done.stdout
    (document,) = (place / "results").rglob("*.json")
    result = store.load(document)
    assert result.verdict is Verdict.AC
    assert document == store.result_path(place / "results", result)
    assert [case.verdict for case in result.cases] == [Verdict.AC] * 3
    assert result.build is not None and result.build.kernels[0].registers > 0
    assert result.lines and result.environment.device == "cpu"


def test_an_accepted_grade_fits_one_screen(place: Path) -> None:
    """alice's own kernel by the default lab: at most 120 words, progress included."""
    shutil.copytree(ROOT / "submissions" / "alice", place / "submissions" / "alice")
    done = run("alice", "--device", "cpu", cwd=place)
    assert done.returncode == 0, done.stderr
    assert len((done.stdout + done.stderr).split()) <= 120, done.stdout
    for words in ("7 more sizes: right", "A100 80GB PCIe: ", "next: sgemm.cu:", "report: results/"):
        assert words in done.stdout
    assert "H200: " not in done.stdout
    (document,) = (place / "results").glob("sgemm/alice/*.json")
    *others, largest = json.loads(document.read_text())["cases"]
    part, corner = largest["tile"], [128 * row + column for row in range(8) for column in range(8)]
    assert (part["operand"], part["rows"], part["columns"]) == ("C", 128, 128)
    assert part["threads"] == [[8 * 128 * t + each for each in corner] for t in range(4)]
    assert not any(case["tile"] for case in others)
    whole = run("report", "alice", "-v", "--no-report", cwd=place).stdout
    for words in ("256×128×64", "warps on an SM", "A100", "by the counts of its launch"):
        assert words in whole
    first = run("report", "alice", "--hint", "1", "--no-report", cwd=place).stdout
    assert ": Look here: on " in first and "grade rung" not in first
    verdict = run("report", "alice", "-q", cwd=place).stdout
    assert verdict.startswith("alice: AC accepted") and verdict.count("\n") == 1


def test_json_is_the_document_and_nothing_else(place: Path) -> None:
    """Of a folder that is named like a command."""
    shutil.copytree(NAIVE, place / "doctor")
    done = run("--json", "--out", "elsewhere", "--lab", "lab.yaml", "./doctor", cwd=place)
    assert done.returncode == 0
    assert done.stdout.count("\n") == 1
    document = json.loads(done.stdout)
    assert document["schema"] == "sgemm-grader/result"
    assert document["submission"]["student"] == "doctor"
    (stored,) = (place / "elsewhere").rglob("*.json")
    assert json.loads(stored.read_text()) == document
    assert document["build"]["arch"] == "sm_80"
    (launch,) = document["launches"]  # at the lab's largest size
    assert (launch["block"], launch["times"]) == ([16, 16, 1], 1)
    assert not (place / "results").exists()


@pytest.mark.parametrize(("old", "new", "words"), values(__file__, "wrong.txt"))
def test_what_is_wrong_has_its_place(old: str, new: str, words: Sequence[str], place: Path) -> None:
    text = starter_with(old, new)
    line = next(n for n, t in enumerate(text.splitlines(), 1) if "sum += A" in t)
    done = run(submission(place, "bob", text), "--lab", "lab.yaml", cwd=place)
    assert done.returncode == 1
    verdict, *others = words
    assert f"bob: {verdict}" in done.stdout
    for each in others:
        assert each.replace("{line}", str(line)) in done.stdout
    assert ("No performance score" in done.stdout) == (verdict[:2] != "CE")


def test_several_submissions_give_the_worst_status(place: Path) -> None:
    """A folder without sgemm.cu is FE and has a document; none is wrong usage."""
    submission(place, "alice")
    (place / "empty").mkdir()
    done = run("empty", "nowhere", "submissions/alice", "--json", "--lab", "lab.yaml", cwd=place)
    assert done.returncode == 2
    empty, alice = map(json.loads, done.stdout.splitlines())
    assert (empty["verdict"], alice["verdict"]) == ("FE", "AC")
    assert "sgemm.cu is missing" in str(msgspec.convert(empty["error"], Message))
    assert empty["build"] is None and empty["cases"] == []
    assert "grade: nowhere: no such folder" in done.stderr


@pytest.mark.parametrize(("arguments", "said"), values(__file__, "leaving.txt"))
def test_a_reader_that_leaves_ends_a_command_quietly(
    arguments: Sequence[str], said: str, place: Path
) -> None:
    """``grade … | head``; a result is stored nevertheless."""
    submission(place, "alice")
    pipes: dict[str, Any] = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
    command = [*GRADE, *arguments]
    with subprocess.Popen(command, cwd=place, env=environment(), text=True, **pipes) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        words = process.stderr.read()
    assert process.returncode == 141
    assert "Traceback" not in words and "BrokenPipe" not in words
    assert said in words if said else not words
    assert bool(list(place.glob("results/*/alice/*.json"))) == bool(said)


# --- Ctrl-C ------------------------------------------------------------------------------------

ENDLESS = "for (volatile int forever = 1; forever;) {}"


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_ctrl_c_leaves_no_process_and_no_file(sent: int, status: int, place: Path) -> None:
    submission(place, "eve", starter_with("float sum = 0.0f;", f"float sum = 0.0f; {ENDLESS}"))
    with subprocess.Popen(
        [*GRADE, "--lab", "lab.yaml", "submissions/eve"],
        cwd=place,
        env=environment(SGEMM_TEST_MARK=str(place)),  # by which its processes are known
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stderr is not None
        words = ""
        while "simulating" not in words:
            line = process.stderr.readline()
            assert line, words
            words += line
        time.sleep(0.1)  # its loop is called endless within a second
        os.killpg(process.pid, sent)
        words += process.stderr.read()
    assert process.returncode == status, words
    assert "Traceback" not in words
    assert Processes(place).look() == {}
    assert not (place / "results").exists()


# --- usage -------------------------------------------------------------------------------------

CHECKED = MachineCheck(name=verbatim("a part"), ok=True, needed=True, found=())
USAGE_ERRORS: dict[str, tuple[Sequence[str], str]] = {
    **{name: (words.split(), said) for name, words, said in table(__file__, "usage_errors.txt")},
    **{
        f"name {name!r}": (["new", name], "is not allowed as a name")
        for name in ("../x", ".x", "a\tb", "a\u202eb", "李 四", "四" * 65, "")
    },
}


@pytest.mark.parametrize(("arguments", "words"), USAGE_ERRORS.values(), ids=USAGE_ERRORS.keys())
def test_usage_errors_are_one_line(arguments: Sequence[str], words: str, place: Path) -> None:
    (place / "submissions" / "alice").mkdir(parents=True)
    (place / "bad.yaml").write_text(
        "id: x\ncorrectness: [[1, 1, 1]]\nperformance: [{mnk: [1, 1, 1]}]\n"
    )
    done = run(*arguments, cwd=place)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stdout == "" and "Traceback" not in done.stderr


STORING = ([], ["--json"], ["--format", "csoj"], ["sweep"], ["profile"])


@pytest.mark.parametrize("words", STORING, ids=" ".join)
def test_the_folder_of_all_is_no_submission(words: Sequence[str], place: Path) -> None:
    for name in ("alice", "bob"):
        submission(place, name)
    done = run(*words, "submissions", "--lab", "lab.yaml", cwd=place)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(
        "grade: submissions: a folder of submissions (alice, bob), not one itself; grade one of "
        "them, or all with: grade class submissions\n"
    )
    assert not (place / "results").exists()


@pytest.mark.parametrize("words", [*STORING, ["--out", "more/results"]], ids=" ".join)
def test_results_do_not_go_into_a_submission(words: Sequence[str], place: Path) -> None:
    folder = submission(place, "alice").rename(place / "alice")
    before = set(folder.rglob("*"))
    done = run(*words, ".", "--lab", place / "lab.yaml", cwd=folder)
    assert done.returncode == 2
    assert done.stderr.endswith("name one with --out\n")
    assert done.stdout == "" and set(folder.rglob("*")) == before


@pytest.mark.parametrize("names", ["submissions/alice", "handed/alice"])
def test_inside_a_submission_results_are_the_course_s(names: str, place: Path) -> None:
    """Whether its folder's name or the course's file tells where the course is."""
    folder = place / names
    shutil.copytree(NAIVE, folder)
    before = {*folder.iterdir()}
    if folder.parent.name == "handed":
        (place / "grade.toml").write_text('lab = "lab.yaml"\n')
    for named in (".", "alice"):
        done = run(named, "--lab", "../../lab.yaml", "--no-report", cwd=folder)
        assert done.returncode == 0, done.stderr
        assert "alice: AC accepted" in done.stdout and "result: ../../results/quick/" in done.stdout
    assert {*folder.iterdir()} == before
    (document,) = (place / "results").rglob("*.json")
    assert document.parent == place / "results" / "quick" / "alice"
    done = run("report", names, "-q", "--lab", "lab.yaml", cwd=place)
    assert done.returncode == 0, done.stderr
    if folder.parent.name == "submissions":
        done = run("report", "alice", "-q", "--lab", "../lab.yaml", cwd=folder.parent)
        assert done.returncode == 0, done.stderr


def test_a_gpu_that_is_not_there_cannot_be_asked_for(place: Path) -> None:
    submission(place, "alice")
    done = run("submissions/alice", "--device", "gpu", cwd=place, CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("grade: --device gpu: ")


def test_auto_says_that_it_simulates(place: Path) -> None:
    done = run("nowhere", cwd=place, CUDA_VISIBLE_DEVICES="")
    assert "no NVIDIA GPU here: kernels run in the simulator on the CPU" in done.stderr
    assert "GPU" not in run("nowhere", "--device", "cpu", cwd=place).stderr


# --- the other commands ------------------------------------------------------------------------


@pytest.mark.parametrize(("words", "status", "answer"), values(__file__, "answers.txt"))
def test_an_answer_goes_to_stdout(words: str, status: int, answer: str, graded: Path) -> None:
    done = run(*words.split(), cwd=graded)
    assert done.returncode == status, done.stderr
    assert re.match(answer, done.stdout), done.stdout
    assert not re.search(answer, done.stderr)


COMMANDS = sorted(
    path.name.removesuffix("_command.py").replace("_", "-")
    for path in (ROOT / "grader/cli").glob("*_command.py")
)


def test_help_lists_every_command(place: Path) -> None:
    done = run("--help", cwd=place)
    listed = re.findall(r"^    ([a-z-]+)(?:  |$)", done.stdout, re.MULTILINE)
    assert sorted([*listed, "grade"]) == COMMANDS


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = [] if name == "grade" else [name]
    with pytest.raises(SystemExit) as ended:
        main([*words, "--help"])
    told = capsys.readouterr()
    assert ended.value.code == 0
    assert told.out.startswith(" ".join(["usage: grade", *words, "[-h]"]))
    usage, description, _options = told.out.split("\n\n", 2)
    assert description.strip() and "None" not in usage + description
    below = next((each for each in load(name).commands), None)
    for more in ([], [below] if below else []):
        with pytest.raises(SystemExit):
            main([*words, *more, "--help", "--language", "zh"])
        assert_chinese(re.sub(r"\{.*?\}", "", capsys.readouterr().out, flags=re.DOTALL))


@pytest.mark.parametrize(("words", "said"), values(__file__, "wrong_usage.txt"))
def test_wrong_usage_in_two_languages(
    words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_every_format_is_offered() -> None:
    assert get_args(Format) == (*RENDERERS,) == ("json", *[*COMMAND.commands][:5])


def test_help_loads_only_what_it_needs(place: Path) -> None:
    look = beside(__file__, "help.py.in")
    assert commands.run([sys.executable, "-c", look], place).stdout == "False\n"


OUTSIDE = "leads out of the file's own folder; name it by --out or GRADE_OUT"


def test_a_course_has_defaults_of_its_own(
    graded: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Paths in its file are relative to it; a variable goes before the file, an option before
    both."""

    def answers(words: str) -> str:
        main(words.split())
        return "".join(capsys.readouterr())

    (graded / "grade.toml").write_text('lab = "lab.yaml"\nout = "results"\nlanguage = "zh"\n')
    (graded / "below" / "submissions").mkdir(parents=True)
    (graded / "link").symlink_to(graded.parent)
    (graded / "below" / "submissions" / "alice").symlink_to(graded / "submissions" / "alice")
    monkeypatch.chdir(graded / "below")
    output = answers(f"report {graded}/submissions/alice -q")
    assert "alice: AC 通过" in output
    assert "../grade.toml 指定了 --lab ../lab.yaml, --out ../results, --language zh\n" in output
    assert "alice: AC accepted" in answers(f"report {graded}/submissions/alice -q --language en")
    monkeypatch.setenv("GRADE_OUT", "elsewhere")
    output = answers(f"report {graded}/submissions/alice --language en")
    assert "no result of these files in elsewhere" in output
    assert "../grade.toml chooses --lab ../lab.yaml\n" in output
    assert "chooses" not in answers(f"report {graded}/submissions/alice --language en --lab sgemm")
    monkeypatch.setattr("grader.cli.doctor_command._attempt", lambda *_: CHECKED)
    for words in ("--lab ../lab.yaml (../grade.toml)", "--out elsewhere (GRADE_OUT)"):
        assert words in answers("doctor")
    for text, mistake in (
        ('labb = "x"', "../grade.toml: labb: unknown key; known here: lab, out, language; did you"),
        ("lab = 3", "../grade.toml: lab: expected a text, such as lab = "),
        ("lab", "../grade.toml: cannot be read: "),
        *((f'out = "{out}"', f"../grade.toml: out: {OUTSIDE}") for out in ("../a", "/tmp", "link")),
    ):
        (graded / "grade.toml").write_text(text)
        assert mistake in answers("labs")
    (graded / "grade.toml").unlink()
    (graded / "link").unlink()


def test_a_file_of_defaults_runs_no_code(tmp_path: Path) -> None:
    """Anybody may have written the nearest one; a submission's author, where its folder is here."""
    mark, folder = tmp_path / "mark", tmp_path / "alice"
    shutil.copytree(ROOT / "submissions" / "alice", folder)
    (folder / "own.py").write_text(f"open({str(mark)!r}, 'w')")
    (folder / "own.yaml").write_text("id: sgemm\nextends: sgemm\nproblem: own.py\n")
    (folder / "grade.toml").write_text('lab = "own.yaml"\n')
    assert run(".", cwd=folder).stderr.startswith("grade: grade.toml: lies in a submission")
    (tmp_path / "grade.toml").write_text('lab = "alice/own.yaml"\n')
    for words in (("alice",), ("class", "."), ("sass", "alice"), ("new", "bob")):
        done = run(*words, cwd=tmp_path)
        choice, mistake = done.stderr.splitlines()
        assert choice == "grade.toml chooses --lab alice/own.yaml"
        assert mistake.startswith("grade: alice/own.yaml: problem: is Python"), done
        assert done.returncode == 2
    assert not mark.exists()
    assert "expected one class" in run("alice", "--lab", "alice/own.yaml", cwd=tmp_path).stderr
    assert mark.exists()


def test_shells_complete_commands_options_and_folders(graded: Path) -> None:
    typed = {
        "grade doc": "doctor",
        "grade submiss": "submissions",
        "grade sass --li": "--listing",
        "grade watch sub": "submissions",
        "grade export canv": "canvas",
    }
    calls = "\n".join(f"press {words}" for words in typed)
    press = beside(__file__, "press.sh.in", calls=calls)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = commands.run(["bash", "-c", press], graded, PATH=path)
    assert done.stdout.splitlines() == list(typed.values()), done.stderr
    assert run("completion", "zsh", cwd=graded).stdout.startswith("#compdef grade")


def test_new_copies_the_starter_and_never_overwrites(place: Path) -> None:
    done = run("new", "frank", cwd=place)
    assert done.returncode == 0, done.stderr
    assert "submissions/frank/sgemm.cu" in done.stdout
    folder = place / "submissions" / "frank"
    names = {"README.md", "compile_flags.txt", "gemm.cuh", "sgemm.cu"}
    assert {path.name for path in folder.iterdir()} == names
    (folder / "sgemm.cu").write_text("mine")
    done = run("new", "frank", cwd=place)
    assert done.returncode == 2
    assert "already exists" in done.stderr
    assert (folder / "sgemm.cu").read_text() == "mine"
    assert [p.name for p in folder.parent.iterdir()] == ["frank"]


@pytest.mark.parametrize("name", ["李四", "Zoe\u0308", "नमस्ते", "Łukasz-2"])
def test_a_name_is_of_any_script(
    name: str, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    composed = unicodedata.normalize("NFC", name)
    assert main(["new", name]) == 0
    assert f"then: grade submissions/{composed}\n" in capsys.readouterr().out
    assert (place / "submissions" / composed / "sgemm.cu").is_file()


def test_editors_understand_a_new_submission(place: Path) -> None:
    """clang-tidy reads compile_flags.txt as clangd does, and sees what a student does wrong."""
    run("new", "frank", cwd=place)
    source = place / "submissions" / "frank" / "sgemm.cu"
    tidy = [str(Path(sys.executable).with_name("clang-tidy"))]
    tidy += ["--checks=-*,clang-diagnostic-*,misc-unused-alias-decls", str(source)]
    done = subprocess.run(tidy, capture_output=True, text=True, cwd=place)
    assert "error:" not in done.stdout, done.stdout
    source.write_text(starter_with("float sum = 0.0f;", "float sum = threadIdx.w;"))
    done = subprocess.run(tidy, capture_output=True, text=True, cwd=place)
    assert re.search(r"sgemm\.cu:\d+:\d+: error: no member named 'w'", done.stdout), done.stdout


def test_report_shows_a_stored_result_again(place: Path) -> None:
    result = make_result(cases=(WRONG,), findings=(RACE,), verdict=Verdict.WA)
    path = store.save(place / "results", result)
    done = run("report", path, cwd=place)
    assert done.returncode == 0
    assert "alice: WA wrong answer" in done.stdout
    assert "race: two threads touch tile[3]" in done.stdout
    assert "report: " in done.stdout and path.with_suffix(".html").exists()


def test_report_finds_the_result_of_a_submission(place: Path) -> None:
    """And so does its former name, which writes no page."""
    submission(place, "alice")
    assert run("result", "submissions/alice", cwd=place).returncode == 3
    graded = run("submissions/alice", "--no-report", cwd=place)
    (path,) = (place / "results").glob("*/alice/*.json")
    done = run("result", "submissions/alice", cwd=place)
    assert (done.returncode, "alice: AC" in done.stdout) == (graded.returncode, True)
    assert not path.with_suffix(".html").exists()
    assert run("report", "submissions/alice", "--job", "7", cwd=place).returncode == 3
    assert run("report", "submissions/alice", cwd=place).returncode == graded.returncode
    assert path.with_suffix(".html").exists()


def test_doctor_lists_what_it_looked_at_and_names_remedies(place: Path) -> None:
    done = run("doctor", cwd=place)
    assert done.returncode == 0, done.stderr
    for word in ("Python", "C++ compiler", "nvcc", "recorder", "simulator", "sandbox", "nvdisasm"):
        assert word in done.stdout
    done = run("doctor", cwd=place, NVCC_CCBIN="/nowhere/g++")
    assert done.returncode == 3
    assert "apt-get install g++" in done.stdout and "compiles for about" in done.stderr


def test_a_fault_of_the_grader_is_no_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("grader.cli.labs_command.run", lambda *_: 1 // 0)
    assert main(["labs"]) == 3
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_labs_are_known_by_name(place: Path) -> None:
    done = run("labs", cwd=place)
    assert done.returncode == 0
    rows = re.sub(r" *\n {9,}", " ", done.stdout).splitlines()
    told, topics, topic = {}, {}, ""
    for row in rows[2:]:
        if row.startswith(" "):
            name, task = re.split(r"   +", row.strip(), maxsplit=1)
            told[name], topics[name] = task, topic
        else:
            topic = row.strip()
    assert len({*told.values()}) == len(told) == len(shipped_labs())
    assert "TFLOPS, beside cuBLAS" in told["sgemm (default)"]
    assert topics["sgemm-sizes"] == "products of matrices" != topics["sgemm-tensor"]
    assert next(iter(topics.values())) == topics["vector-add"] == "introduction"
    listed = json.loads(run("labs", "--json", cwd=place).stdout)
    assert {"lab": "hgemm", "topic": "tensor-cores", "task": told["hgemm"]} in listed
    assert {each["lab"] for each in listed} == {*shipped_labs()}
    for name, words in (
        ("ladder", "timed sizes: 4 (1024, …, 8192);"),
        ("sgemm-curve", "up to 120 points, by a curve"),
        ("sgemm-row", "all row-major; sgemm.cu; timed sizes: 2 (4096, 8192);"),
    ):
        assert words in told[name]

    done = run("new", "grace", "--lab", "sgemm-row", cwd=place)
    assert "then: grade submissions/grace --lab sgemm-row\n" in done.stdout
    header = (place / "submissions" / "grace" / "gemm.cuh").read_text()
    assert "B  k×n, row-major" in header


# --- where it cannot work ----------------------------------------------------------------------


@pytest.mark.parametrize(("system", "machine", "words"), values(__file__, "machines.txt"))
def test_machines_that_cannot_grade_are_told_so(system: str, machine: str, words: str) -> None:
    said = unsupported(system, machine)
    assert words in said
    assert bool(said) == bool(words)


@pytest.mark.parametrize(
    ("command", "heavy"),
    [("grade_command", "grader.judge.pipeline"), ("class_command", "grader.study.worker")],
)
def test_other_processes_start_before_a_command_has_loaded_everything(
    command: str, heavy: str
) -> None:
    """The GPU's worker, and the process that a class's workers are forked from."""
    code = f"import sys, grader.cli.{command}; sys.exit({heavy!r} in sys.modules)"
    assert commands.run([sys.executable, "-c", code], ROOT).returncode == 0


@pytest.mark.parametrize(("words", "shown"), values(__file__, "eighty_columns.txt"))
def test_eighty_columns(
    words: str,
    shown: str,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Twelve students take twelve lines, and a message one line, however long its path is."""
    monkeypatch.chdir(place)
    monkeypatch.setenv("COLUMNS", "80")
    kernel = (ROOT / "tests" / "fixtures" / "correct" / "tiled_template" / "sgemm.cu").read_text()
    for number in range(12):
        name = f"student_of_a_long_name_{number}_in_a_group_of_four"
        for lab, points in (("a" * 64, 90.0), ("b" * 64, 80.0 - number)):
            boards.keep(place / "results", name, points, lab=LabRef(id="sgemm", sha256=lab))
        (place / "class" / name).mkdir(parents=True)
        (place / "class" / name / "sgemm.cu").write_text(kernel if number < 2 else commands.STARTER)
    (place / "results" / "a_folder_with_a_long_name" / "and_one_more").mkdir(parents=True)
    (place / "hidden.seed").write_text("5" * 64)
    (place / "hidden.yaml").write_text(LAB + HIDDEN)
    assert main(words.split()) == 0
    told = capsys.readouterr()
    assert shown in told.out
    table = told.out.splitlines()
    if words.startswith(("leaderboard", "course")):
        assert sum("student_" in line for line in table) == 12
        assert max(map(len, table)) <= 80 and len(table) < 60
    if words.startswith("export"):
        assert told.err == f"written: {words.split()[-1]}\n"
