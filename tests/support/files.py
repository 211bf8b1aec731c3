"""Files of odd kinds."""

from __future__ import annotations

import os
import socket
from pathlib import Path


def bind(path: Path) -> None:
    """A socket there. Its path may be longer than bind takes."""
    with socket.socket(socket.AF_UNIX) as made:
        descriptor = os.open(path.parent, os.O_RDONLY)
        made.bind(f"/proc/self/fd/{descriptor}/{path.name}")
        os.close(descriptor)


def grow(path: Path, size: int) -> None:
    """A file of ``size`` bytes that takes none on the disk."""
    with path.open("wb") as file:
        file.truncate(size)
