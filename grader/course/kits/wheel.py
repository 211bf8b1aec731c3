"""The grader that runs, as a wheel: from a checkout or from an installed package."""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import os
from collections.abc import Iterator
from pathlib import Path

import grader
import ptxsim
from grader.course.kits.kit import KitFile, zipped
from grader.errors import MachineError

_NAME = "sgemm-grader"
_WHEEL = "Wheel-Version: 1.0\nGenerator: sgemm-grader\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
_ENTRY = "[console_scripts]\ngrade = grader.cli:main\n"


def grader_wheel() -> tuple[str, KitFile]:
    """Its file name and content. Raises MachineError where the grader was never installed."""
    try:
        found = importlib.metadata.distribution(_NAME)
    except importlib.metadata.PackageNotFoundError:
        found = None
    metadata = found and (found.read_text("METADATA") or found.read_text("PKG-INFO"))
    if not metadata:
        raise MachineError("the grader's metadata is missing: pip install -e . in its checkout")
    base = f"{_NAME.replace('-', '_')}-{grader.__version__}"
    info = f"{base}.dist-info"
    files = dict(_packaged())
    files[f"{info}/METADATA"] = KitFile(content=metadata.encode())
    files[f"{info}/WHEEL"] = KitFile(content=_WHEEL.encode())
    files[f"{info}/entry_points.txt"] = KitFile(content=_ENTRY.encode())
    record = [f"{name},{_hash(file)},{len(file.content)}" for name, file in sorted(files.items())]
    record.append(f"{info}/RECORD,,")
    files[f"{info}/RECORD"] = KitFile(content="\n".join([*record, ""]).encode())
    return f"{base}-py3-none-any.whl", KitFile(content=zipped(files))


def _packaged() -> Iterator[tuple[str, KitFile]]:
    for package in (grader, ptxsim):
        top = Path(str(package.__file__)).parent
        for folder, below, names in os.walk(top, followlinks=True):  # a checkout has links
            below[:] = [name for name in below if name != "__pycache__"]
            for name in names:
                path = Path(folder) / name
                if not path.is_file():  # a link that leads nowhere
                    continue
                inside = path.relative_to(top.parent).as_posix()
                yield inside, KitFile(content=path.read_bytes())


def _hash(file: KitFile) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(file.content).digest())
    return f"sha256={digest.decode().rstrip('=')}"
