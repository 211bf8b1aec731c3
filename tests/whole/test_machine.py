"""What the machine may lack or do: full and read-only disks, jumping clocks, missing or broken
tools, closed streams. One clear line, the right exit status, and nothing stored before is touched.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from grader.errors import ToolchainError
from grader.model import Verdict
from grader.results import store
from grader.toolchain.discovery import _ask
from grader.toolchain.host_compiler import find_host_compiler
from tests.support.commands import (
    ALICE,
    STARTER,
    Processes,
    environment,
    grade,
    nothing_half_written,
    one_line,
    run,
    until,
    warm_cache,
)
from tests.support.places import ROOT

# --- disks -------------------------------------------------------------------------------------


@cache
def can_mount() -> bool:
    try:
        script = "mount -t tmpfs none /mnt"
        return subprocess.run([*_namespace(), script], capture_output=True).returncode == 0
    except OSError:
        return False


def _namespace() -> list[str]:
    return ["unshare", "--user", "--map-root-user", "--mount", "sh", "-ec"]


needs_mounts = pytest.mark.skipif(
    not can_mount(), reason="no user namespace here to mount a small disk in"
)


def on_small_disk(place: Path, options: str, before: str, *commands: Sequence[str]) -> str:
    """Shell that mounts a tmpfs on ``place/disk``, runs ``before`` in it and then the commands."""
    (place / "disk").mkdir(exist_ok=True)
    lines = [f"mount -t tmpfs -o {options} none {place}/disk", f"cd {place}", before]
    lines += [shlex.join(command) + "; echo status $? >&2" for command in commands]
    return "\n".join(lines)


@needs_mounts
def test_a_full_disk_under_the_results_keeps_what_is_there(place: Path) -> None:
    command = [*ALICE, "--out", "disk/results"]
    save = "find disk/results -type f | sort | xargs sha256sum"
    script = on_small_disk(
        place,
        "size=1m",
        "set +e",
        command,
        ["sh", "-c", f"{save} > before; dd if=/dev/zero of=disk/fill bs=4k 2>/dev/null"],
        [*command, "--json"],
        ["sh", "-c", f"{save} | cmp - before && ! find disk/results -name '*.tmp' | grep ."],
    )
    done = run([*_namespace(), script], place)
    statuses = [line for line in done.stderr.splitlines() if line.startswith("status")]
    assert statuses == ["status 0", "status 1", "status 3", "status 0"], done.stderr
    assert "No space left on device; name another folder with --out" in done.stderr
    assert "Traceback" not in done.stderr
    assert json.loads(done.stdout)["verdict"] == "AC"  # what was found out is told all the same


@needs_mounts
def test_a_full_disk_to_compile_on_is_no_compile_error(place: Path) -> None:
    (place / "submissions" / "alice" / "sgemm.cu").write_text(STARTER + f"// {time.time_ns()}\n")
    full = ["env", f"TMPDIR={place}/disk", *ALICE]
    script = on_small_disk(place, "size=200k", "head -c 160k /dev/zero > disk/fill; set +e", full)
    done = run([*_namespace(), script], place)
    assert "status 3" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    assert "CE compile error" not in done.stderr
    assert not (place / "results").exists()


@needs_mounts
def test_read_only_results(place: Path) -> None:
    command = [*ALICE, "--out", "disk"]
    done = run([*_namespace(), on_small_disk(place, "ro", "set +e", command)], place)
    assert "disk: Read-only" in done.stderr or "cannot be written: Read-only" in done.stderr
    assert "status 3" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_that_nobody_may_write_to(place: Path) -> None:
    one_line(run([*ALICE, "--out", "/proc/results"], place), 3, "/proc/results")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_permissions(place: Path) -> None:
    (place / "results").mkdir(mode=0o555)
    one_line(run(ALICE, place), 3, "cannot be written: Permission denied")


def test_a_results_folder_that_vanishes_again_and_again(place: Path) -> None:
    for name in ("bob", "carol", "dave"):
        shutil.copytree(place / "submissions" / "alice", place / "submissions" / name)
    command = grade("class", "submissions", "--lab", "lab.yaml", "--device", "cpu", "--jobs", "2")
    ended = threading.Event()

    def vanish() -> None:
        while not ended.wait(0.01):
            shutil.rmtree(place / "results", ignore_errors=True)

    thread = threading.Thread(target=vanish)
    thread.start()
    done = run(command, place)
    ended.set()
    thread.join()
    assert done.returncode in (0, 3)
    assert "Traceback" not in done.stderr
    done = run(command, place)
    assert done.returncode == 0, done.stderr
    verdicts = [store.load(path).verdict for path in store.stored(place / "results")]
    assert verdicts == [Verdict.AC] * 4


# --- several at once, and the end --------------------------------------------------------------


def test_two_graders_on_one_folder(place: Path) -> None:
    for name in ("bob", "carol"):
        shutil.copytree(place / "submissions" / "alice", place / "submissions" / name)
    command = grade("class", "submissions", "--lab", "lab.yaml", "--device", "cpu", "--force")
    both = [
        subprocess.Popen(command, cwd=place, env=environment(), stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for process in both:
        _, words = process.communicate(timeout=120)
        assert process.returncode == 0, words
        assert "Traceback" not in words
    nothing_half_written(place / "results")
    assert len(list(store.stored(place / "results"))) == 3


def test_sigterm_ends_a_class_and_leaves_nobody(place: Path) -> None:
    loop = STARTER.replace("float sum = 0.0f;", "float sum = 0.0f; while (k == k) sum += k;")
    (place / "submissions" / "alice" / "sgemm.cu").write_text(loop)
    (place / "tmp").mkdir()
    cache = str(warm_cache(place))  # its engine tells whose worker it is
    with subprocess.Popen(
        grade("class", "submissions", "--lab", "lab.yaml", "--device", "cpu"),
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


# --- clocks and streams ------------------------------------------------------------------------

CLOCK = """\
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
// The wall clock jumps by up to a month, to and fro; clocks that only count go on.
extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  static auto real = (int (*)(clockid_t, timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  const int status = real(clock, now);
  if (clock == CLOCK_REALTIME) now->tv_sec += rand() % 5000000 - 2500000;
  return status;
}
"""


def test_a_clock_that_jumps(place: Path) -> None:
    (place / "clock.cpp").write_text(CLOCK)
    library = place / "clock.so"
    compiler = [str(find_host_compiler()), "-shared", "-fPIC", "-o", str(library)]
    subprocess.run([*compiler, str(place / "clock.cpp"), "-ldl"], check=True)
    shown = run(
        [sys.executable, "-c", "import time; print(len({int(time.time()) for _ in range(9)}))"],
        place,
        LD_PRELOAD=str(library),
    )
    assert shown.stdout.strip() == "9"  # it does jump
    done = run(ALICE, place, LD_PRELOAD=str(library))
    assert done.returncode == 0, done.stderr
    (path,) = store.stored(place / "results")
    result = store.load(path)
    assert all(case.seconds is not None and 0 <= case.seconds < 60 for case in result.cases)


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed(closed: str, place: Path) -> None:
    done = run(["sh", "-c", f"{shlex.join(ALICE)} {closed}"], place)
    assert done.returncode == 0, done.stderr
    nothing_half_written(place / "results")
    assert len(list(store.stored(place / "results"))) == 1


def test_output_that_nobody_can_take(place: Path) -> None:
    one_line(
        run(["sh", "-c", f"{shlex.join(ALICE)} --json > /dev/full"], place),
        3,
        "grade: No space left on device",
    )


# --- tools -------------------------------------------------------------------------------------


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("exit 1", "does not answer as nvcc does"),
        ("kill -SEGV $$", "does not answer as nvcc does"),
        ("echo '\\033[2J' >&2; head -c 100000 /dev/urandom >&2", "does not answer as nvcc does"),
    ],
    ids=["fails", "crashes", "babbles"],
)
def test_a_broken_nvcc(text: str, words: str, place: Path) -> None:
    script(place / "cuda" / "bin" / "nvcc", text)
    one_line(run(ALICE, place, CUDA_HOME=str(place / "cuda")), 3, words)


def test_an_nvcc_that_hangs(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grader.toolchain.discovery._ANSWER_S", 0.2)
    with pytest.raises(ToolchainError, match=r"does not answer as nvcc does .*timed out"):
        _ask(script(place / "nvcc", "exec sleep 60"))


def test_an_nvcc_that_is_not_there(place: Path) -> None:
    one_line(run(ALICE, place, CUDA_HOME=str(place)), 3, "holds no bin/nvcc")


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

DRIVER = """\
// A driver that answers as one does which cannot be used, or one whose GPU is there.
#include <stdlib.h>
#include <string.h>
static int status() { return atoi(getenv("FAKE_STATUS")); }
extern "C" {
int cuInit(unsigned) { return status(); }
int cuDeviceGetCount(int* count) { *count = 1; return status(); }
int cuDeviceGetName(char* name, int size, int) { strncpy(name, "Imaginary GPU", size); return 0; }
int cuDeviceGetAttribute(int* value, int which, int) { *value = which == 75 ? 9 : 0; return 0; }
int cuDeviceGetUuid_v2(void* uuid, int) { memset(uuid, 7, 16); return 0; }
}
"""


@pytest.fixture
def driver(place: Path) -> Path:
    """A folder with a libcuda.so.1 of our own."""
    (place / "driver.cpp").write_text(DRIVER)
    (place / "lib").mkdir()
    library = place / "lib" / "libcuda.so.1"
    compiler = [str(find_host_compiler()), "-shared", "-fPIC", "-o", str(library)]
    subprocess.run([*compiler, str(place / "driver.cpp")], check=True)
    return library.parent


@pytest.mark.parametrize("status", [35, 100, 803, 804], ids=["old", "none", "mismatch", "compat"])
def test_a_driver_that_cannot_be_used(status: int, driver: Path, place: Path) -> None:
    variables = {"LD_LIBRARY_PATH": str(driver), "FAKE_STATUS": str(status)}
    command = [*ALICE[:-1], "gpu"]
    one_line(run(command, place, **variables), 3, "grade: --device gpu: ")
    done = run([*ALICE[:-1], "auto"], place, **variables)
    assert done.returncode == 0, done.stderr
    assert "kernels run in the simulator" in done.stderr


@pytest.mark.skipif(importlib.util.find_spec("cupy") is not None, reason="CuPy is installed")
def test_a_missing_cupy(driver: Path, place: Path) -> None:
    variables = {"LD_LIBRARY_PATH": str(driver), "FAKE_STATUS": "0"}
    done = run([*ALICE[:-1], "gpu"], place, **variables)
    one_line(done, 3, "Imaginary GPU cannot be used, CuPy is missing: pip install")


def test_a_broken_cupy(driver: Path, place: Path) -> None:
    (place / "modules").mkdir()
    (place / "modules" / "cupy.py").write_text("raise ImportError('libnvrtc.so.13 is not there')\n")
    root = str(ROOT)
    done = run(
        [*ALICE[:-1], "gpu"],
        place,
        LD_LIBRARY_PATH=str(driver),
        FAKE_STATUS="0",
        PYTHONPATH=f"{place}/modules:{root}",
    )
    one_line(done, 3, "libnvrtc.so.13 is not there")
    assert not (place / "results").exists()
