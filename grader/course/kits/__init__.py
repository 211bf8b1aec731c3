"""Kits, with which course systems grade: files by name, in a folder or a zip file.

CSOJ's format: https://github.com/ZJUSCT/CSOJ, docs/configuration/problem-config.md (read
2026-11-22). Each step of a workflow runs in a container as UID 1000 without network; /mnt/work
holds the submitted files. The last step reports the score.
"""

import base64
import hashlib
import importlib.metadata
import io
import json
import os
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

import grader
import ptxsim
from grader.base import LabError, MachineError
from grader.labs import load_lab, load_listed
from grader.report import Shown
from grader.results import store
from ptxsim.plan import Record
from ptxsim.text import phrase

LAB = "lab.yaml"
_DATE = (1980, 1, 1, 0, 0, 0)  # zip's earliest; equal kits are equal files
_SPARE_S = 30  # of Gradescope's time, for starting, and for writing the result
_SPARE_MB = 512  # of the container's memory, for the grader itself


class KitFile(Record):
    content: bytes
    executable: bool = False

    @property
    def mode(self) -> int:
        return 0o755 if self.executable else 0o644


Kit = Mapping[str, KitFile]  # by path inside the kit


class Container(Record):
    """Resources of a container: those it gets, and the sandbox that the grader needs."""

    minutes: int
    memory_mb: int
    sandbox: str


def csoj_kit(lab: Path, image: str, container: Container) -> Kit:
    """image: the name under which the cluster finds what the Dockerfile builds."""
    wheel, content = grader_wheel()
    labs = lab_files(lab)
    seconds = 60 * container.minutes
    known = load_lab(lab)
    values = {
        "wheel": wheel,
        "labs": " ".join(name for name in labs if "/" not in name),
        "folders": sorted({name.partition("/")[0] for name in labs if "/" in name}),
        "seconds": seconds - 10,
        "timeout": seconds,
        "memory_mb": container.memory_mb - _SPARE_MB,
        "container_mb": container.memory_mb,
        "sandbox": container.sandbox,
        "lab": known.id,
        "main": known.problem.interface.main,
        "image": image,
        "shows_failures": not (known.hidden or (known.program and known.program.hidden)),
    }
    return {
        "Dockerfile": _filled("csoj.Dockerfile", values),
        "judge": _filled("csoj_judge.sh", values),
        "problem.json": _filled("csoj_problem.json", values),
        wheel: content,
        **labs,
    }


def github_kit(
    lab: Path, *, folder: str, requirement: str, minutes: int, code_scanning: bool
) -> Kit:
    """folder: of sgemm.cu in the repository. requirement: what pip installs."""
    values = {
        "folder": json.dumps(folder),  # a YAML string too
        "requirement": json.dumps(requirement),
        "minutes": minutes,
        "code_scanning": code_scanning,
        "lab": f".github/{LAB}",
    }
    files = lab_files(lab, secret=False)
    return {
        ".github/workflows/classroom.yml": _filled("classroom.yml", values),
        **{f".github/{name}": file for name, file in files.items()},
    }


def gradescope_kit(lab: Path, starter: Path, shown: Shown, container: Container) -> Kit:
    """starter: a right submission, graded when the image is built. Raises LabError."""
    wheel, content = grader_wheel()
    values = {
        "wheel": wheel,
        "shown": shown,
        "sandbox": container.sandbox,
        "seconds": 60 * container.minutes - _SPARE_S,
        "memory_mb": container.memory_mb - _SPARE_MB,
    }
    known = load_lab(lab)
    check = known.program.solution if known.program else {}
    check = check or load_listed(starter, "check", known.problem.interface.main).contents
    return {
        "setup.sh": _filled("gradescope_setup.sh", values),
        "run_autograder": _filled("gradescope_run.sh", values),
        "grade_here.sh": _filled("gradescope_grade.sh", values),
        wheel: content,
        **lab_files(lab),
        **{f"check/{name}": KitFile(content=it) for name, it in check.items()},
    }


def lab_files(lab: Path, *, secret: bool = True) -> dict[str, KitFile]:
    """The lab file, its seed file, and the problem's own file, if it has one.

    secret: whether the seed comes too; not where students read the kit.
    Raises LabError if one of them is wrong.
    """
    found = {LAB: lab}
    own: dict[str, bytes] = {}
    known = load_lab(lab)
    if known.problem_ref.file is not None:
        found[known.problem_ref.file.name] = known.problem_ref.file
    if known.program is not None:
        if not secret and (known.program.solution or known.program.hidden):
            read = phrase(
                "{file}: students read this kit: take a lab file without hidden cases and without "
                "reference, whose cases have their stdout"
            )
            raise LabError(read.given(file=str(lab)))
        own = known.program.files()
    if secret and known.hidden is not None:
        seed = known.hidden.seed_file
        if not known.hidden.known:
            missing = phrase("{file}: no seed file that can be read; the kit needs it")
            raise LabError(missing.given(file=str(seed)))
        if seed.parent != lab.parent or seed.name in found:
            away = phrase("{file}: groups.hidden.seed_file: a kit needs it beside the lab file")
            raise LabError(away.given(file=str(lab)))
        found[seed.name] = seed
    own |= {name: path.read_bytes() for name, path in found.items()}
    return {name: KitFile(content=content) for name, content in own.items()}


def _filled(template: str, values: Mapping[str, object]) -> KitFile:
    """A file from a template, in which <<name>> stands for a value; scripts are executable."""
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
    text = environment.get_template(template).render(values)
    return KitFile(content=text.encode(), executable=template.endswith(".sh"))


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


# --- wheel -------------------------------------------------------------------------------------

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
        lost = phrase("the grader's metadata is missing: pip install -e . in its checkout")
        raise MachineError(lost)
    base = f"{_NAME.replace('-', '_')}-{grader.__version__}"
    info = f"{base}.dist-info"
    files = dict(_packaged())
    alone = re.sub("(?m)^Requires-Dist: ptxsim.*\n", "", metadata)  # it lies in this wheel
    files[f"{info}/METADATA"] = KitFile(content=alone.encode())
    files[f"{info}/WHEEL"] = KitFile(content=_WHEEL.encode())
    files[f"{info}/entry_points.txt"] = KitFile(content=_ENTRY.encode())
    record = []
    for name, file in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(file.content).digest())
        record.append(f"{name},sha256={digest.decode().rstrip('=')},{len(file.content)}")
    record.append(f"{info}/RECORD,,")
    files[f"{info}/RECORD"] = KitFile(content="\n".join([*record, ""]).encode())
    return f"{base}-py3-none-any.whl", KitFile(content=zipped(files))


def _packaged() -> Iterator[tuple[str, KitFile]]:
    for package in (grader, ptxsim):
        top = Path(str(package.__file__)).parent
        for folder, below, names in os.walk(top, followlinks=True):  # a checkout has links
            # Without what was compiled: the wheel is for every machine.
            below[:] = [name for name in below if name not in ("__pycache__", "built")]
            for path in (Path(folder) / name for name in names):
                if path.is_file():  # and no link that leads nowhere
                    inside = path.relative_to(top.parent).as_posix()
                    yield inside, KitFile(content=path.read_bytes())
