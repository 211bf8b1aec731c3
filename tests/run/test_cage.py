"""The processes that interpret what students wrote: what they can reach, and what is believed."""

import os
import re
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

import grader
import ptxsim
from grader.base.errors import MachineError
from grader.base.native import cache_folder
from grader.base.records import Verdict
from grader.build.building import Build
from grader.build.toolchain import find_toolchain
from grader.labs.lab import load_lab
from grader.run.process import Cage, WorkerProcess, for_a_gpu
from grader.run.protocol import quietly
from grader.run.simulator import simulation_worker
from grader.run.simulator.device import CpuDevice, engine_library
from grader.sandbox.running import ProcessLimits, Sandbox
from ptxsim.plan import Launch
from tests.support.bench import CLOSED, MODES, lab, misbehaving, planned, run
from tests.support.files import attempts

LIMITS = load_lab().limits
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/proc", "/dev")


def innermost(session: int, filters: int) -> Path:
    """/proc of the interpreter in a session, once it has given up what it does not need.

    filters: of system calls, beside those that already hold here, as in a container.
    """
    filters += int(status(Path("/proc/self"))["Seccomp_filters"])
    end = time.monotonic() + 30
    while time.monotonic() < end:
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if os.getsid(int(folder.name)) != session:
                    continue
                is_python = b"python" in (folder / "cmdline").read_bytes().split(b"\0")[0]
                if is_python and status(folder).get("Seccomp_filters") == str(filters):
                    return folder
            except OSError:  # ended meanwhile
                continue
        time.sleep(0.02)
    raise AssertionError("it never locked itself down")


