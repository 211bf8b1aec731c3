"""Hand-ins of ``grade submit``: each is a folder, which holds all that is known of it.

``<GRADE_SUBMIT>/<party>/<id>/`` has ``hand-in.json``, the files below a folder named like the
student, ``job`` (Slurm's number, and when it was given), ``ended`` (number and status, written by
slurm/run.sh) and ``cancelled``.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from grader.base import MachineError, UsageError, decode, moment
from grader.labs import load_submission, read
from grader.results import store
from ptxsim.plan import Record
from ptxsim.text import phrase

_MOST_BYTES = 4 << 20  # of a submission's files
_MOST_FILES = 64
_NAME = re.compile(r"[\w+@-][\w.+@ -]*(?<![. ])")  # one that no system has trouble with
_SENT = (".json", ".html", ".ncu-rep")


def receive(listed: Sequence[tuple[str, int]], source: BinaryIO) -> dict[str, bytes]:
    """Read files by name. Names and sizes are all that can be said of them, so there are no links
    and nothing to unfold. Raises UsageError, MachineError if they end early."""
    sizes = [size for _, size in listed]
    if not 0 < len(sizes) <= _MOST_FILES or min(sizes) < 0 or sum(sizes) > _MOST_BYTES:
        raise UsageError.saying("a submission has 1 to 64 files and at most 4 MiB")
    files: dict[str, bytes] = {}
    for name, size in listed:
        plain = all(_NAME.fullmatch(part) for part in name.split("/"))
        if not plain or name in files or name != unicodedata.normalize("NFC", name):
            odd = phrase("{name}: use plain letters and digits in file names", name=ascii(name))
            raise UsageError(odd)
        files[name] = source.read(size)
        if len(files[name]) < size:
            raise MachineError.saying("the files came cut short; nothing was handed in")
    return files


class HandIn(Record):
    """Facts of one hand-in, and where its results are."""

    id: str  # of lab, options and files: the same again is the same hand-in
    student: str
    lab: str  # its id
    when: str  # ISO 8601 with a zone, by the clock of the machine that took it
    out: str  # folder of results
    sha256: str = ""  # of the submission


class KeptHandIn(NamedTuple):
    folder: Path
    facts: HandIn

    @property
    def job(self) -> str:
        """Return Slurm's number; "" if nobody has noted one."""
        return self.words("job")[0]

    @property
    def status(self) -> int | None:
        """Grade's exit status; None: not over, or nobody was left to say it."""
        job, status = self.words("ended")
        return int(status) if job and job == self.job else None

    @property
    def log(self) -> Path:
        return Path(self.facts.out) / "logs" / f"{self.job}.log"

    def words(self, name: str) -> tuple[str, str]:
        """Return the two words of a note; ("", "0") if there is none, or not yet all of it."""
        with contextlib.suppress(OSError, ValueError):
            text = (self.folder / name).read_text()
            first, second = text.split()
            if text.endswith("\n"):
                return first, second
        return "", "0"

    def note(self, name: str, text: str) -> None:
        """Raises StoreError."""
        store.write(self.folder / name, f"{text}\n".encode())

    def results(self) -> list[Path]:
        """Return result, page and profile of these files, as they are on record."""
        out, who = Path(self.facts.out), self.facts
        place = store.document_path(out, who.lab, who.student, who.sha256, "gpu").parent
        return [each for each in sorted(place.glob(f"{who.sha256[:12]}*")) if each.suffix in _SENT]


class HandIns:
    """The hand-ins of a student, or of a group."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Let one connection at a time change them."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        with (self._folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def all(self, beginning: str = "") -> list[KeptHandIn]:
        """Return the hand-ins whose id begins like this, the newest first."""
        found = []
        for path in self._folder.glob(f"{beginning}*/hand-in.json"):
            with contextlib.suppress(OSError, ValueError, msgspec.MsgspecError):
                found.append(KeptHandIn(path.parent, decode(read(path), HandIn)))
        return sorted(found, key=lambda kept: moment(kept.facts.when), reverse=True)

    def keep(self, facts: HandIn, files: dict[str, bytes], main: str) -> KeptHandIn:
        """Write a hand-in, completely or not at all. Raises MachineError, and what
        ``load_submission`` raises for files that cannot be graded."""
        try:
            with tempfile.TemporaryDirectory(prefix=".", dir=self._folder) as scratch:
                ready, target = Path(scratch) / facts.id, self._folder / facts.id
                for name, content in files.items():
                    path = ready / facts.student / name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(content)
                sha256 = load_submission(ready / facts.student, main).sha256
                facts = msgspec.structs.replace(facts, sha256=sha256)
                (ready / "hand-in.json").write_bytes(msgspec.json.encode(facts))
                shutil.rmtree(target, ignore_errors=True)
                ready.rename(target)
        except OSError as error:
            full = phrase("the course's machine cannot keep it, and nothing counts: {why}")
            raise MachineError(full.given(why=os.strerror(error.errno or 0))) from None
        return KeptHandIn(target, facts)
