"""What the machine may lack or do: full and read-only disks, jumping clocks, missing or broken
tools, closed streams. One clear line, the right exit status, and nothing stored before is touched.
"""

import importlib.util
import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from grader.base.errors import ToolchainError
from grader.base.native import find_host_compiler
from grader.base.records import Verdict
from grader.build.toolchain import _ask
from grader.results import store
from tests.support.commands import (
    ALICE,
    STARTER,
    Done,
    Processes,
    environment,
    grade,
    hand_in,
    nothing_half_written,
    one_line,
    run,
    script,
    until,
    warm_cache,
)
from tests.support.files import beside
from tests.support.places import ROOT

CLASS = grade("class", "submissions", "--lab", "lab.yaml", "--device", "cpu")

# --- disks -------------------------------------------------------------------------------------


NAMESPACE = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-ec")


def can_mount() -> bool:
    try:
        script = "mount -t tmpfs none /mnt"
        return subprocess.run([*NAMESPACE, script], capture_output=True).returncode == 0
    except OSError:
        return False


needs_mounts = pytest.mark.skipif(
    not can_mount(), reason="no full disk is tried: there is no user namespace to mount one in"
)


def on_small_disk(place: Path, options: str, before: str, *commands: Sequence[str]) -> Done:
    """Mount a tmpfs on ``place/disk``, run ``before`` in it and then the commands in a shell."""
    (place / "disk").mkdir(exist_ok=True)
    lines = [f"mount -t tmpfs -o {options} none {place}/disk", f"cd {place}", before]
    lines += [shlex.join(command) + "; echo status $? >&2" for command in commands]
    done = run([*NAMESPACE, "\n".join(lines)], place)
    assert "Traceback" not in done.stderr
    return done


@needs_mounts
def test_a_full_disk_under_the_results_keeps_what_is_there(place: Path) -> None:
    command = [*ALICE, "--out", "disk/results"]
    save = "find disk/results -type f | sort | xargs sha256sum"
    done = on_small_disk(
        place,
        "size=1m",
        "set +e",
        command,
        ["sh", "-c", f"{save} > before; dd if=/dev/zero of=disk/fill bs=4k 2>/dev/null"],
        [*command, "--json"],
        ["sh", "-c", f"{save} | cmp - before && ! find disk/results -name '*.tmp' | grep ."],
    )
    statuses = [line for line in done.stderr.splitlines() if line.startswith("status")]
    assert statuses == ["status 0", "status 1", "status 3", "status 0"], done.stderr
    assert "No space left on device; name another folder with --out" in done.stderr
    # What was found out is told all the same.
    assert json.loads(done.stdout.splitlines()[-1])["verdict"] == "AC"


@needs_mounts
def test_a_full_disk_to_compile_on_is_no_compile_error(place: Path) -> None:
    (place / "submissions" / "alice" / "sgemm.cu").write_text(STARTER + f"// {time.time_ns()}\n")
    full = ["env", f"TMPDIR={place}/disk", *ALICE]
    done = on_small_disk(place, "size=200k", "head -c 160k /dev/zero > disk/fill; set +e", full)
    assert "status 3" in done.stderr, done.stderr
    assert "CE compile error" not in done.stderr
    assert not (place / "results").exists()


@needs_mounts
def test_read_only_results(place: Path) -> None:
    done = on_small_disk(place, "ro", "set +e", [*ALICE, "--out", "disk"])
    assert "disk: Read-only" in done.stderr or "cannot be written: Read-only" in done.stderr
    assert "status 3" in done.stderr


def class_of(place: Path, *others: str) -> None:
    for name in others:
        shutil.copytree(place / "submissions" / "alice", place / "submissions" / name)


def test_a_folder_that_nobody_may_write_to(place: Path) -> None:
    one_line(run([*ALICE, "--out", "/proc/results"], place), 3, "/proc/results")
    if os.geteuid():  # root may write anywhere
        (place / "results").mkdir(mode=0o555)
        one_line(run(ALICE, place), 3, "cannot be written: Permission denied")


@pytest.mark.sampled
def test_a_results_folder_that_vanishes_again_and_again(place: Path) -> None:
    class_of(place, "bob", "carol", "dave")
    command = [*CLASS, "--jobs", "2"]
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(run, command, place)
        while not first.done():
            shutil.rmtree(place / "results", ignore_errors=True)
            time.sleep(0.01)
    done = first.result()
    assert done.returncode in (0, 3)
    assert "Traceback" not in done.stderr
    done = run(command, place)
    assert done.returncode == 0, done.stderr
    verdicts = [store.load(path).verdict for path in store.stored(place / "results")]
    assert verdicts == [Verdict.AC] * 4


# --- several at once, and the end --------------------------------------------------------------


