"""The NVIDIA GPUs of this machine, as the driver lists them."""

import ctypes
import os
import sys
from pathlib import Path
from uuid import UUID

import msgspec

import grader
from grader.base import decode
from ptxsim import answer_of
from ptxsim.plan import Record

_NAME_BYTES = 256
# Where our processes start: -m looks for modules in the working directory first, which must never
# be a student's.
CODE = Path(grader.__path__[0]).parent
VISIBLE = "CUDA_VISIBLE_DEVICES"
_DRIVER = "libcuda.so.1"
_COMPUTE_MODE, _CAPABILITY = 20, (75, 76)  # CUdevice_attribute: the latter's major and minor
_EXCLUSIVE_PROCESS = 3  # CUcomputemode


class VisibleGpu(Record):
    """A GPU that CUDA shows this process; CUDA_VISIBLE_DEVICES has its say in it."""

    index: int  # among the visible ones
    name: str
    uuid: str  # what NVML, nvidia-smi and CUDA_VISIBLE_DEVICES call it
    arch: str  # "sm_90"


def find_driver() -> ctypes.CDLL | None:
    """Load the driver's library, if it is here; it may still show no GPU."""
    try:
        return ctypes.CDLL(_DRIVER)
    except OSError:
        return None


def gpu_names() -> tuple[str, ...]:
    return tuple(gpu.name for gpu in visible_gpus())


def first_gpu_uuid() -> str | None:
    """The UUID of the GPU that would be used, as NVML and nvidia-smi name it; makes no context."""
    cards = visible_gpus()
    return cards[0].uuid if cards else None


def gpu_uuid(raw: bytes, name: str) -> str:
    """``GPU-8088e34f-2c18-…`` from the sixteen bytes that CUDA gives; ``MIG-…`` for a slice."""
    return f"{'MIG' if 'MIG' in name.split() else 'GPU'}-{UUID(bytes=raw[:16])}"


def first_gpu_arch() -> str | None:
    """The architecture of the GPU that would be used, such as "sm_90"; None without one."""
    cards = visible_gpus()
    return cards[0].arch if cards else None


def admits_one_process() -> bool:
    """Whether the GPU that would be used lets one process at a time have a context."""
    return bool(gpu_names()) and _attribute(_COMPUTE_MODE, 0) == _EXCLUSIVE_PROCESS


def visible_gpus() -> tuple[VisibleGpu, ...]:
    """The GPUs that the driver shows this process and gives a UUID; () without a driver."""
    driver, count = find_driver(), ctypes.c_int(0)
    if driver is None or driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return ()
    found = []
    for index in range(count.value):
        buffer, raw = ctypes.create_string_buffer(_NAME_BYTES), (ctypes.c_ubyte * 16)()
        driver.cuDeviceGetName(buffer, _NAME_BYTES, index)
        if driver.cuDeviceGetUuid_v2(raw, index) == 0:
            name = buffer.value.decode(errors="replace")
            major, minor = (_attribute(each, index) for each in _CAPABILITY)
            uuid, arch = gpu_uuid(bytes(raw), name), f"sm_{major}{minor}"
            found.append(VisibleGpu(index=index, name=name, uuid=uuid, arch=arch))
    return tuple(found)


def _attribute(number: int, index: int) -> int:
    value = ctypes.c_int(0)
    ctypes.CDLL(_DRIVER).cuDeviceGetAttribute(ctypes.byref(value), number, index)
    return value.value


def gpus_of_host() -> tuple[VisibleGpu, ...]:
    """Every GPU that this process may use. CUDA shows a process one MIG slice at most, so another
    process looks at each slice that CUDA_VISIBLE_DEVICES names."""
    named = [word.strip() for word in os.environ.get(VISIBLE, "").split(",")]
    if len(named) < 2 or not all(word.startswith("MIG-") for word in named):
        return visible_gpus()
    found: list[VisibleGpu] = []
    for word in named:
        environment = {**os.environ, VISIBLE: word}
        done = answer_of([sys.executable, "-m", "grader.run.probe"], cwd=CODE, env=environment)
        found += decode(done.stdout or "[]", tuple[VisibleGpu, ...])
    return tuple(msgspec.structs.replace(gpu, index=index) for index, gpu in enumerate(found))


if __name__ == "__main__":
    print(msgspec.json.encode(visible_gpus()).decode())
