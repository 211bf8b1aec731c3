"""What each kernel under tests/cheats and tests/fixtures declares about itself.

The first comment of its sgemm.cu says what it is or tries, then, each starting a line of its own:

    // Tell the student: what a good message says
    // Stopped by: what stands in a cheat's way
    // Needs: a sandbox (a cheat that limits alone do not stop), or cutlass
    // Architecture: the compute capability that it is for; 80 where nothing is said
    // Landlock: the verdict there, where it is not that of CPU and GPU
    // CPU: the verdict in the simulator, and words that the result must hold
    // GPU: the same on a GPU; "no gain": its score is at most that of honest work
    // Finding: KIND in FILE at BUG or BUG2: part of its message
    // Also: kinds of findings that follow from the same bug
    // Got: what stands at the first mismatch, as printed
    // Log: at BUG: part of the line of the compiler's output that names this line

Only the kind of a finding is needed; without a file it is in sgemm.cu. ``// BUG`` marks a line by
standing at its end. Every cheat has both verdicts; a fixture has a GPU's where
tests/whole/test_gpu.py looks for it.

In sources of cheats ``@PLACE@`` stands for the folder that holds submissions and results,
``@GRADER@`` for the grader's package; ``lay_out`` fills them in.
"""

from __future__ import annotations

import re
from pathlib import Path

import grader
from grader.model import Record, Result, Verdict
from tests.support.places import CHEATS, FIXTURES

_FIELDS = (
    *("Tell the student", "Stopped by", "Needs", "Architecture", "Landlock", "CPU", "GPU"),
    *("Finding", "Also", "Got", "Log"),
)
_FIELD = re.compile(rf"({'|'.join(_FIELDS)}): (.+)")
_EXPECTED = re.compile(r"(?P<verdict>[A-Z]{2,3})(?P<no_gain> no gain)?(?: (?P<words>.+))?")
_FINDING = re.compile(
    r"(?P<kind>[a-z-]+)(?: in (?P<file>\S+))?(?: at (?P<markers>BUG\d*(?: or BUG\d*)*))?"
    r"(?:: (?P<says>.+))?"
)
_LOG = re.compile(r"at (?P<marker>BUG\d*): (?P<says>.+)")


class Expected(Record):
    verdict: Verdict
    words: str  # somewhere in the result's error, messages or findings
    no_gain: bool

    def met_by(self, result: Result) -> bool:
        said = [str(result.error or ""), *(str(case.message) for case in result.cases)]
        said += [f"{finding.kind.value} {finding.message}" for finding in result.findings]
        return result.verdict is self.verdict and any(self.words in text for text in said)


class Cheat(Record):
    folder: Path
    tries: str
    stopped_by: str
    needs_sandbox: bool
    in_landlock: Expected | None  # null: what it comes to elsewhere
    needs_cutlass: bool
    architecture: str
    cpu: Expected
    gpu: Expected


class ExpectedFinding(Record):
    kind: str
    says: str  # part of the message
    file: str
    markers: tuple[str, ...]  # any of which will do


class ExpectedLog(Record):
    """One line of the compiler's output, which must name a marked line of sgemm.cu."""

    marker: str
    says: str


class Fixture(Record):
    """A case or the whole must show each thing that is given; no other kind of error may show."""

    folder: Path
    cpu: Expected
    gpu: Expected | None
    finding: ExpectedFinding | None
    also: tuple[str, ...]
    got: str | None
    log: ExpectedLog | None
    needs_cutlass: bool
    architecture: str


def cheats() -> tuple[Cheat, ...]:
    """All of them, by name. Raises ValueError, naming the file, when one does not say it all."""
    return tuple(_read_cheat(folder) for folder in sorted(CHEATS.iterdir()) if folder.is_dir())


def fixtures(kind: str = "*", main: str = "sgemm.cu") -> tuple[Fixture, ...]:
    """Those of one kind (correct, broken, gpu, reduction) or all whose file is ``main``, by name.
    Raises as ``cheats`` does."""
    return tuple(
        _read_fixture(file.parent, main) for file in sorted(FIXTURES.glob(f"{kind}/*/{main}"))
    )


