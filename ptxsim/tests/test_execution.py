"""Whole programs, built by nvcc, run beside their device in another process."""

import json
import os
import random
import re
import shlex
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import msgspec
import pytest

from program_runs import PROGRAMS, called, line_of, ptxsim, rows
from ptxsim.execution import messages
from ptxsim.execution.building import stand_in
from ptxsim.execution.cublas import FUNCTIONS, INTS
from ptxsim.execution.device import Device, Settings
from ptxsim.execution.host_code import HostCode
from ptxsim.execution.messages import BrokenChannel
from ptxsim.execution.program_file import LIBRARY
from ptxsim.execution.running import device_memory
from ptxsim.execution.serving import Seen, program_environment, serving_command
from ptxsim.findings.writes import WatchedElement
from ptxsim.launching import default_engine, engine_path
from ptxsim.native import shipped_engine
from ptxsim.nvcc import compiled, cuda_program, wheel_folders
from ptxsim.outcome import RefusedProgram

LIBRARIES = {"wrong": (), "libraries": ("-lcublas", "-lcuda")}  # of programs, by their sources
ROWS = [
    [program, *row]
    for program, table in (("wrong", "programs.txt"), ("libraries", "libraries.txt"))
    for row in rows(table)
]


@pytest.fixture(scope="module", autouse=True)
def engine_is_there() -> None:
    """Else the first program says that it is compiled."""
    default_engine()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A function that returns the folder of a program, which its first call builds."""

    @cache
    def build(program: str) -> Path:
        folder = tmp_path_factory.mktemp("programs")
        source = f"{program}.cu"
        shutil.copy(PROGRAMS / source, folder)
        done = ptxsim("nvcc", source, "-o", program, *LIBRARIES[program], folder=folder)
        assert done.returncode == 0, done.stderr
        return folder

    return build


def test_the_readmes_first_program_says_what_it_shows(tmp_path: Path) -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    (source,) = re.findall(r"```cuda\n(.*?)```", readme, re.DOTALL)
    found = re.findall(r"^\$ ptxsim (.*)\n((?:.*\n)*?)```", readme, re.MULTILINE)
    (tmp_path / "scale.cu").write_text(source)
    (line, shown), (watching, writes) = found
    done = ptxsim(*line.split(), folder=tmp_path)
    assert (done.stdout + done.stderr, done.returncode) == (shown, 1)
    watched = ptxsim(*shlex.split(watching), folder=tmp_path)
    assert (watched.stdout + watched.stderr, watched.returncode) == (writes + done.stderr, 1)


def test_a_right_program_keeps_its_output_and_its_status(tmp_path: Path) -> None:
    shutil.copy(PROGRAMS / "right.cu", tmp_path)
    done = ptxsim("exec", "right.cu", "--json", "found.json", "--", "word", folder=tmp_path)
    assert done.stdout == "counted 1000\nright word\n"
    assert done.stderr.strip().startswith("note: times between events are the simulator's own")
    assert done.returncode == 7
    document = json.loads((tmp_path / "found.json").read_text())
    assert (document["findings"], document["launches"], document["skipped"]) == ([], 7, 0)
    assert "the simulator's own" in document["notes"][0]


def test_allocations_have_names_in_optimised_host_code(tmp_path: Path) -> None:
    """There cudaMalloc's template is inlined into the user's line."""
    shutil.copy(PROGRAMS / "wrong.cu", tmp_path)
    done = ptxsim("nvcc", "-O2", "wrong.cu", "-o", "wrong", folder=tmp_path)
    done = ptxsim("exec", "wrong", "--", "overrun", folder=tmp_path)
    where = f"wrong.cu:{line_of('wrong', 'MAIN')}"
    assert f"past the end of the 64-byte allocation d_a ({where})" in done.stderr


def test_libraries_compute_what_plain_loops_do(built: Callable[[str], Path]) -> None:
    done = ptxsim("exec", "libraries", folder=built("libraries"))
    assert (done.returncode, done.stdout) == (0, "right\n"), done.stderr
    assert "error:" not in done.stderr and "warning:" not in done.stderr  # it leaves its memory


@pytest.mark.nightly
def test_nothing_is_found_in_thrust_and_cub(tmp_path: Path) -> None:
    shutil.copy(PROGRAMS / "algorithms.cu", tmp_path)
    done = ptxsim("exec", "algorithms.cu", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "right\n", "")


@pytest.mark.parametrize(("program", "mistake", "status", "prints", "says"), ROWS)
def test_a_mistake_is_named(
    built: Callable[[str], Path],
    program: str,
    mistake: str,
    status: str,
    prints: str,
    says: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    done = called("exec", program, "--", mistake, folder=built(program), capfd=capfd)
    line = line_of(program, mistake)
    assert done.returncode == int(status), done.stderr
    assert prints in done.stdout
    says = says.replace("$LINE", str(line)).replace("$MAIN", f"wrong.cu:{line_of('wrong', 'MAIN')}")
    assert says in done.stderr
    if line:
        assert f"{program}.cu:{line}" in done.stderr
    if not says:
        assert "error:" not in done.stderr and "warning:" not in done.stderr
    if mistake != "unasked":
        assert "never asked" not in done.stderr


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("watched")
    shutil.copy(PROGRAMS / "watched.cu", folder)
    assert ptxsim("nvcc", "watched.cu", "-o", "watched", folder=folder).returncode == 0
    return folder


def test_every_write_to_an_element_is_listed(watched: Path) -> None:
    """By kernels, calls, and host code alone; of two variables with one name; to the abort."""
    ints = (
        "d_c[5]",
        "d_n[0]",
        "counter[0]",
        "total[1]",
        "d_b[3]:f32",
        "d_again:63[5]:i8",
        "d_again[12]:i32",
    )
    options = [word for each in (*ints, "d_again[1]") for word in ("--watch", each)]
    done = ptxsim("exec", "watched", *options, "--json", "found.json", folder=watched)
    assert (done.stdout, done.returncode) == ("", 1)
    shown = (PROGRAMS / "watched.txt").read_text()
    assert done.stderr.startswith(f"\n{shown}\nerror: race")
    writes = json.loads((watched / "found.json").read_text())["writes"]
    lines = [line for line in shown.splitlines() if line[0] != " "]
    assert [each["element"] for each in writes] == [line.split()[0] for line in lines]
    sums = [each for each in writes if each["by"].startswith("add")]
    assert [(each["launch"], each["old"], each["new"]) for each in sums] == [(1, None, 10.0)]


@pytest.mark.parametrize(
    ("element", "says"),
    [
        ("d_x[5]", "no memory has this name; there are counter, d_a:39, d_b:39, d_c:40, d_n:50,"),
        ("d_n[2]", "d_n has 8 bytes, 2 elements of 4"),
        ("d_c[1,2]", "give NAME[5] or NAME[5]:f64"),
    ],
)
def test_an_element_that_is_not_there_is_named(watched: Path, element: str, says: str) -> None:
    done = ptxsim("exec", "watched", "--watch", element, folder=watched)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("ptxsim: --watch d_") and says in done.stderr


@pytest.mark.parametrize(("options", "value"), [((), 107), (("-rdc=true",), 1007)])
def test_files_share_names_only_if_they_are_linked(
    tmp_path: Path, options: Sequence[str], value: int
) -> None:
    """A later module also has narrower accesses than what was there when memory was first used."""
    for name in ("parts", "other_part"):
        shutil.copy(PROGRAMS / f"{name}.cu", tmp_path)
        done = ptxsim("nvcc", *options, "-c", f"{name}.cu", "-o", f"{name}.o", folder=tmp_path)
        assert done.returncode == 0, done.stderr
    linked = ("parts.o", "other_part.o", "-o", "program")
    assert ptxsim("nvcc", *options, *linked, folder=tmp_path).returncode == 0
    done = ptxsim("exec", "program", folder=tmp_path)
    said = f"here 5\nthere 6\nhere 5\n{value} 5 3 cudaSuccess\n"
    assert (done.stdout, done.stderr, done.returncode) == (said, "", 0)


WHOLE_48_KIB = """
#include <cstdio>

