"""Nothing that a student may see depends on the hidden sizes.

The same submissions are graded with two secrets, so with different hidden sizes. Whatever they try
to tell, everything that is written and printed must be the same afterwards, but for times and the
hash of the lab.
"""

import io
import json
import re
import shutil
import subprocess
import sys
import threading
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import msgspec
import pytest

from grader.base.errors import MachineError, Rejected, UsageError
from grader.base.finding import Finding, Kind
from grader.base.language import ENGLISH
from grader.base.records import Verdict
from grader.cli.bench import ready
from grader.cli.console import WRONG_USAGE
from grader.cli.entry import main
from grader.cli.formats import RENDERERS
from grader.judge import pipeline, rulings, scoring, walk
from grader.judge.rulings import Ruling, reduced
from grader.labs.lab import Case, Hidden, Lab, load_lab
from grader.labs.submission import load_submission
from grader.report import html
from grader.results import store
from grader.results.case import CaseResult
from grader.results.entries import keep_sources
from grader.results.result import Result
from grader.results.score import SizeGroup
from grader.run.gpu.device import GpuDevice
from grader.run.gpu.messages import Ready
from grader.run.protocol import CaseOutcome, Progress, quietly
from grader.sandbox.running import Sandbox
from grader.study.sweep import Sweep, run_sweep
from ptxsim.findings import Severity
from ptxsim.plan import Size
from ptxsim.text import verbatim
from tests.support.bench import bench, needs_landlock
from tests.support.commands import STARTER, compile_our_own, grade, hand_in, one_line, run
from tests.support.files import beside, table
from tests.support.pages import H200, printed, timed
from tests.support.product import MAIN
from tests.support.results import begun
from tests.support.results import outcome as outcome_of

LAB = beside(__file__, "hidden.yaml")
SECRETS = ("the secret of one course", "that of the year after it")

HOST = {
    "values": "",
    "exit": "if (m > 33) std::exit(m % 100 + 1);",
    "throw": "if (m > 33) throw std::runtime_error(std::to_string(m));",
    "launch": "if (m > 33) { sgemm<<<m, 2 * m + 2000>>>(nullptr, nullptr, nullptr, m, n, k, n); }",
    "memory": "float* more; cudaMalloc(&more, m > 33 ? size_t(m) << 40 : 4); cudaFree(more);",
    "never returns": "while (m > 33) {}",
}
QUICK = "values"


def lab_in(place: Path, secret: str) -> Lab:
    place.mkdir(parents=True, exist_ok=True)
    (place / "lab.yaml").write_text(LAB)
    (place / "hidden.seed").write_text(secret)
    return load_lab(place / "lab.yaml")


def hidden_of(lab: Lab) -> Hidden:
    assert lab.hidden is not None
    return lab.hidden


def telltale(host: str) -> str:
    return beside(__file__, "telltale.cu", host=host)


def submit(place: Path, host: str) -> subprocess.CompletedProcess[str]:
    hand_in(place / "eve", telltale(host))
    return run(grade("eve", "--lab", "lab.yaml", "--device", "cpu", "--json"), place)


def told(result: Result, done: subprocess.CompletedProcess[str], place: Path) -> dict[str, Any]:
    """Everything that the grading wrote and printed, by where."""
    files = sorted(str(path.relative_to(place)) for path in (place / "results").rglob("*"))
    # The second time the explanation of the public sizes is in the cache.
    logged = re.sub(r"\d+\.\d\d", "FIGURE", done.stderr).replace("eve: explaining\n", "")
    return {
        "document": store.encode(result).decode(),
        "page": html.render(result, {}),
        "terminal": printed(result),
        "log": logged,
        "files": files,
        **{name: render(result, "", ENGLISH) for name, render in RENDERERS.items()},
    }


LATER = [words.split() for (words,) in table(__file__, "later.txt")]


