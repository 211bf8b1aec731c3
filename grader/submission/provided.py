"""Folders for students that the package brings: ``reference/``, ``starter/``, ``starters/``.

In a checkout ``grader/provided`` has links to them. A wheel has copies there.

``reference/`` has a folder for each lab that has a ladder, named by the lab's id.
"""

from __future__ import annotations

from pathlib import Path

import grader

REFERENCE = "reference"


def provided(name: str) -> tuple[Path, ...]:
    """The folders called ``name``: the one here, then the package's if it is a different one."""
    places = (Path(name), (Path(grader.__file__).parent / "provided" / name).resolve())
    distinct = {place.resolve(): place for place in reversed(places) if place.is_dir()}
    return tuple(reversed(distinct.values()))