__global__ void kernel(float* p) {
  extern __shared__ float words[];
  words[threadIdx.x] = 1;
  p[threadIdx.x] = words[threadIdx.x];
}

int main() {
  cudaFuncAttributes is;
  cudaFuncGetAttributes(&is, kernel);
  float* p;
  cudaMalloc(&p, 128);
  kernel<<<1, 32, 48 << 10>>>(p);
  std::printf("%zu %d %d\\n", is.sharedSizeBytes, is.maxDynamicSharedSizeBytes, cudaGetLastError());
  return cudaFree(p);
}
"""


def test_what_the_system_keeps_of_shared_memory_is_not_the_kernels(tmp_path: Path) -> None:
    """An H200 says the same: none of the kernel's own, and 48 KiB for the asking."""
    (tmp_path / "whole.cu").write_text(WHOLE_48_KIB)
    done = ptxsim("exec", "-arch", "sm_90", "whole.cu", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0 49152 0\n", "")


def test_calls_that_are_not_there_are_named_with_their_lines(tmp_path: Path) -> None:
    """Before anything runs, and also of a program that was linked with CUDA's own library."""
    (tmp_path / "graph.cu").write_text(
        "int main() {\n  cudaGraph_t g;\n  cudaGraphCreate(&g, 0);\n  cudaGraphDestroy(g);\n}\n"
    )
    said = [
        f"ptxsim: graph.cu:{line}: {call} is not simulated\n"
        for line, call in ((3, "cudaGraphCreate"), (4, "cudaGraphDestroy"))
    ]
    done = ptxsim("exec", "graph.cu", folder=tmp_path)
    assert (done.returncode, done.stderr) == (3, "".join(said))
    nvcc = cuda_program("nvcc")
    assert nvcc
    (tmp_path / "libcudart.so").symlink_to(wheel_folders()[0] / "lib" / LIBRARY)
    command = [nvcc, "-g", "-cudart", "shared", "-L.", "graph.cu", "-o", "graph"]
    assert subprocess.run(command, cwd=tmp_path, check=False).returncode == 0
    done = ptxsim("exec", "graph", folder=tmp_path)
    assert (done.returncode, done.stderr) == (3, "".join(said))


def test_a_program_built_in_another_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "script").write_text("#!/bin/sh\n")
    (tmp_path / "two.cu").write_text("__global__ void k() {}\nint main() { k<<<1, 1>>>(); }\n")
    shared, only = ("-cudart", "shared"), ("-arch=sm_80",)
    for name, options in (("static", ()), ("machine_code", (*shared, *only))):
        done = subprocess.run(["nvcc", *options, "two.cu", "-o", name], cwd=tmp_path, check=True)
    other = bytearray((tmp_path / "static").read_bytes())
    other[18:20] = struct.pack("<H", 243)  # RISC-V
    (tmp_path / "other").write_bytes(other)
    for program, why in (
        ("script", "not a program of this system"),
        ("/bin/true", "not a CUDA program"),
        ("static", "linked with CUDA's static runtime"),
        ("machine_code", "machine code only"),
        ("other", "a program for another machine (RISC-V)"),
    ):
        done = ptxsim("exec", program, folder=tmp_path)
        assert (done.returncode, done.stdout) == (3, "")
        assert why in done.stderr and len(done.stderr.splitlines()) == 1
        assert "ptxsim nvcc" in done.stderr or program == "/bin/true"