def told_later(result: Result, place: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Everything that is made of the stored result: what is printed, and every file."""
    again = place / "again"
    (again / "made").mkdir(parents=True)
    shutil.copytree(place / "eve", again / "eve")
    for name in ("lab.yaml", "hidden.seed"):
        shutil.copy(place / name, again / name)
    (again / "rubric.yaml").write_text("questions: [{id: q1, points: 10, text: Why}]")
    document = store.save(again / "results", result)
    keep_sources(document, [(again / "eve" / "sgemm.cu").read_bytes()])
    monkeypatch.chdir(again)
    monkeypatch.setenv("COLUMNS", "160")
    said = {}
    for words in LATER:
        chosen = [str(document.relative_to(again)) if w == "RESULT" else w for w in words]
        printed = io.StringIO()
        with redirect_stdout(printed), redirect_stderr(printed):
            assert main(chosen) in (0, 1), printed.getvalue()
        said[" ".join(words)] = printed.getvalue()
    derived = re.compile(r"\.index-|hidden.seed")  # times of files, and the secret
    return said | {
        str(file.relative_to(again)): file.read_text()
        for file in again.rglob("*")
        if file.is_file() and not derived.search(file.name)
    }


def timeless(result: Result) -> Result:
    """Without what differs between two gradings with one secret: times, and random inputs."""
    assert result.build is not None

    def even(case: CaseResult) -> CaseResult:
        assert case.error is not None
        error = msgspec.structs.replace(case.error, max=1e-9, rms=1e-9)
        return msgspec.structs.replace(case, seconds=1.0, error=error)

    return msgspec.structs.replace(
        result,
        created="2026-01-01T00:00:00+00:00",
        lab=msgspec.structs.replace(result.lab, sha256="0" * 64),
        build=msgspec.structs.replace(result.build, seconds=1.0),
        cases=tuple(map(even, result.cases)),
    )


@pytest.mark.sampled
@pytest.mark.parametrize("way", HOST)
def test_two_secrets_tell_the_same(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compile_our_own()
    seen = []
    for number, secret in enumerate(SECRETS):
        place = tmp_path / str(number)
        lab = lab_in(place, secret)
        done = submit(place, HOST[way])
        assert done.returncode == 1, done.stderr
        result = store.load(next(store.stored(place / "results")))
        assert json.loads(done.stdout) == json.loads(store.encode(result))
        assert [case.verdict for case in result.cases] == [Verdict.AC, Verdict.AC]
        group = result.groups[1]
        assert (group.sizes, group.right) == (2, 0)
        everything = told(timeless(result), done, place)
        if way == QUICK:
            everything |= told_later(timeless(result), place, monkeypatch)
        words = json.dumps(everything, ensure_ascii=False)
        for case in (*hidden_of(lab).cpu, *hidden_of(lab).performance):
            assert str(case.size) not in words
        m = {str(case.size["m"]) for case in hidden_of(lab).cpu}
        document = str(everything["document"]) + str(everything["terminal"])
        hashes = r"\b[0-9a-f]{64}\b"  # whose digits are anybody's
        assert m.isdisjoint(re.findall(r"\d+", re.sub(hashes, "", document)))
        seen.append(everything)
    first, second = seen
    assert hidden_of(lab_in(tmp_path / "0", SECRETS[0])) != hidden_of(lab)
    for name in first:
        assert first[name] == second[name], name
    assert "Hidden sizes: 0 of 2 right" in first["terminal"]
    assert "Hidden sizes: 0 of 2 right" in first["page"]


@pytest.mark.sampled
@pytest.mark.parametrize("sandbox", ["auto", pytest.param("landlock", marks=needs_landlock)])
def test_a_hand_in_learns_nothing_from_the_one_before(tmp_path: Path, sandbox: str) -> None:
    lab_in(tmp_path, SECRETS[0])
    # Nobody else reads it here: what is built is linked with the shared library.
    large = subprocess.check_output(["g++", "-print-file-name=libstdc++.a"], text=True).strip()
    if not Path(large).is_file() or Path(large).stat().st_size < 52 << 16:
        pytest.skip("no libstdc++.a of 3 MB here, whose pages nobody else reads")
    for student in ("ann", "eve"):
        hand_in(tmp_path / student, beside(__file__, "leak.cu", file=large))
        options = ("--lab", "lab.yaml", "--device", "cpu", "--sandbox", sandbox)
        done = run(grade(student, *options, "--json"), tmp_path)
        assert done.returncode == 0, done.stdout  # else it says what it has seen


@pytest.mark.sampled
def test_a_sweep_asks_nothing_about_hidden_sizes(tmp_path: Path) -> None:
    """Or else each of its variants would be another question."""
    lab = lab_in(tmp_path, SECRETS[0])
    folder = hand_in(tmp_path / "eve", telltale(HOST[QUICK]))
    sweep = Sweep(
        submission=load_submission(folder, MAIN),
        variants=((),),
        sizes=(Size.of(m=32, n=32, k=32),),
    )
    tools = msgspec.structs.replace(bench(), lab=lab)
    (point,) = run_sweep(sweep, tools, tmp_path / "out", None, lambda *_: None)
    assert point.verdict is Verdict.AC, point.dropped  # it is wrong at every hidden size


@pytest.mark.sampled
def test_the_instructor_sees_them_and_nobody_else(tmp_path: Path) -> None:
    lab = lab_in(tmp_path, SECRETS[0])
    listed = run(grade("hidden", "--lab", "lab.yaml"), tmp_path)
    every = (*hidden_of(lab).cpu, *hidden_of(lab).performance)
    assert all(str(case.size) in listed.stdout for case in every)

    hand_in(tmp_path / "eve", STARTER.replace("] = sum;", "] = m > 33 ? 7.0f * m : sum;"))
    shown = run(grade("eve", "--lab", "lab.yaml", "--device", "cpu", "--reveal"), tmp_path)
    assert shown.returncode == 1
    assert all(str(case.size) in shown.stdout for case in hidden_of(lab).cpu)
    assert not (tmp_path / "results").exists()  # where students' pages lie


def test_who_has_no_secret_grades_the_public_sizes(tmp_path: Path) -> None:
    lab_in(tmp_path, SECRETS[0])
    (tmp_path / "hidden.seed").unlink()
    one_line(run(grade("hidden", "--lab", "lab.yaml"), tmp_path), 2, "hidden.seed: no seed file")
    hand_in(tmp_path / "class" / "ann")
    whole = run(grade("class", "class", "--lab", "lab.yaml", "--device", "cpu"), tmp_path)
    one_line(whole, 2, "hidden.seed: no seed file that can be read here")
    one_line(run(grade("kit", "csoj", "--lab", "lab.yaml"), tmp_path), 2, "the kit needs it")


def test_a_new_seed_never_replaces_another(tmp_path: Path) -> None:
    assert run(grade("hidden", "--new-seed", "a.seed"), tmp_path).returncode == 0
    made = tmp_path / "a.seed"
    assert made.stat().st_mode & 0o777 == 0o600
    assert len(made.read_text().strip()) == 64
    one_line(run(grade("hidden", "--new-seed", "a.seed"), tmp_path), 3, "a.seed: cannot be made")


def test_kits_hold_the_secret_only_where_students_cannot_read_it(tmp_path: Path) -> None:
    lab_in(tmp_path, SECRETS[0])
    assert run(grade("kit", "csoj", "--lab", "lab.yaml", "--to", "csoj"), tmp_path).returncode == 0
    assert (tmp_path / "csoj" / "hidden.seed").read_text() == SECRETS[0]
    assert "hidden.seed" in (tmp_path / "csoj" / "Dockerfile").read_text()
    assert run(grade("kit", "github", "--lab", "lab.yaml", "--to", "git"), tmp_path).returncode == 0
    for file in (tmp_path / "git").rglob("*"):
        assert "seed" not in file.name
        assert not file.is_file() or SECRETS[0] not in file.read_text()


# --- on a GPU: what the records say -----------------------------------------------------------

SECRET_SIZE = Size.of(m=4321, n=1234, k=777)
SECRET_NUMBERS = {"4321", "1234", "777"}
SECRET = Case(id="hidden-performance-0", size=SECRET_SIZE)


def gpu_lab() -> Lab:
    hidden = Hidden(
        unsealed="",
        weight=40,
        public_weight=60,
        seed_file=Path("hidden.seed"),
        performance=(SECRET,),
    )
    lab = load_lab()
    return msgspec.structs.replace(
        lab, hidden=hidden, performance=lab.performance[:1], correctness=()
    )


def outcome(case: Case, speed: float, *findings: Finding, wrong: int = 0) -> CaseOutcome:
    return outcome_of(
        case,
        *findings,
        wrong=wrong,
        message=verbatim(f"{wrong} elements are wrong at {case.size}" if wrong else ""),
        printed=str(case.size),
        timing=timed(8192, speed, 50.0).timing,
    )


def error(kind: Kind) -> Finding:
    return Finding(
        kind=kind,
        severity=Severity.ERROR,
        message=verbatim(f"took long at {SECRET_SIZE}"),
        file="4321.cu",
        line=1234,
        block=(777, 0, 0),
        thread=(0, 777, 0),
        count=4321,
    )


def judged(public: tuple[float, int], secret: tuple[float, int], *findings: Finding) -> Ruling:
    """public, secret: speed beside 50, and wrong elements. findings: at the hidden size."""
    lab = gpu_lab()
    (case,) = lab.performance
    by = {each.id: scoring.beside_the_baseline(lab.scoring) for each in lab.timed}
    seen = [outcome(case, public[0], wrong=public[1])]
    hidden = [outcome(SECRET, secret[0], *findings, wrong=secret[1])]
    group = reduced(rulings.rule([begun(SECRET)], hidden, lab), lab, 1, by)
    public = rulings.rule([begun(case)], seen, lab)
    simulated = Ruling(verdict=Verdict.AC)
    ruling = rulings.conclude(public, lab, hidden=group, simulated=simulated, yardsticks=by)
    assert ruling.score is not None and ruling.findings == ()
    assert {share.case for share in ruling.score.shares} == {case.id}
    assert {curve.case for curve in ruling.score.curves} <= {case.id}
    assert not SECRET_NUMBERS & set(re.findall(r"\d+", str(msgspec.to_builtins(ruling))))
    return ruling


@pytest.mark.parametrize(
    ("public", "secret", "kinds", "verdict", "total"),
    [
        ((40.0, 0), (30.17, 0), [], Verdict.AC, 72.0),
        ((40.0, 0), (30.0, 3), [Kind.UNTIMED_WORK], Verdict.TLE, 48.0),  # 60 % of 80
        ((40.0, 1), (30.0, 0), [], Verdict.WA, 24.0),  # 40 % of 60
        ((40.0, 0), (30.0, 0), [Kind.IMPOSSIBLE_TIME], Verdict.RF, 0.0),
    ],
    ids=["right", "wrong where hidden", "wrong where public", "a broken rule"],
)
def test_a_group_costs_its_own_points_and_a_broken_rule_all(
    public: tuple[float, int],
    secret: tuple[float, int],
    kinds: list[Kind],
    verdict: Verdict,
    total: float,
) -> None:
    ruling = judged(public, secret, *map(error, kinds))
    assert ruling.verdict is verdict and ruling.score is not None
    assert (ruling.score.total, ruling.score.max) == (total, 100)
    assert ruling.groups[1].mistakes == tuple(kinds)
    if verdict is Verdict.AC:
        assert [group.points for group in ruling.groups] == [80.0, 60.0]  # 60.34 would tell more


def hidden_group(outcome: CaseOutcome) -> SizeGroup:
    return reduced(rulings.rule([begun(SECRET)], [outcome], gpu_lab()), gpu_lab(), 1)


def test_one_kind_is_all_that_is_kept() -> None:
    """Of all errors at once, which could spell a number, the one that decides the verdict."""

    def mistakes(*found: Finding) -> tuple[Kind, ...]:
        group = hidden_group(outcome(SECRET, 30.0, *found))
        assert not SECRET_NUMBERS & set(re.findall(r"\d+", str(msgspec.to_builtins(group))))
        return group.mistakes

    assert mistakes(*map(error, Kind)) == (Kind.IMPOSSIBLE_TIME,)
    race, trap = error(Kind.RACE), error(Kind.TRAP)
    assert mistakes(race, trap) == mistakes(trap, race) == (Kind.TRAP,)
    assert mistakes(race, error(Kind.ENDLESS_LOOP)) == (Kind.ENDLESS_LOOP,)
    assert mistakes(msgspec.structs.replace(race, severity=Severity.NOTE)) == ()


def test_a_failure_at_a_hidden_size_tells_nothing() -> None:
    """Nor does our own fault, not even in a traceback, whose last line may hold figures."""
    faults = (MachineError(f"ended at {SECRET_SIZE}"), ValueError(f"cannot reshape {SECRET_SIZE}"))
    for fault in faults:
        with pytest.raises(MachineError) as caught, walk.sealed():
            raise fault
        assert caught.value.message == walk.HIDDEN_FAILURE
        assert caught.value.__suppress_context__


def test_a_seed_that_every_sandbox_shows_is_refused() -> None:
    lab = gpu_lab()
    hidden = msgspec.structs.replace(hidden_of(lab), seed_file=Path("/usr/share/lab/hidden.seed"))
    tools = msgspec.structs.replace(bench(), lab=msgspec.structs.replace(lab, hidden=hidden))
    with pytest.raises(UsageError, match=r"hidden.seed: submissions can read files in /usr; keep"):
        ready(tools, "auto")


def test_without_a_sandbox_no_submission_comes_near_the_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever command compiles or runs it; --sandbox off accepts that."""
    (tmp_path / "lab.yaml").write_text(LAB)
    (tmp_path / "hidden.seed").write_text(SECRETS[0])
    hand_in(tmp_path / "all" / "zoe")
    bare = msgspec.structs.replace(Sandbox.open("auto"), kind="rlimits")
    monkeypatch.setattr(Sandbox, "open", lambda _mode="auto": bare)
    monkeypatch.chdir(tmp_path)
    for command in (("class", "all"), *((*c, "all/zoe") for c in ((), ("sweep",), ("sass",)))):
        assert main([*command, "--lab", "lab.yaml"]) == WRONG_USAGE
        assert "hidden sizes need a sandbox" in capsys.readouterr().err
    tools = msgspec.structs.replace(bench(), lab=load_lab(Path("lab.yaml")), sandbox=bare)
    ready(tools, "off")


def test_hidden_sizes_need_a_filter_of_system_calls() -> None:
    open_to_all = msgspec.structs.replace(Sandbox.open("auto"), kind="bubblewrap", filtered=False)
    assert "leave word for later runs" in open_to_all.exposed[-1]
    tools = msgspec.structs.replace(bench(), lab=gpu_lab(), sandbox=open_to_all)
    with pytest.raises(UsageError, match="a kernel that filters system calls"):
        ready(tools, "auto")
    ready(tools, "off")


def test_a_refused_hidden_size_is_its_kind() -> None:
    refusal = Rejected(Verdict.RE, verbatim("ended with status 77"), (error(Kind.HOST_CRASH),))
    group = hidden_group(begun(SECRET).refused(refusal))
    assert (group.verdict, group.mistakes, group.right) == (Verdict.RE, (Kind.HOST_CRASH,), 0)


# --- the whole grading on a GPU, whose worker answers from a script ---------------------------


def in_order(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note what ran, as it ends. The simulator takes a while longer, unless hidden sizes begin."""
    done: list[str] = []
    hidden_began = threading.Event()
    simulate, grade_hidden = pipeline._simulate, pipeline.grade_hidden

    def slowly(*given: Any) -> Ruling:
        made = simulate(*given)
        hidden_began.wait(2)
        done.append("simulator")
        return made

    def note(*given: Any, **more: Any) -> SizeGroup:
        hidden_began.set()
        done.append("hidden sizes")
        return grade_hidden(*given, **more)

    monkeypatch.setattr(pipeline, "_simulate", slowly)
    monkeypatch.setattr(pipeline, "grade_hidden", note)
    return done


def graded_on_gpu(
    place: Path, lab: Lab, progress: Progress, *, broken: str | None = None
) -> Result:
    """broken: the worker's answer in place of its measurements."""
    given = outcome(lab.performance[0], 30.2)  # 60.4 points at every timed size
    answer = msgspec.json.encode(msgspec.structs.replace(given, printed="")).decode()
    ready = msgspec.json.encode(Ready(gpu=H200)).decode()
    holes = {"log": str(place / "log"), "answer": answer, "ready": ready}
    worker = beside(__file__, "scripted_worker.py.in", **{k: repr(v) for k, v in holes.items()})
    if broken:
        worker = worker.replace('{"type": "measured", "outcome": outcome}', broken)
    device = GpuDevice(lab.problem_ref, command=(sys.executable, "-c", worker))
    tools = msgspec.structs.replace(bench(), lab=lab, gpu_arch="sm_90")
    return pipeline.grade(hand_in(place / "ann"), tools, progress, gpu=device).result


@pytest.mark.sampled
def test_after_a_crash_hidden_sizes_do_not_run(tmp_path: Path) -> None:
    broken = '{"type": "broken", "case": outcome["id"], "message": "cudaErrorIllegalAddress"}'
    lab = lab_in(tmp_path, SECRETS[0])
    result = graded_on_gpu(tmp_path, lab, quietly, broken=broken)
    assert [group.verdict for group in result.groups] == [Verdict.RE, None]
    assert "hidden" not in (tmp_path / "log").read_text()


@pytest.mark.sampled
def test_a_gpu_runs_hidden_sizes_last_and_they_are_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = lab_in(tmp_path, SECRETS[0])
    heard: list[str] = []
    done = in_order(monkeypatch)
    result = graded_on_gpu(tmp_path, lab, lambda _, words: heard.append(str(words)))
    assert done == ["simulator", "hidden sizes"]  # never beside each other
    # The worker of the others never gets the hidden plans.
    jobs = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    (worker, verified), (again, timed), (other, secret) = jobs
    assert worker == again != other
    assert [verified, timed] == [[["correctness-0", False]], [["performance-0", True]]]
    assert sorted(secret) == [["hidden-performance-0", True], ["hidden-performance-1", True]]
    assert result.verdict is Verdict.AC and result.score is not None, result.error
    assert [case.id for case in result.cases] == ["correctness-0", "performance-0"]
    assert [group.points for group in result.groups] == [60.4, 60.0]
    assert result.score.total == 60.24
    said = " ".join(heard) + store.encode(result).decode() + html.render(result, {})
    for case in (*hidden_of(lab).performance, *hidden_of(lab).cpu):
        assert str(case.size) not in said
        assert str(case.size["m"]) not in re.findall(r"\d+", said)
    assert "running the hidden sizes on the GPU" in heard
