"""What run_custom does becomes a plan, or a refusal that names the line.

All host code is in host/sgemm.cu, compiled once; the size's M chooses what it does.
"""

import re
import shutil
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

import msgspec
import numpy as np
import pytest

from grader.base.errors import Rejected
from grader.base.gpus import standing_for
from grader.base.records import Verdict
from grader.build.toolchain import find_toolchain
from grader.labs.shape import Limits
from grader.labs.submission import Submission, load_submission
from grader.record import recording
from grader.record.recording import record_plans, recorder_program
from grader.record.refusals import REFUSALS, refusal_sentence
from grader.sandbox import seccomp as lockdown
from grader.sandbox.running import Completed, Sandbox
from ptxsim import plan as records
from ptxsim import runtime
from ptxsim.frontend.interface import interface
from ptxsim.frontend.module import read_module
from tests.support.bench import MODES, built, read_declarations
from tests.support.files import beside, table, values
from tests.support.places import CHEATS
from tests.support.product import GEMM, MAIN

FOLDER = Path(__file__).parent / "host"
RECORD = Path(recording.__file__).parent
ASKS = CHEATS / "leaves_word_in_the_kernel" / "asks.cuh"
SOURCE = (FOLDER / "sgemm.cu").read_text().splitlines()
N, K = 3, 5
RSEQ_BYTES = 32
MAX_LINE = 24  # bytes of a size, as this file chooses them

Recorder = Callable[..., tuple[records.Plan | Rejected, ...]]


@pytest.fixture(scope="session")
def submission(tmp_path_factory: pytest.TempPathFactory) -> Submission:
    folder = tmp_path_factory.mktemp("record") / "host"
    folder.mkdir()
    for file in (FOLDER / MAIN, ASKS):
        shutil.copy(file, folder)
    return load_submission(folder, MAIN)


@pytest.fixture(scope="session")
def recorded(submission: Submission) -> Recorder:
    build = built(submission.folder)
    declared = read_declarations(build, str(submission.folder), Sandbox.open())

    def run(
        *scenarios: int, mode: str = "auto", arch: str = "sm_80", record_s: float = 5, **more: bool
    ) -> tuple[records.Plan | Rejected, ...]:
        sizes = [records.Size.of(m=scenario, n=N, k=K) for scenario in scenarios]
        tools = find_toolchain(), Sandbox.open(mode)
        options = {"declared": declared, "target": standing_for(arch), **more}
        options["limits"] = Limits(record_s=record_s, memory_mb=2048)
        return record_plans(build, submission, GEMM, sizes, *tools, **options)

    return run


def plan(recorded: Recorder, scenario: int) -> records.Plan:
    (one,) = recorded(scenario)
    assert isinstance(one, records.Plan), one
    return one


def launches(one: records.Plan) -> list[records.Launch]:
    return [operation for operation in one.operations if isinstance(operation, records.Launch)]


def without_places(operations: Sequence[records.Operation]) -> list[records.Operation]:
    return [msgspec.structs.replace(each, place=None) for each in operations]


def pointers(
    holder: records.Launch | records.SymbolWrite | records.Write,
) -> list[tuple[int, int, int]]:
    return [(slot.offset, slot.allocation, slot.delta) for slot in holder.pointers]


def integer(launch: records.Launch) -> int:
    """The second parameter of ``tell``."""
    return int(struct.unpack_from("<i", launch.params, 8)[0])


def test_launches(recorded: Recorder) -> None:
    one = plan(recorded, 1)
    assert one.size == records.Size.of(m=1, n=N, k=K)
    assert [(a.name, a.size) for a in one.allocations] == [("A", 20), ("B", 60), ("C", 12)]
    first, second, third, fourth = launches(one)
    assert first.kernel == "_Z4tellPfi"
    assert (first.grid, first.block) == ((2, 3, 4), (5, 6, 1))
    assert pointers(first) == [(0, 2, 0)]
    assert second.kernel == "_Z9templatedILi7EEvPf"
    assert (third.params, third.pointers) == (b"", ())
    assert "hidden" in fourth.kernel


def test_statics_are_fresh_for_every_size_and_live_on_between_calls(recorded: Recorder) -> None:
    for one in recorded(1, 1):
        setup = [o for o in one.setup if isinstance(o, records.Launch) and o.kernel == "_Z4tellPfi"]
        assert [integer(launch) for launch in setup] == [1, 2]
        assert integer(launches(one)[0]) == 3
        assert one.calls_differ == (
            "step 1 of the second call is a launch of tell with grid (2, 3, 4) and block "
            "(5, 6, 1), with other values in the third"
        )


