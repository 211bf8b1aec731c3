"""Calls made from C++ reach the driver in their order and with their arguments.

The driver is a stand-in that writes down what it is asked for; there is no GPU here.
"""

import shutil
import subprocess
from pathlib import Path

import msgspec
import numpy as np
import pytest

from grader.base.errors import MachineError
from grader.run.gpu.calling import Caller, CallStep, DriverCall, StepError, StepKind, steps_of
from ptxsim import DataType, Swizzle, TensorMap
from ptxsim import plan as records
from ptxsim.tensor_maps import encode
from tests.support.bench import engine
from tests.support.files import beside

DRIVER = beside(__file__, "driver.cpp")


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("driver")
    source, library = folder / "driver.cpp", folder / "libcuda.so"
    source.write_text(DRIVER)
    compiler = shutil.which("g++")
    assert compiler
    subprocess.run([compiler, "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    return library


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DRIVER_LOG", str(tmp_path / "log"))
    return tmp_path / "log"


def made(driver: Path, *steps: CallStep) -> DriverCall:
    return Caller(str(driver)).call(steps, [0xA000, 0xB000, 0, 0xD000], 0x77)


# A, B, C, what an earlier call made, what this one makes.
MEMORY = [0xA000, 0xB000, 0xC000, 0xD000, 0xE000]
LAUNCH = records.Launch(
    kernel="k",
    grid=(1, 2, 3),
    block=(4, 5, 6),
    shared_bytes=7,
    params=bytes(12),
    arguments=(0, 8),
    pointers=(records.PointerSlot(offset=0, allocation=4, delta=-8),),
)
ROWS = {"size": 4, "rows": 2, "source_pitch": 8, "target_pitch": 6}
PLAN = records.Plan(
    size=records.Size.of(m=1, n=1, k=1),
    inputs=2,
    outputs=1,
    allocations=tuple(
        records.Allocation(name=str(i), address=at, size=64) for i, at in enumerate(MEMORY)
    ),
    setup=(records.Allocate(allocation=3),),
    operations=(
        records.Free(allocation=3),
        records.Allocate(allocation=4, ordered=True),
        records.SymbolWrite(symbol="table", delta=4, data=b"xyz", blocking=True),
        records.Memset(allocation=4, delta=8, value=1, size=2),
        LAUNCH,
        records.Copy(source=4, source_delta=0, target=2, target_delta=0, **ROWS),
        records.Copy(source=0, source_delta=4, target=2, target_delta=8, size=5),
        records.Write(allocation=2, delta=1, data=b"uvw"),
        msgspec.structs.replace(LAUNCH, cooperative=True),
        msgspec.structs.replace(LAUNCH, programmatic=True),
        msgspec.structs.replace(LAUNCH, cooperative=True, programmatic=True, cluster=(1, 2, 1)),
        records.Free(allocation=4, ordered=True),
        records.Allocate(allocation=4),
        records.Synchronise(),
    ),
)


def called(driver: Path, log: Path, *, host: bool) -> tuple[list[str], list[str]]:
    """What one call of PLAN asks the driver for, and what is freed after it."""
    steps = steps_of(PLAN, PLAN.operations, {"table": 5}, lambda _kernel: 0xF, host=host)
    call = Caller(str(driver)).call(steps, [*MEMORY, 0x7AB1E0], 0x77)
    for index in PLAN.freed if host else ():
        call.allocate(index, 64)
    log.write_text("")
    call.run(0x51, 0x52)
    lines = log.read_text().splitlines()
    log.write_text("")
    for index in sorted(PLAN.own | PLAN.freed) if host else ():
        call.free(index)
    return lines, log.read_text().splitlines()


def of_the_device(at: int) -> list[str]:
    """The operations of PLAN that the device does, with its workspace at this address."""
    launch = f"launch f 1 2 3 4 5 6 7 0x77 8 {at - 8:x}"
    return [
        "write 7ab1e4 xyz 3",
        f"memset {at + 8:x} 1 2",
        launch,
        f"rows c000 {at:x} 4 2 8 6 2 2",
        "copy c008 a004 5",
        "write c001 uvw 3",
        *("attributes 1: 2 1 0", launch),
        *("attributes 1: 6 1 0", launch),
        *("attributes 3: 2 1 0", "and 6 1", "and 4 1", launch),
    ]


def test_the_devices_part_of_a_call_stays_in_our_memory(driver: Path, log: Path) -> None:
    lines, _ = called(driver, log, host=False)
    assert lines == ["event 0x51", *of_the_device(0xE000), "event 0x52"]


def test_a_whole_call_allocates_frees_and_waits(driver: Path, log: Path) -> None:
    lines, after = called(driver, log, host=True)
    start, freed, ordered, waited, *device, freed_in_order, made_, last, end = lines
    at, later = int(ordered.split()[2], 16), int(made_.split()[1], 16)
    assert (start, waited, last, end) == ("event 0x51", "stream waits", "waits", "event 0x52")
    assert freed.startswith("free ") and freed != "free d000"
    assert ordered == f"allocate ordered {at:x} 64" and made_ == f"allocate {later:x} 64"
    assert freed_in_order == f"free ordered {at:x}" and at != later
    assert device == of_the_device(at)
    assert after == [f"free {later:x}"], "what the call leaves is freed once"
    assert (PLAN.host_calls, PLAN.waits) == (6, True)


def test_tensor_maps_are_the_drivers_own_and_clusters_are_asked_for(
    driver: Path, log: Path
) -> None:
    array = np.zeros((8, 64), np.float16)
    request = TensorMap(
        array, DataType.FLOAT16, (64, 8), (128,), (32, 4), (1, 2), Swizzle.BYTES_64, True
    )
    data = encode(engine(), request, 0x1000)
    pointer = records.PointerSlot(offset=8, allocation=1, delta=16)
    shape = {"grid": (4, 1, 1), "block": (32, 1, 1), "cluster": (2, 1, 1)}
    launch = CallStep(StepKind.LAUNCH, data, (pointer,), (0, 64), function=0xF, **shape)
    later = msgspec.structs.replace(pointer, offset=40)
    # to 32 bytes before a place for a map in a variable
    write = CallStep(StepKind.WRITE, b"abc" + bytes(29) + data, (later,), target_delta=32)
    call = made(driver, write, launch)
    for _ in range(2):
        call.run()
    assert log.read_text().splitlines() == 2 * [
        "map 6 2 0xb010 64 8 128 32 4 2 0 2 0 1",
        "write a020 abc 160 ab",
        "map 6 2 0xb010 64 8 128 32 4 2 0 2 0 1",
        "attributes 1: 4 2 0",
        "launch f 4 1 1 32 1 1 0 0x77 64 abababababababab",
    ]


def test_the_first_launch_of_a_call_waits_for_the_judge() -> None:
    launch = msgspec.structs.replace(LAUNCH, programmatic=True)
    for count in range(3):
        steps = steps_of(PLAN, (launch,) * count, {}, lambda _kernel: 0xF, host=False)
        assert [step.programmatic for step in steps] == [False, True][:count]


def test_memory_around_a_call(driver: Path, log: Path) -> None:
    """What a call frees must be there before it, and what it leaves is freed after it."""
    call = made(
        driver,
        CallStep(StepKind.FREE, target=3),
        CallStep(StepKind.ALLOCATE, target=2, size=16),
    )
    for _ in range(2):
        address = call.allocate(3, 16)
        call.run()
        call.free(2)
        call.free(3)
    lines = log.read_text().splitlines()
    assert lines[1] == lines[0].replace("allocate", "free").removesuffix(" 16")
    assert [line.split()[0] for line in lines] == ["allocate", "free", "allocate", "free"] * 2
    assert f"free {address:x}" in lines


def test_failures(driver: Path, log: Path) -> None:
    with pytest.raises(StepError) as failure:
        made(
            driver,
            CallStep(StepKind.LAUNCH, bytes(8), (), (0, 4), function=0xBAD),
            CallStep(StepKind.SYNCHRONISE),
        ).run()
    assert failure.value.status == 700
    assert "waits" not in log.read_text()
    with pytest.raises(MemoryError):
        made(driver, CallStep(StepKind.ALLOCATE, target=2, size=1 << 40)).run()
    with pytest.raises(MachineError, match=r"libnone\.so is missing"):
        Caller("libnone.so")
