"""Files of odd kinds, and programs that tests read from files beside them."""

from __future__ import annotations

import os
import socket
from pathlib import Path


def beside(test: str, name: str, **holes: object) -> str:
    """Read programs/``name`` beside ``test`` and put ``holes`` in the place of ``$HOLES``."""
    text = (Path(test).parent / "programs" / name).read_text()
    for hole, filling in holes.items():
        text = text.replace(f"${hole.upper()}", str(filling))
    return text


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