def test_outside_of_ptxsim_such_a_program_says_how_to_run_it(
    built: Callable[[str], Path],
) -> None:
    environment = {**os.environ, "LD_LIBRARY_PATH": str(stand_in())}
    done = subprocess.run(
        ["./wrong", "none"], cwd=built("wrong"), env=environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert "ptxsim exec PROGRAM" in done.stderr


def test_two_may_compile_the_library_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with ThreadPoolExecutor() as pool:
        folders = [each.result() for each in [pool.submit(stand_in) for _ in range(2)]]
    assert folders[0] == folders[1]
    assert (folders[0] / LIBRARY).is_file() and (folders[0] / "libcudart.so").is_file()


def test_a_device_serves_a_program_that_somebody_else_runs(tmp_path: Path) -> None:
    """Where launches do nothing, they are counted, and the program finds its results wrong."""
    shutil.copy(PROGRAMS / "right.cu", tmp_path)
    assert ptxsim("nvcc", "right.cu", "-o", "right", folder=tmp_path).returncode == 0
    program, engine = tmp_path / "right", shipped_engine() or engine_path()
    statuses, launches = [], []
    for most in (sys.maxsize, 0):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            memory = device_memory()
            command = serving_command(engine, program, tmp_path, ours.fileno(), memory, 9, most)
            fds = (ours.fileno(), memory)
            device = subprocess.Popen(command, pass_fds=fds, stdout=subprocess.PIPE)
            given = program_environment(stand_in(), theirs.fileno(), memory)
            fds = (theirs.fileno(), memory)
            done = subprocess.run([program, "word"], env={**os.environ, **given}, pass_fds=fds)
        os.close(memory)
        said, _ = device.communicate(timeout=60)
        seen = msgspec.json.decode(said, type=Seen)
        statuses.append(done.returncode)
        launches.append(seen.launches)
    assert statuses[0] == 7 != statuses[1]
    assert launches[0] == launches[1] > 0


def test_no_message_breaks_the_device(tmp_path: Path) -> None:
    """Requests that host code could forge are answered, refused, or end the channel."""
    source = tmp_path / "twice.cu"
    source.write_text("__global__ void twice(float* x) { x[threadIdx.x] *= 2; }")
    ptx = compiled(source, "sm_80")
    drawn = random.Random(1)
    at = messages.FIRST_ADDRESS
    numbers = (0, 1, 31, 32, 1 << 20, at, at + 4, at + 128, at + (1 << 40), (1 << 56) - 1)
    kinds = (*messages.Request.__args__, messages.NewAllocation, messages.LaunchKernel)
    ended = {BrokenChannel: 0, RefusedProgram: 0, None: 0}
    for _ in range(120):
        file = os.memfd_create("memory")
        os.ftruncate(file, messages.ARENA_BYTES)
        watch = [WatchedElement(name="an allocation", index=drawn.choice(numbers))][
            : drawn.randrange(2)
        ]
        device = Device(default_engine(), file, HostCode(Path("/bin/true")), Settings(watch=watch))
        end = None
        try:
            device.answer(messages.NewModule(), ptx.encode())
            for _ in range(30):
                kind = drawn.choice(kinds)
                text = msgspec.json.encode(_drawn(msgspec.inspect.type_info(kind), drawn, numbers))
                request = msgspec.json.decode(text, type=messages.Request)
                device.answer(request, struct.pack("<Q", drawn.choice(numbers)))
        except (BrokenChannel, RefusedProgram) as error:
            end = type(error)
        finally:
            os.close(file)
        assert all(str(each.message) for each in device.found.remarks())
        ended[end] += 1
    assert min(ended[BrokenChannel], ended[RefusedProgram]) > 5, ended


def test_no_call_of_a_library_breaks_the_device(tmp_path: Path) -> None:
    drawn = random.Random(1)
    at = messages.FIRST_ADDRESS
    file = os.memfd_create("memory")
    os.ftruncate(file, messages.ARENA_BYTES)
    device = Device(default_engine(), file, HostCode(Path("/bin/true")), Settings())
    device.answer(messages.NewAllocation(address=at, size=1 << 16, frames=()), b"")
    numbers = (0, 1, 2, 2, 3, 3, 8, 68, -1, (1 << 31) - 1)
    pointers = (*numbers, *[at] * 9, at + 4, at + 64, at + (1 << 16), 1 << 62)
    statuses = set()
    for function in list(FUNCTIONS.values()) * 20:
        factors = sum(each in ("alpha", "beta") for each in function.arguments)
        on_device = drawn.random() < 0.3
        asked = messages.CallLibrary(
            function=function.name,
            arguments=tuple(
                drawn.choice(numbers if each in INTS else pointers) for each in function.arguments
            ),
            on_device=on_device,
            frames=(),
        )
        given = b"" if on_device else drawn.randbytes(16 * factors)
        answer = device.answer(asked, given)
        assert answer is not None
        statuses.add(int.from_bytes(answer[:4], "little"))
        with pytest.raises(BrokenChannel):
            device.answer(asked, given + b"x")
    os.close(file)
    assert statuses == {0, 7, 13, 15}


def _drawn(
    wanted: msgspec.inspect.Type, drawn: random.Random, numbers: Sequence[int], name: str = ""
) -> object:
    """A value of the type; of some fields one that the device knows, more often than not."""
    extents = (1, 1, 1, 2, 32, 1025, 0, -1, 1 << 31)
    known = {
        "name": drawn.choice(("_Z5twicePf", "nothing")),
        "kernel": "_Z5twicePf",
        "module": drawn.choice((0, 0, 0, 1)),
        "rows": drawn.choice((1, 1, 2, 33)),
        "grid": [drawn.choice(extents) for _ in range(3)],
        "block": [drawn.choice(extents) for _ in range(3)],
        "cluster": [1, 1, drawn.choice(extents)] if drawn.random() < 0.1 else [1, 1, 1],
        "cooperative": drawn.random() < 0.1,
        "stack_bytes": 1024,
        "function": "Sgemm_v2",
        "arguments": [0, 1],
        "on_device": True,
        "refused": {"number": drawn.choice((-1, 0, 5, 99)), "args": {"function": "cudaFree"}},
    }
    if name in known:
        return known[name]
    match wanted:
        case msgspec.inspect.StructType(fields=fields, tag=tag):
            values = {
                each.encode_name: _drawn(each.type, drawn, numbers, each.name) for each in fields
            }
            return {"type": tag, **values} if tag else values
        case msgspec.inspect.VarTupleType(item_type=item):
            return [_drawn(item, drawn, numbers) for _ in range(drawn.randrange(3))]
        case msgspec.inspect.UnionType(types=types):
            return _drawn(drawn.choice(types), drawn, numbers)
        case msgspec.inspect.LiteralType(values=values):
            return drawn.choice(values)
        case msgspec.inspect.BoolType():
            return drawn.random() < 0.5
        case msgspec.inspect.NoneType():
            return None
        case msgspec.inspect.StrType():
            return "text"
    return drawn.choice(numbers)
