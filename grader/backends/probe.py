"""Asks the driver whether this machine has an NVIDIA GPU."""

from __future__ import annotations

import ctypes

_NAME_BYTES = 256
_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76  # CUdevice_attribute


def gpu_names() -> tuple[str, ...]:
    """The GPUs that the driver shows this process; () without a driver or without a GPU."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return ()
    count = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return ()
    names = []
    for index in range(count.value):
        buffer = ctypes.create_string_buffer(_NAME_BYTES)
        driver.cuDeviceGetName(buffer, _NAME_BYTES, index)
        names.append(buffer.value.decode(errors="replace"))
    return tuple(names)


def first_gpu_uuid() -> str | None:
    """The name in NVML and nvidia-smi of the GPU that would be used; makes no context."""
    if not gpu_names():
        return None
    raw = (ctypes.c_ubyte * 16)()
    if ctypes.CDLL("libcuda.so.1").cuDeviceGetUuid_v2(raw, 0) != 0:
        return None
    return gpu_uuid(bytes(raw))


def gpu_uuid(raw: bytes) -> str:
    """``GPU-8088e34f-2c18-…`` from the sixteen bytes that CUDA gives."""
    text = raw[:16].hex()
    return "GPU-" + "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def first_gpu_arch() -> str | None:
    """The architecture of the GPU that would be used, such as "sm_90"; None without one."""
    if not gpu_names():
        return None
    driver = ctypes.CDLL("libcuda.so.1")
    digits = []
    for attribute in (_CAPABILITY_MAJOR, _CAPABILITY_MINOR):
        value = ctypes.c_int(0)
        driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, 0)
        digits.append(str(value.value))
    return f"sm_{''.join(digits)}"