def test_what_is_kept_is_set_up_once(recorded: Recorder) -> None:
    one = plan(recorded, 11)
    assert one.calls_differ == ""
    kept = [(f"workspace {i}", size) for i, size in ((1, 400), (2, 40), (3, 40))]
    assert [(a.name, a.size) for a in one.allocations[3:]] == kept
    lines = [each.place.line for each in one.operations if each.place]
    assert [SOURCE[line - 1].split("(")[0].strip() for line in lines] == [
        *("cudaMallocAsync", "cudaDeviceSynchronize", "cudaFreeAsync")
    ]
    make, call, wait, free = without_places(one.operations)
    assert make == records.Allocate(allocation=5, ordered=True)
    assert [(p.allocation, p.delta) for p in call.pointers] == [(3, 0), (5, 4)]
    assert wait == records.Synchronise()
    assert free == records.Free(allocation=5, ordered=True)
    assert one.own == {5}
    assert without_places(one.setup)[0] == records.Allocate(allocation=3)
    assert len(one.setup) == 5
    assert set(one.variables) == {"variable", "large_table"}


def test_each_call_may_free_what_the_one_before_it_made(recorded: Recorder) -> None:
    one = plan(recorded, 12)
    assert one.calls_differ == ""
    assert without_places(one.operations[:2]) == [
        records.Free(allocation=3),
        records.Allocate(allocation=4),
    ]


def test_calls_that_never_settle(recorded: Recorder) -> None:
    one = plan(recorded, 13)
    assert [len(one.setup), len(one.operations)] == [3, 3]
    assert one.calls_differ == "the second call has 2 steps and the third 3"


def test_bytes_that_no_kernel_reads_may_differ(recorded: Recorder) -> None:
    one = plan(recorded, 19)
    (before,) = (each.params for each in one.setup if isinstance(each, records.Launch))
    (after,) = (each.params for each in one.operations if isinstance(each, records.Launch))
    assert before != after
    assert one.calls_differ == ""


@pytest.mark.parametrize("scenario", [14, 38], ids=["30 GB, freed", "left on the stack"])
def test_what_a_call_leaves_behind_it_is_gone_in_the_next(
    scenario: int, recorded: Recorder
) -> None:
    """Three calls of 30 GB are more than the 80 that the device has."""
    assert plan(recorded, scenario).calls_differ == ""


@pytest.mark.parametrize(("scenario", "after"), values(__file__, "streams.txt"))
def test_the_order_of_streams(
    recorded: Recorder, scenario: int, after: tuple[tuple[int, ...] | None, ...]
) -> None:
    operations = plan(recorded, scenario).operations
    assert tuple(each.after for each in operations) == after
    assert not any(each.frames for each in operations)
    lines = [each.place.line for each in operations if each.place]
    assert sorted(set(lines)) == lines and len(lines) == len(operations)


def test_what_the_host_has_waited_for_is_done(recorded: Recorder) -> None:
    *_, last = launches(plan(recorded, 100))
    assert struct.unpack_from("<i", last.params, 8)[0] == 3


def test_a_call_comes_after_the_one_before_it(recorded: Recorder) -> None:
    """Both are in the set-up, where the third call is another one."""
    one = plan(recorded, 35)
    assert one.calls_differ
    assert [type(each) for each in one.setup] == [
        *[records.Launch] * 3,
        records.Synchronise,
        *[records.Launch] * 3,
    ]


def test_a_later_call_may_be_refused(recorded: Recorder) -> None:
    for scenario, words in (
        (15, "run_custom launched no kernel, in call 3 of run_custom for one size"),
        (16, "cudaFree: A belongs to the grader, in call 2 of run_custom for one size"),
    ):
        (one,) = recorded(scenario)
        assert words in str(one)


def test_parameter_layout_follows_c(recorded: Recorder) -> None:
    one = plan(recorded, 2)
    (launch,) = launches(one)
    params = launch.params
    assert len(params) == 64
    assert params[0:1] == b"x"
    assert struct.unpack_from("<i", params, 8)[0] == 1
    assert struct.unpack_from("<h", params, 24)[0] == 3
    assert struct.unpack_from("<d3f", params, 32) == (2.5, 1, 2, 3)
    assert launch.arguments == (0, 8, 32, 40, 56)
    past_the_end = one.allocations[0].size
    assert pointers(launch) == [(16, 2, 8), (56, 0, past_the_end)]