def status(folder: Path) -> dict[str, str]:
    lines = (folder / "status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def environment(folder: Path) -> dict[str, str]:
    entries = (folder / "environ").read_bytes().decode().split("\0")
    return dict(entry.split("=", 1) for entry in entries if entry)


@contextmanager
def locked_down(mode: str) -> Iterator[tuple[Path, Path]]:
    """/proc of a simulator's worker that waits for work, and the engine."""
    engine = engine_library().compiled()
    cage = Cage(sandbox=Sandbox.open(mode), limits=ProcessLimits(cpu_s=60), readable=(engine,))
    command = (sys.executable, "-m", simulation_worker.__name__, str(engine), "null", "")
    with WorkerProcess(command, cage) as worker:
        yield innermost(worker.pid, filters=2), engine


@pytest.mark.parametrize("mode", MODES)
def test_a_worker_has_no_environment_and_no_way_out(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_SECRET", "x")
    with locked_down(mode) as (inside, engine):
        seen = status(inside)
        assert (seen["Seccomp"], seen["NoNewPrivs"]) == ("2", "1")
        assert set(environment(inside)) <= {"PATH", "LANG", "OPENBLAS_NUM_THREADS", "PWD"}
        assert (inside / "stat").read_text().rpartition(")")[2].split()[4] == "0"  # no terminal
        if mode == "bubblewrap":
            assert int(seen["CapEff"], 16) == 0
            assert (inside / "ns/net").readlink() != Path("/proc/self/ns/net").readlink()
            assert_only_what_is_needed(inside, engine)


@pytest.mark.parametrize("mode", MODES)
def test_a_worker_has_its_pipes_and_every_page_of_its_libraries(mode: str) -> None:
    """So whatever it uses of them later leaves no trace in the page cache."""
    with locked_down(mode) as (inside, _):
        mapped = (inside / "smaps").read_text()
        assert {each.name for each in (inside / "fd").iterdir()} == {"0", "1", "2", "3"}
    readable_file = r"^\S+ r\S+ \S+ \S+ [1-9]\d* +/\S+\n((?:\w+:.*\n)+)"
    pages = [
        [re.search(rf"^{name}: +(\d+)", figures, re.M)[1] for name in ("Size", "Rss")]
        for figures in re.findall(readable_file, mapped, re.M)
    ]
    assert len(pages) > 50
    assert [(size, resident) for size, resident in pages if size != resident] == []


def assert_only_what_is_needed(inside: Path, engine: Path) -> None:
    """Python, the grader's packages and the engine, and none of it can be written."""
    package = Path(grader.__file__).parent
    simulator = Path(ptxsim.__file__).parent
    own = {*map(Path, (sys.prefix, sys.base_prefix)), package, simulator, engine}
    own |= {place.resolve() for place in own}
    for line in (inside / "mountinfo").read_text().splitlines():
        words = line.split()
        where, options = Path(words[4]), words[5].split(",")
        if where in (Path("/"), Path("/tmp")) or str(where).startswith(SYSTEM):
            continue
        if where.name.startswith("sgemm-packages-"):  # links to the packages, nothing else
            assert {link.readlink() for link in where.iterdir()} == {package, simulator}
            continue
        assert where in own, line
        assert "ro" in options, line
    assert not (inside / "root").joinpath(*cache_folder().parts[1:], "builds").exists()
    assert not (inside / "root").joinpath(*package.parts[1:]).with_name("submissions").exists()


PROBE = attempts(__file__, "reach.txt")


@pytest.mark.parametrize("mode", MODES)
def test_code_in_the_worker_can_do_nothing_but_compute(mode: str, build: Build) -> None:
    """As if a program had taken over the interpreter."""
    script = misbehaving("say(); printed = said.getvalue(); right(size, a, b, c)")
    program = script[2].replace("worker.main(", f"{PROBE}\nimport io\n{SAY}\nworker.main(")
    (outcome,) = run((*script[:2], program), build, [planned(0)], mode=mode)
    lines = dict(line.split(" ", 1) for line in outcome.printed.splitlines())
    assert len(lines) == 35
    assert set(lines.values()) == {"EPERM"}, lines
    assert outcome.error is not None and outcome.error.wrong == 0


SAY = """
import builtins, contextlib
said = io.StringIO()
def say():
    with contextlib.redirect_stdout(said):
        attempt()
"""


@pytest.mark.parametrize("mode", CLOSED)
def test_a_worker_whose_filter_the_kernel_refuses_simulates_nothing(
    mode: str, build: Build
) -> None:
    script = misbehaving("right(size, a, b, c)")
    broken = "from grader.sandbox import seccomp\nseccomp._SET_FILTER = 99\nworker.main("
    program = script[2].replace("worker.main(", broken)
    with pytest.raises(MachineError, match=r"refuses the simulator's filter.*Invalid argument"):
        run((*script[:2], program), build, [planned(0)], mode=mode)


def test_a_worker_that_floods_its_pipe_is_given_up(build: Build) -> None:
    command = (sys.executable, "-c", "import os\nwhile True: os.write(1, b'x' * 65536)")
    with pytest.raises(MachineError, match="answered with more than 64 MB"):
        run(command, build, [planned(0)])


def test_a_worker_that_floods_its_log_is_ended_by_the_system(build: Build) -> None:
    command = (sys.executable, "-c", "import os\nwhile True: os.write(2, b'x' * 65536)")
    with pytest.raises(MachineError, match="ended unexpectedly"):
        run(command, build, [planned(0)])


def forging(body: str) -> Sequence[str]:
    """A worker that answers the job with whatever ``body`` writes."""
    program = misbehaving(f"os.write(stream, {body})")[2]
    keep = "stream = os.dup(1)\nworker.main("
    return (sys.executable, "-c", program.replace("worker.main(", keep))


FORGED = {
    "another case": ("id", '"cpu-7"'),
    "another size": ("size", '{"m":5,"n":7,"k":4}'),
    "another amount": ("amount", "1"),
    "a verdict of the judge's": ("verdict", '"AC"'),
    "an unknown end": ("stopped", '"well"'),
    "not a number": ("seconds", "NaN"),
    "no finite number": ("seconds", "1e999"),
}


def forged(field: str = "", value: str = "") -> Sequence[str]:
    """A worker that says of a case only that it is right, and of one field something else."""
    own = {"verdict": b"null", "stopped": b"null", "seconds": b"0", "lines": b"[]"}
    said = {
        **msgspec.json.decode(msgspec.json.encode(planned(0).case), type=dict[str, msgspec.Raw])
    }
    said |= {name: msgspec.Raw(text) for name, text in own.items()}
    if field:
        said[field] = msgspec.Raw(value.encode())
    lines = b'{"type":"finished","outcome":%s}\n{"type":"done"}\n' % msgspec.json.encode(said)
    return forging(repr(lines))


def test_what_a_worker_may_say_is_believed(build: Build) -> None:
    (outcome,) = run(forged(), build, [planned(0)])
    assert outcome.verdict is None and outcome.id == planned(0).id


@pytest.mark.parametrize(("field", "value"), FORGED.values(), ids=FORGED.keys())
def test_what_a_worker_may_not_say_is_not_believed(field: str, value: str, build: Build) -> None:
    with pytest.raises(MachineError, match="the simulator's answer cannot be read"):
        run(forged(field, value), build, [planned(0)])


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"declared","interface":{"entries":{"' + b"k" * 100_000 + b'":{}}}}\n',
        b'{"type":"declared","interface":{"entries":{},"symbols":{"s":{"space":"global","size":'
        + b"9" * 40
        + b"}}}}\n",
        b'{"type":"done"}\n',
        b"\xff\xfe\n",
    ],
)
def test_an_answer_out_of_all_bounds_is_not_believed(line: bytes, build: Build) -> None:
    program = f"import os\nos.write(1, {line!r})\nos.read(0, 1)\nimport time\ntime.sleep(9)"
    with pytest.raises(MachineError, match="the simulator's answer cannot be read"):
        run((sys.executable, "-c", program), build, [planned(0)])


