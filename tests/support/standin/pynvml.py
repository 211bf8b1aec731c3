"""A stand-in for NVIDIA's NVML binding: what STANDIN_NVML says, function by function.

STANDIN_NVML is JSON: UUIDs of devices, each with the answers of the functions asked about it. A
function that a device does not have answers as NVML does: "not supported".
"""

import json
import os
from types import SimpleNamespace
from typing import Any

NVML_CLOCK_SM, NVML_CLOCK_MEM = "SM", "MEM"


class NVMLError(Exception):
    pass


def nvmlInit() -> None:  # noqa: N802 - NVML's names
    if "STANDIN_NVML" not in os.environ:
        raise NVMLError("Driver Not Loaded")


def nvmlDeviceGetHandleByUUID(uuid: bytes) -> str:  # noqa: N802
    if uuid.decode() not in json.loads(os.environ["STANDIN_NVML"]):
        raise NVMLError("Not Found")
    return uuid.decode()


def __getattr__(function: str) -> Any:
    if not function.startswith("nvmlDevice"):
        raise AttributeError(function)

    def ask(device: str, *words: str) -> Any:
        answers = json.loads(os.environ["STANDIN_NVML"])[device]
        name = ".".join((function.removeprefix("nvmlDeviceGet"), *words))
        if name not in answers:
            raise NVMLError("Not Supported")
        answer = answers[name]
        if isinstance(answer, list):
            return [SimpleNamespace(pid=pid) for pid in answer]
        return SimpleNamespace(total=answer) if name == "MemoryInfo" else answer

    return ask