@pytest.mark.sampled
def test_two_graders_on_one_folder(place: Path) -> None:
    class_of(place, "bob", "carol")
    with ThreadPoolExecutor(2) as pool:
        for done in pool.map(lambda _: run([*CLASS, "--force"], place), range(2)):
            assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    nothing_half_written(place / "results")
    assert len(list(store.stored(place / "results"))) == 3


@pytest.mark.sampled
def test_sigterm_ends_a_class_and_leaves_nobody(place: Path) -> None:
    loop = STARTER.replace("float sum = 0.0f;", "float sum = 0.0f; while (k == k) sum += k;")
    (place / "submissions" / "alice" / "sgemm.cu").write_text(loop)
    (place / "tmp").mkdir()
    cache = str(warm_cache(place))  # its engine tells whose worker it is
    with subprocess.Popen(
        CLASS,
        cwd=place,
        env=environment(TMPDIR=str(place / "tmp"), SGEMM_GRADER_CACHE=cache),
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        until(lambda: "simulator" in Processes(place).look().values())
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        _, words = process.communicate(timeout=30)
    assert process.returncode == 143, words
    assert "Traceback" not in words
    until(lambda: not Processes(place).look())
    assert list((place / "tmp").iterdir()) == []


def compiled(source: str, library: Path) -> Path:
    (library.parent / "source.cpp").write_text(source)
    compiler = [str(find_host_compiler()), "-shared", "-fPIC", "-o", str(library)]
    subprocess.run([*compiler, str(library.parent / "source.cpp"), "-ldl"], check=True)
    return library


# --- clocks and streams ------------------------------------------------------------------------

CLOCK = beside(__file__, "jumping_clock.cpp")


def test_a_clock_that_jumps(place: Path) -> None:
    library = compiled(CLOCK, place / "clock.so")
    shown = run(
        [sys.executable, "-c", "import time; print(len({int(time.time()) for _ in range(9)}))"],
        place,
        LD_PRELOAD=str(library),
    )
    assert shown.stdout.strip() == "9"  # it does jump
    done = run(ALICE, place, LD_PRELOAD=str(library))
    assert done.returncode == 0, done.stderr
    result = store.load(next(store.stored(place / "results")))
    assert all(case.seconds is not None and 0 <= case.seconds < 60 for case in result.cases)


@pytest.mark.sampled
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed(closed: str, place: Path) -> None:
    done = run(["sh", "-c", f"{shlex.join(ALICE)} {closed}"], place)
    assert done.returncode == 0, done.stderr
    nothing_half_written(place / "results")
    assert len(list(store.stored(place / "results"))) == 1


def test_output_that_nobody_can_take(place: Path) -> None:
    done = run(["sh", "-c", f"{shlex.join(ALICE)} --json > /dev/full"], place)
    one_line(done, 3, "grade: No space left on device")


# --- tools -------------------------------------------------------------------------------------


BABBLE = "echo '\\033[2J' >&2; head -c 100000 /dev/urandom >&2"


@pytest.mark.parametrize(
    "text", ["exit 1", "kill -SEGV $$", BABBLE], ids=["fails", "crashes", "babbles"]
)
def test_a_broken_nvcc(text: str, place: Path) -> None:
    script(place / "cuda" / "bin" / "nvcc", text)
    done = run(ALICE, place, CUDA_HOME=str(place / "cuda"))
    one_line(done, 3, "does not answer as nvcc does")


def test_an_nvcc_that_hangs(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grader.build.toolchain._ANSWER_S", 0.2)
    with pytest.raises(ToolchainError, match=r"does not answer as nvcc does .*timed out"):
        _ask(script(place / "nvcc", "exec sleep 60"))


def test_a_missing_compiler(place: Path) -> None:
    (place / "bin").mkdir()
    done = run([sys.executable, *ALICE[1:]], place, PATH=str(place / "bin"))
    one_line(done, 3, "grade: no C++ compiler: install g++")


def test_a_broken_compiler(place: Path) -> None:
    broken = script(place / "bin" / "g++", "echo internal error >&2; exit 4")
    done = run(ALICE, place, NVCC_CCBIN=str(broken))
    assert done.returncode == 3, done.stderr
    assert "Traceback" not in done.stderr
    assert not (place / "results").exists()


def test_no_prlimit(place: Path) -> None:
    tools = place / "bin"
    tools.mkdir()
    for name in ("g++", "gcc", "as", "ld", "nvcc", "sh", "cat", "dirname", "readlink"):
        if found := shutil.which(name):
            (tools / name).symlink_to(found)
    done = run(ALICE, place, PATH=str(tools))
    one_line(done, 3, "no prlimit on PATH: install util-linux")


# --- drivers -----------------------------------------------------------------------------------


def on_gpu(place: Path, status: int, device: str = "gpu", **more: str) -> Done:
    """``grade`` with the stand-in for the driver, which answers with this status."""
    driver = (ROOT / "tests" / "support" / "standin" / "libcuda.cpp").read_text()
    (place / "lib").mkdir(exist_ok=True)
    compiled(driver, place / "lib" / "libcuda.so.1")
    variables = {"LD_LIBRARY_PATH": f"{place}/lib", "CUDA_STANDIN_GPUS": "Imaginary GPU"}
    status_of = {"CUDA_STANDIN_STATUS": str(status)}
    return run([*ALICE[:-1], device], place, **variables, **status_of, **more)


@pytest.mark.sampled
@pytest.mark.parametrize("status", [35, 100, 803, 804], ids=["old", "none", "mismatch", "compat"])
def test_a_driver_that_cannot_be_used(status: int, place: Path) -> None:
    one_line(on_gpu(place, status), 3, "grade: --device gpu: ")
    done = on_gpu(place, status, "auto")
    assert done.returncode == 0, done.stderr
    assert "kernels run in the simulator" in done.stderr


@pytest.mark.skipif(importlib.util.find_spec("cupy") is not None, reason="CuPy is installed")
def test_a_missing_cupy(place: Path) -> None:
    one_line(on_gpu(place, 0), 3, "Imaginary GPU cannot be used, CuPy is missing: pip install")


def test_a_broken_cupy(place: Path) -> None:
    (place / "modules").mkdir()
    (place / "modules" / "cupy.py").write_text("raise ImportError('libnvrtc.so.13 is not there')\n")
    done = on_gpu(place, 0, PYTHONPATH=f"{place}/modules:{ROOT}")
    one_line(done, 3, "libnvrtc.so.13 is not there")
    assert not (place / "results").exists()


# --- kills at random


WRONG = STARTER.replace("C[", "C[1 + ", 1)
SLOW = "#include <unistd.h>\n" + STARTER.replace(
    "  const dim3 block", "  usleep(50000);\n  const dim3 block"
)
BROKEN = STARTER.replace("float sum = 0.0f;", "float sum = 0.0f")
# What must have been hit in the end; tests/course/test_class.py kills in every run.
HIT = {"parent", "pool", "simulator", "recorder", "compiler"}
# At every look. Some live for moments only, and it takes a second to start others again.
CHANCE = {"recorder": 1.0, "compiler": 0.3, "simulator": 0.8, "pool": 0.02, "parent": 0.01}
SEED = 20241121


@pytest.mark.slow
@pytest.mark.parametrize("often", [10, pytest.param(200, marks=pytest.mark.nightly)])
def test_kills_lose_nothing_and_wrong_nobody(often: int, place: Path) -> None:
    """SIGKILL to whatever is at work, the command itself included, until it was sent so often.

    What does not compile is not cached, so there is a compiler to kill in every round.
    """
    texts = {f"s{i:02d}": (STARTER, WRONG, BROKEN, SLOW)[i % 4] + f"\n// {i}" for i in range(12)}
    truth = dict(zip(texts, (Verdict.AC, Verdict.RE, Verdict.CE, Verdict.AC) * 3, strict=True))
    for student, text in texts.items():
        hand_in(place / "class" / student, text)
    (place / "tmp").mkdir()
    cache = warm_cache(place)
    variables = {"SGEMM_GRADER_CACHE": str(cache), "TMPDIR": str(place / "tmp")}
    command = grade("class", "class", "--lab", "lab.yaml", "--device", "cpu", "--jobs", "2")
    rng = random.Random(SEED)
    processes = Processes(place)
    kills: Counter[str] = Counter()
    assert run(command, place, **variables).returncode == 0

    def enough() -> bool:
        # Some live for moments only; the long form waits for one of each.
        return kills.total() >= (often if often < 100 or set(kills) >= HIT else 2 * often)

    while not enough():
        with subprocess.Popen(
            [*command, "--force"],
            cwd=place,
            env=environment(**variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            while process.poll() is None:
                time.sleep(rng.uniform(0.0, 0.05))
                found = processes.look()
                roles = sorted(set(found.values()) - {"other"})
                if not roles or (enough() and "parent" in roles):
                    continue
                role = rng.choice(roles)
                if rng.random() > CHANCE[role]:
                    continue
                victim = rng.choice([pid for pid, its in found.items() if its == role])
                with suppress(ProcessLookupError):
                    os.kill(victim, signal.SIGKILL)
                    kills[role] += 1
            assert process.stderr is not None
            words = process.stderr.read()
            if process.returncode != -signal.SIGKILL:  # else Python itself may be cut off
                assert "Traceback" not in words, words[words.index("Traceback") :]
            assert process.returncode in (0, 3, -signal.SIGKILL)
        until(lambda: not processes.look())
        for path in store.stored(place / "results"):
            result = store.load(path)
            assert result.verdict is truth[result.submission.student], (path, result.error)

    assert set(kills) >= HIT or often < 100, kills
    done = run(command, place, **variables)
    assert done.returncode == 0, done.stderr
    graded = map(store.load, store.stored(place / "results"))
    assert {result.submission.student: result.verdict for result in graded} == truth