def _declared(folder: Path, *needed: str, main: str = "sgemm.cu") -> dict[str, str]:
    """The fields of the first comment; what stands before them is called "about"."""
    found: dict[str, str] = {}
    field = "about"
    for line in (folder / main).read_text().splitlines():
        if not line.startswith("//"):
            break
        text = line[2:].strip()
        if match := _FIELD.fullmatch(text):
            field, text = match.groups()
            if field in found:
                raise ValueError(f"{folder}/sgemm.cu: {field} stands there twice")
            found[field] = text
        else:
            found[field] = f"{found[field]} {text}" if field in found else text
    missing = [name for name in ("about", *needed) if name not in found]
    if missing:
        raise ValueError(f"{folder}/sgemm.cu: its first comment lacks {', '.join(missing)}")
    return found


def _read_cheat(folder: Path) -> Cheat:
    declared = _declared(folder, "Stopped by", "CPU", "GPU")
    return Cheat(
        folder=folder,
        tries=declared["about"],
        stopped_by=declared["Stopped by"],
        needs_sandbox=_needs(folder, declared, "a sandbox"),
        in_landlock=_expected(folder, declared["Landlock"]) if "Landlock" in declared else None,
        needs_cutlass=_needs(folder, declared, "cutlass"),
        architecture=_architecture(declared),
        cpu=_expected(folder, declared["CPU"]),
        gpu=_expected(folder, declared["GPU"]),
    )


def _read_fixture(folder: Path, main: str) -> Fixture:
    declared = _declared(folder, "CPU", main=main)
    finding = log = None
    if text := declared.get("Finding"):
        found = _match(folder, _FINDING, text, "a finding")
        finding = ExpectedFinding(
            kind=found["kind"],
            says=found["says"] or "",
            file=found["file"] or main,
            markers=tuple(found["markers"].split(" or ")) if found["markers"] else (),
        )
    if text := declared.get("Log"):
        found = _match(folder, _LOG, text, "a line of the compiler's output")
        log = ExpectedLog(marker=found["marker"], says=found["says"])
    return Fixture(
        folder=folder,
        cpu=_expected(folder, declared["CPU"]),
        gpu=_expected(folder, declared["GPU"]) if "GPU" in declared else None,
        finding=finding,
        also=tuple(declared["Also"].split(", ")) if "Also" in declared else (),
        got=declared.get("Got"),
        log=log,
        needs_cutlass=_needs(folder, declared, "cutlass"),
        architecture=_architecture(declared),
    )


def _architecture(declared: dict[str, str]) -> str:
    return f"sm_{declared.get('Architecture', '80')}"


def _needs(folder: Path, declared: dict[str, str], what: str) -> bool:
    needed = declared.get("Needs")
    if needed not in (None, "a sandbox", "cutlass"):
        raise ValueError(f"{folder}/sgemm.cu: Needs: {needed}, expected a sandbox or cutlass")
    return needed == what


def _expected(folder: Path, text: str) -> Expected:
    found = _match(folder, _EXPECTED, text, "a verdict with words")
    if found["verdict"] not in Verdict.__members__:
        raise ValueError(f"{folder}/sgemm.cu: {found['verdict']} is no verdict")
    return Expected(
        verdict=Verdict[found["verdict"]],
        words=found["words"] or "",
        no_gain=found["no_gain"] is not None,
    )


def _match(folder: Path, pattern: re.Pattern[str], text: str, what: str) -> re.Match[str]:
    found = pattern.fullmatch(text)
    if not found:
        raise ValueError(f"{folder}/sgemm.cu: {text!r} is not {what}")
    return found


def lay_out(cheat: Cheat, place: Path) -> Path:
    """The submission ``place/submissions/NAME``, ready to be graded."""
    folder = place / "submissions" / cheat.folder.name
    folder.mkdir(parents=True)
    package = str(Path(grader.__file__).parent)
    for source in cheat.folder.iterdir():
        text = source.read_text().replace("@PLACE@", str(place)).replace("@GRADER@", package)
        (folder / source.name).write_text(text)
    return folder
