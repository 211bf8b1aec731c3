"""Finds the fastest of cuBLAS's variants for a product, once per GPU, driver and size."""

from __future__ import annotations

import contextlib
import hashlib
import os
import statistics
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from grader.backends.gpu.baseline import Product
from grader.errors import MachineError
from grader.model import GpuInfo, Record, Size

_REPEATS = 4


class Choice(Record):
    """One file of the cache; ``key`` is for people, its hash is the file's name."""

    key: str
    fastest: str  # "cublasSgemm" or "cublasLt 2"


class Choices:
    """Stores choices in ``folder``; measures again what it cannot read or write."""

    def __init__(self, folder: Path, gpu: GpuInfo, library: str) -> None:
        self._folder = folder
        self._where = f"{gpu.name}, {gpu.uuid}, driver {gpu.driver}, cuBLAS {library}"

    def fastest(
        self,
        size: Size,
        admitted: str,
        products: Mapping[str, Product],
        milliseconds: Callable[[Product], float],
    ) -> str:
        """Name of the fastest of the ``products`` that ``admitted`` (the lab's baseline) allows.

        Raises MachineError when it allows none of them.
        """
        allowed = {
            name: product
            for name, product in products.items()
            if admitted == "best" or (admitted == "cublas") == (name == "cublasSgemm")
        }
        if not allowed:
            raise MachineError(f"cublasLt offers nothing for {size}")
        key = f"{size}, {admitted}, {self._where}"
        path = self._folder / f"{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            known = msgspec.json.decode(path.read_bytes(), type=Choice)
            if known.key == key and known.fastest in allowed:
                return known.fastest
        times = {
            name: statistics.median(milliseconds(product) for _ in range(_REPEATS))
            for name, product in allowed.items()
        }
        fastest = min(times, key=lambda name: times[name])
        self._keep(path, Choice(key=key, fastest=fastest))
        return fastest

    def _keep(self, path: Path, choice: Choice) -> None:
        scratch = path.with_suffix(f".{os.getpid()}")
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            scratch.write_bytes(msgspec.json.encode(choice))
            scratch.replace(path)