def test_launch_functions_and_dynamic_shared_memory(recorded: Recorder) -> None:
    three, four = recorded(3, 4)
    said = [(launch.kernel, integer(launch)) for launch in launches(three)]
    assert said == [("_Z4tellPfi", 9)] * 3
    (launch,) = launches(four)
    assert (launch.shared_bytes, launch.carveout) == (64 << 10, 100)


def test_memory(recorded: Recorder) -> None:
    one = plan(recorded, 5)
    work = one.allocations[3]
    assert (work.name, work.size, work.address % 256) == ("workspace 1", 1000, 0)
    make, fill, to_work, to_c, live, free, freed = without_places(one.operations)
    own = make.allocation  # of the third call: a pointer to freed memory differs in each
    assert free == records.Free(allocation=own)
    assert fill == records.Memset(allocation=own, delta=0, value=255, size=1000)
    assert to_work == records.Copy(source=2, source_delta=0, target=own, target_delta=4, size=4)
    assert to_c == records.Copy(source=own, source_delta=4, target=2, target_delta=0, size=4)
    assert [(p.allocation, p.delta) for p in live.pointers] == [(own, 12)]
    assert freed.pointers == (), "a freed allocation is no longer one"


def test_pitched_and_managed_memory_is_device_memory(recorded: Recorder) -> None:
    one = plan(recorded, 17)
    assert [a.size for a in one.allocations[3:5]] == [512 * 3, 40]
    row, fill = (each for each in one.operations if isinstance(each, records.Copy | records.Memset))
    assert (row.source_delta, row.target_delta, row.size) == (512, 0, 512)
    assert fill.size == 3 * 512
    (launch,) = launches(one)
    assert integer(launch) == 512 + (8 << 10)
    assert launch.stack_bytes == 8 << 10


def test_copies_from_the_host_and_of_rows(recorded: Recorder) -> None:
    one = plan(recorded, 74)
    pointer, number, rows, whole = (
        each for each in one.operations if isinstance(each, records.Copy | records.Write)
    )
    assert pointers(pointer) == [(0, 0, 4)]
    assert (pointer.delta, len(pointer.data), pointer.blocking) == (4, 8, False)
    assert (number.data, number.blocking) == (struct.pack("<i", one.size.extents[2]), True)
    shape = rows.size, rows.rows, rows.source_pitch, rows.target_pitch
    assert (shape, rows.source_span, rows.target_span) == ((8, 2, 12, 16), 20, 24)
    assert (whole.size, whole.rows) == (16, 1)


def test_symbols(recorded: Recorder) -> None:
    one = plan(recorded, 6)
    write, copy, launch, _ = without_places(one.operations)
    assert write == records.SymbolWrite(
        symbol="constant_table", delta=4, data=struct.pack("<2i", 1, 2), blocking=True
    )
    assert one.allocations[3] == records.Allocation(
        name="variable", address=one.allocations[3].address, size=64, symbol="variable"
    )
    assert copy == records.Copy(source=2, source_delta=0, target=3, target_delta=8, size=8)
    assert [(p.allocation, p.delta) for p in launch.pointers] == [(3, 4)]


def test_questions_about_the_device(recorded: Recorder) -> None:
    properties, occupancy, potential, bound = launches(plan(recorded, 7))
    assert integer(properties) == 108  # an A100's multiprocessors
    assert integer(occupancy) == 8  # 2048 threads of 256
    assert (potential.grid[0], potential.block[0]) == (216, 1024)
    assert integer(bound) == 128


def test_questions_about_clusters(recorded: Recorder) -> None:
    (hopper,) = recorded(39, arch="sm_90a")
    # 132 multiprocessors, 16 of them in a GPC, hold two blocks each; larger clusters need leave.
    active, sizes = [66 * 2, 8 * 4 + 1, -1, 8 * 2], [8, 8, 8, 16]
    assert [integer(each) for each in launches(hopper)] == [
        value for both in zip(active, sizes, strict=True) for value in both
    ]
    (ampere,) = recorded(39)
    assert [integer(each) for each in launches(ampere)] == 8 * [-1]