def test_last_words_hold_no_address_and_no_folder(build: Build) -> None:
    words = "free(): 0x7f00deadbeef in /home/grader/secret/lib.so\\x1b[1m"
    program = f"import os\nos.read(0, 1)\nos.write(2, b'{words}')\nos._exit(3)"
    with pytest.raises(MachineError) as caught:
        run((sys.executable, "-c", program), build, [planned(0)])
    assert str(caught.value).endswith(": free(): 0x… in lib.so?[1m")


def test_a_worker_that_does_not_listen_holds_nobody_up(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grader.run.simulator.device._READ_SECONDS", 0.3)
    build.ptx.write_text("x" * (1 << 22))
    with pytest.raises(MachineError, match="no answer within"):
        run((sys.executable, "-c", "import time; time.sleep(60)"), build, [planned(0)])


def test_what_a_gpus_driver_needs_is_all_that_its_worker_gets() -> None:
    kept = {
        "PATH": "/bin",
        "HOME": "/h",
        "CUDA_VISIBLE_DEVICES": "0",
        "NVIDIA_VISIBLE_DEVICES": "0",
    }
    secret = {"A_SECRET": "x", "SLURM_JWT": "x", "AWS_SECRET_ACCESS_KEY": "x", "MY_PATH": "x"}
    assert for_a_gpu({**kept, **secret}) == kept


def test_an_engine_without_memory_ends_the_case_and_not_the_process(build: Build) -> None:
    """A block of 1024 threads, each with half a megabyte of its own."""
    source = Path(__file__).parent / "data" / "greedy.cu"
    nvcc = str(find_toolchain().nvcc)
    subprocess.run([nvcc, "-arch=sm_80", "-ptx", "-o", build.ptx, source], check=True)
    case = planned(0)
    kernel = re.search(r"\.entry\s+(\w+)", build.ptx.read_text())
    assert kernel
    launch = Launch(
        kernel=kernel[1],
        grid=(1, 1, 1),
        block=(1024, 1, 1),
        shared_bytes=0,
        params=struct.pack("<Q", case.plan.allocations[2].address),
        pointers=(),
    )
    greedy = msgspec.structs.replace(
        case, plan=msgspec.structs.replace(case.plan, operations=(launch,))
    )
    chosen = lab(memory_mb=700, simulate_s=60)
    with CpuDevice(Sandbox.open(), chosen.limits, chosen.problem_ref) as device:
        (outcome,) = device.run(build, str(source.parent), [greedy], chosen, quietly)
    assert outcome.verdict is Verdict.RE
    assert "more memory than the lab's 700 MB" in str(outcome.message)
