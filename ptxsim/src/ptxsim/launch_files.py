"""Launches of several kernels, as a file in JSON lists them."""

import json
from pathlib import Path
from typing import Annotated

import msgspec

from ptxsim.record import Record

_FORM = """a launch is {"kernel": "scale", "grid": 2, "block": [32, 8], "arguments": ["x", 0.5]}"""


class AskedLaunch(Record):
    kernel: Annotated[str, msgspec.Meta(min_length=1)]
    grid: int | tuple[int, ...]
    block: int | tuple[int, ...]
    cluster: int | tuple[int, ...] = 1
    shared: int = 0  # bytes, dynamic
    arguments: tuple[str | int | float, ...] = ()  # in order: names of buffers, and numbers


class LaunchList(Record):
    buffers: dict[str, str]  # what --arg takes, by name
    launches: Annotated[tuple[AskedLaunch, ...], msgspec.Meta(min_length=1)]  # in order


def read_launches(file: Path) -> LaunchList:
    """Return what the file asks for. Raises ValueError, OSError."""
    try:
        return msgspec.convert(json.loads(file.read_bytes()), LaunchList)
    except (ValueError, msgspec.ValidationError) as error:
        what, _, place = str(error).partition(" - at `$.")
        where = f"{file}: {place}".rstrip("`: ")
        raise ValueError(f"{where}: {what}; {_FORM}") from None