def test_cooperative_launches(recorded: Recorder) -> None:
    one, *others = launches(plan(recorded, 18))
    assert (one.cooperative, one.grid, integer(one)) == (True, (432, 1, 2), 1)
    assert [each.cooperative for each in others] == [True, False, False]


def test_programmatic_launches(recorded: Recorder) -> None:
    """They may begin early where a launch into their stream is directly before them, and the GPU
    can do it; an older one takes the attribute and ignores it."""
    (hopper,) = recorded(52, arch="sm_90a")
    early = [each.programmatic for each in launches(hopper)]
    assert early == [False, True, False, True, False, False, False, True, False, False, True, False]
    assert not any(each.programmatic for each in launches(plan(recorded, 52)))
    assert not any(each.programmatic for each in launches(plan(recorded, 1)))


def said(one: records.Plan) -> list[tuple[str, str]]:
    """What CUDA refused, and a word of its line."""
    assert all(each.place for each in one.refused)
    lines = [SOURCE[each.place.line - 1] for each in one.refused if each.place]
    return [
        (str(refusal_sentence(each.refused)), line.partition("// ")[2])
        for each, line in zip(one.refused, lines, strict=True)
    ]


def test_every_refusal_is_made_somewhere() -> None:
    """By the recorder; recording.py makes those that it cannot."""
    folders = (RECORD / "recorder", runtime.SOURCE.parent)
    made = [RECORD / "recording.py", *(path for each in folders for path in each.glob("*.cpp"))]
    words = set(re.findall(r"\w+", "".join(path.read_text() for path in made)))
    assert not {each.name for each in REFUSALS} - words


def test_empty_launches_do_nothing(recorded: Recorder) -> None:
    one = plan(recorded, 90)
    assert [integer(each) for each in launches(one)] == [7, 9]
    cannot = "cudaErrorInvalidConfiguration: kernel tell cannot be launched: "
    assert said(one) == [
        (f"{cannot}the grid (0, 2, 1) has a zero", "first"),
        (f"{cannot}the block (32, 0, 1) has a zero", "empty"),
    ]
    assert [type(each) for each in plan(recorded, 92).operations] == [records.Memset]


def test_too_large_an_allocation_is_told(recorded: Recorder) -> None:
    one = plan(recorded, 91)
    assert said(one) == [("cudaMalloc of 300 GiB returned cudaErrorMemoryAllocation", "300 GiB")]
    assert one.refused[0].bytes == 300 << 30
    assert len(one.allocations) == 3


def test_copies_alone_are_a_plan(recorded: Recorder) -> None:
    (copy,) = without_places(plan(recorded, 93).operations)
    assert copy == records.Copy(source=0, source_delta=0, target=2, target_delta=0, size=4 * 93 * N)
    (element,) = without_places(plan(recorded, 94).operations)
    last = 4 * (94 * K - 1)
    assert element == records.Copy(source=0, source_delta=last, target=2, target_delta=0, size=4)


def test_own_device_vector(recorded: Recorder) -> None:
    one = plan(recorded, 9)
    assert [a.size for a in one.allocations[3:]] == [1200] * 4, "two for each of two calls"
    _, fill, _, copy, tell, *_ = one.operations
    assert "fill" in fill.kernel and isinstance(copy, records.Copy)
    assert [(p.allocation, p.delta) for p in tell.pointers] == [(6, 16)]


def test_pointers_anywhere(recorded: Recorder) -> None:
    """Unaligned, before the start, past the end, in parameters and in constants; and a program
    may ask for errors."""
    errors, one = recorded(8, 10)
    assert len(launches(errors)) == 1
    sizes = [a.size for a in one.allocations]
    write, launch = one.operations
    packed = [(1, 2, 8), (9, 0, -16), (17, 1, sizes[1])]
    assert pointers(write) == packed
    assert pointers(launch) == [*packed, (32, 3, -4)]


CALLS = table(__file__, "refused.txt")
REFUSED = {int(number): (Verdict(verdict), words) for number, verdict, words in CALLS}
NO_LINE = {28, 96, 97, 42, 45, 49}  # no call of run_custom's is to blame, or none can be named


@pytest.fixture(scope="session", params=["auto", "off"])
def refused(
    request: pytest.FixtureRequest, recorded: Recorder
) -> dict[int, records.Plan | Rejected]:
    return dict(zip(REFUSED, recorded(*REFUSED, mode=request.param), strict=True))


