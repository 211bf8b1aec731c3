"""A kit: files by name, written to a folder or a zip file."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from grader.errors import LabError
from grader.labs.hidden import with_hidden
from grader.labs.lab import load_lab
from grader.model import Record, phrase
from grader.results import store

LAB, HIDDEN = "lab.yaml", "hidden.yaml"
_DATE = (1980, 1, 1, 0, 0, 0)  # zip's earliest; equal kits are equal files


class KitFile(Record):
    content: bytes
    executable: bool = False

    @property
    def mode(self) -> int:
        return 0o755 if self.executable else 0o644


Kit = Mapping[str, KitFile]  # by path inside the kit


def lab_files(lab: Path, hidden: Path | None, *, secret: bool = True) -> dict[str, KitFile]:
    """The lab file, that of the hidden sizes, and the problem's own file, if it has one.

    secret: whether the seed of the lab's hidden sizes comes too; not where students read the kit.
    Raises LabError if one of them is wrong.
    """
    found = {LAB: lab}
    known = load_lab(lab)
    if known.problem_ref.file is not None:
        found[known.problem_ref.file.name] = known.problem_ref.file
    if secret and known.hidden is not None:
        seed = known.hidden.seed_file
        assert seed is not None
        if not known.hidden.known:
            raise LabError(
                phrase("{file}: no seed file that can be read; the kit needs it", file=str(seed))
            )
        if seed.parent != lab.parent or seed.name in found:
            raise LabError(
                phrase(
                    "{file}: groups.hidden.seed_file: a kit needs it beside the lab file",
                    file=str(lab),
                )
            )
        found[seed.name] = seed
    if hidden is not None:
        found[HIDDEN] = hidden
        with_hidden(known, load_lab(hidden))
    return {name: KitFile(content=path.read_bytes()) for name, path in found.items()}


def script(template: str, values: Mapping[str, object]) -> KitFile:
    """An executable file from a template, in which <<name>> stands for a value."""
    return KitFile(content=text(template, values).encode(), executable=True)


def text(template: str, values: Mapping[str, object]) -> str:
    environment = Environment(
        loader=PackageLoader("grader.course.kits"),
        undefined=StrictUndefined,
        autoescape=False,
        keep_trailing_newline=True,
        trim_blocks=True,
        variable_start_string="<<",
        variable_end_string=">>",
        block_start_string="<%",
        block_end_string="%>",
        comment_start_string="<#",
        comment_end_string="#>",
    )
    return environment.get_template(template).render(values)


def zipped(kit: Kit) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, file in sorted(kit.items()):
            entry = zipfile.ZipInfo(name, _DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100000 | file.mode) << 16
            archive.writestr(entry, file.content)
    return buffer.getvalue()


def write_folder(kit: Kit, folder: Path) -> None:
    """Write every file below the folder. Raises StoreError."""
    for name, file in sorted(kit.items()):
        store.write(folder / name, file.content, mode=file.mode)