@pytest.mark.parametrize("scenario", REFUSED)
def test_refused(scenario: int, refused: dict[int, records.Plan | Rejected]) -> None:
    (verdict, words), one = REFUSED[scenario], refused[scenario]
    assert isinstance(one, Rejected), one
    assert one.verdict is verdict
    rest = str(one)
    assert "\n" not in rest
    for part in words.split(" .* "):
        assert part in rest
        rest = rest.partition(part)[2]
    (finding,) = one.findings
    if scenario not in NO_LINE:
        assert finding.file == "sgemm.cu"
        assert finding.line is not None
        nearby = SOURCE[finding.line - 1]
        assert f"case {scenario}:" in nearby or scenario in (46, 64, 68, 69), nearby
        assert str(one).startswith(f"sgemm.cu:{finding.line}: ")


def test_nobody_looks_for_lines_unless_asked_to(
    recorded: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a hidden size, nobody does."""
    monkeypatch.setattr(recording, "locate", None)
    streams, crash = recorded(33, 41, located=False)
    assert not any(each.frames or each.place for each in streams.operations)
    assert str(crash).startswith("host code crashed with Segmentation fault")


def test_host_code_starts_and_ends_no_process(recorded: Recorder) -> None:
    one, after = recorded(48, 1)
    assert integer(launches(one)[0]) == 1
    assert isinstance(after, records.Plan)


@pytest.mark.parametrize("mode", MODES)
def test_host_code_leaves_no_word_for_others(mode: str, recorded: Recorder) -> None:
    """By no call of the kernel that one process could make and another one notice."""
    (asked,) = recorded(98, mode=mode)
    assert str(asked).endswith("host code threw an exception: allowed: nothing")


def test_a_kernel_without_filters_records_all_the_same(
    recorded: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lockdown, "host_code_filter", lambda: b"")
    assert len(launches(plan(recorded, 1))) == 4
    (asked,) = recorded(98)
    assert " openat " in str(asked)  # ready() refuses hidden sizes there


def test_a_child_knows_no_size_but_its_own(recorded: Recorder) -> None:
    """Neither those that are still to come nor what was recorded at those before."""
    before, one, after = recorded(7654321, 99, 7654321)
    assert [integer(launch) for launch in launches(one)] == [0]
    for other in (before, after):
        assert launches(other)[0].grid == (7654321, 1, 1)


class Memory(records.Record):
    """What a recorder's child holds shortly before host code is loaded."""

    processes: tuple[int, int]  # the child and its supervisor
    cpu: int  # the address at which the kernel writes the CPU's number
    mappings: dict[int, bytes]  # by address

    def word(self, start: int, offset: int) -> int:
        """The 32 bits around one byte of a mapping."""
        return int.from_bytes(self.mappings[start][offset & ~3 :][:4], "little")


@pytest.fixture
def memories(
    recorded: Recorder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., list[Memory]]:
    """Record scenarios, and return what each child had in its memory."""
    library, dump = tmp_path / "dump_memory.so", tmp_path / "dump"
    source = Path(__file__).parent / "data" / "dump_memory.cpp"
    subprocess.run(["g++", "-O1", "-shared", "-fPIC", source, "-o", library], check=True)
    start, preloaded = Sandbox.run, {"LD_PRELOAD": str(library), "DUMP": str(dump)}

    def run(sandbox: Sandbox, argv: Sequence[str], **options: Any) -> Completed:
        more = {"env": preloaded} if "recorder" in argv[0] else {}
        return start(sandbox, argv, **options, **more)

    def record(*scenarios: int) -> list[Memory]:
        dump.touch()
        monkeypatch.setattr(Sandbox, "run", run)
        recorded(*scenarios, mode="off", located=False)
        with dump.open("rb") as file:
            return [read_memory(file) for _ in scenarios]

    return record


def read_memory(file: IO[bytes]) -> Memory:
    def pair() -> tuple[int, int]:
        first, second = struct.unpack("QQ", file.read(16))
        return first, second

    processes, (cpu, _), mappings = pair(), pair(), {}
    while (span := pair()) != (0, 0):
        mappings[span[0]] = file.read(span[1])
    return Memory(processes=processes, cpu=cpu, mappings=mappings)


def test_all_that_differs_between_children_is_their_own(
    memories: Callable[..., list[Memory]],
) -> None:
    """Whatever a child replies, and however it ends: another one differs from it by nothing but the
    numbers of its processes and of its CPU, and the line with its size."""
    scenarios = (1, 101, 1, 41, 2)
    first, *others = memories(*scenarios)
    for scenario, other in zip(scenarios[1:], others, strict=True):
        own = f"{scenario * K} {K * N} {scenario * N} {scenario} {N} {K}\n".encode()
        sizes = {start: len(data) for start, data in first.mappings.items()}
        assert sizes == {start: len(data) for start, data in other.mappings.items()}
        lines = 0
        for start, data in other.mappings.items():
            line = data.find(own)
            lines += data.count(own)
            pair = (np.frombuffer(each.mappings[start], np.uint8) for each in (first, other))
            for offset in map(int, np.flatnonzero(np.not_equal(*pair))):
                words = first.word(start, offset), other.word(start, offset)
                assert (
                    0 <= line <= offset < line + MAX_LINE
                    or first.cpu <= start + offset < first.cpu + RSEQ_BYTES
                    or words in zip(first.processes, other.processes, strict=True)
                ), hex(start + offset)
        assert lines == 1


def test_host_code_finds_no_path_of_the_graders(
    memories: Callable[..., list[Memory]], submission: Submission
) -> None:
    """In arguments, environment, auxiliary vector or elsewhere."""
    (memory,) = memories(1)
    recorder = recorder_program(find_toolchain()).compiled()
    for path in (recorder, recorder.parent, "sgemm-record-", RECORD, submission.folder):
        assert not any(str(path).encode() in data for data in memory.mappings.values()), path
    assert any(b"PATH=/usr/bin:/bin\0" in data for data in memory.mappings.values())


def may_trace() -> bool:
    """Whether this process has CAP_SYS_PTRACE. Root in a container may lack it."""
    capabilities = re.search(r"^CapEff:\s*(\w+)", Path("/proc/self/status").read_text(), re.M)
    return capabilities is not None and bool(int(capabilities[1], 16) >> 19 & 1)


@pytest.mark.skipif(
    not may_trace(), reason="a child hides its memory from whoever may not trace all processes"
)
def test_a_child_has_no_file(recorded: Recorder) -> None:
    """As seen from outside: nothing is mapped but copies, nothing is open but its pipe."""
    running = threading.Thread(target=recorded, args=(50,), kwargs={"record_s": 0.5})
    running.start()
    child = None
    while child is None and running.is_alive():
        child = next(filter(is_caged, Path("/proc").glob("[0-9]*")), None)
        time.sleep(0.01)
    assert child is not None
    mapped = [line.split(maxsplit=5)[5] for line in mappings(child)]
    assert mapped and all(name.startswith("/memfd:host code") for name in mapped)
    opened = {int(each.name): str(each.readlink()) for each in (child / "fd").iterdir()}
    assert opened.pop(3).startswith("pipe:")
    assert opened == dict.fromkeys(range(3), "/dev/null")
    running.join()


def mappings(process: Path) -> list[str]:
    """Of files; memory of no file has the inode 0."""
    lines = (process / "maps").read_text().splitlines()
    return [line for line in lines if line.split()[4] != "0"]


def is_caged(process: Path) -> bool:
    """Whether it runs host code."""
    try:
        return "memfd:host code" in (process / "maps").read_text()
    except OSError:  # ended meanwhile
        return False


@pytest.mark.parametrize("scenario", [50, 51])
def test_nothing_is_recorded_after_an_endless_call(scenario: int, recorded: Recorder) -> None:
    first, endless = recorded(1, scenario, 1, record_s=0.5)
    assert isinstance(first, records.Plan) and endless.verdict is Verdict.TLE
    assert "did not return within 0.5 s" in str(endless)


def test_layouts_from_ptx() -> None:
    entries = interface(read_module(beside(__file__, "layouts.ptx"), Path("/nowhere"))).entries
    places = [(p.offset, p.size) for p in entries["a$b"].params]
    assert places == [(0, 8), (16, 20), (36, 1), (40, 8)]
    assert (entries["a$b"].size, entries["a$b"].max_threads) == (48, 128)
    assert (entries["none"].params, entries["none"].max_threads) == ((), 1024)


@pytest.mark.parametrize(("body", "unread"), values(__file__, "unread.txt"))
def test_what_a_kernel_never_reads_of_its_parameters(
    body: str, unread: tuple[tuple[int, int], ...]
) -> None:
    ptx = beside(__file__, "parameters.ptx", body=body)
    assert interface(read_module(ptx, Path("/nowhere"))).entries["a"].unread == unread
