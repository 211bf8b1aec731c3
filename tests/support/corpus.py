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
``@GRADER@`` for the grader's package and ``@LINES@`` for 25 000 empty lines; ``lay_out`` fills them
in.
"""

import re
from pathlib import Path

import grader
from grader.base.records import Verdict
from grader.results.result import Result
from ptxsim.plan import Record
from tests.support.places import CHEATS, FIXTURES

_FIELDS = (
    *("Tell the student", "Stopped by", "Needs", "Architecture", "Landlock", "CPU", "GPU"),
    *("Finding", "Also", "Got", "Log"),
)
_FIELD = re.compile(rf"({'|'.join(_FIELDS)}): (.+)")
_EXPECTED = re.compile(
    rf"(?P<verdict>{'|'.join(Verdict.__members__)})(?P<no_gain> no gain)?(?: (?P<words>.+))?"
)
_FINDING = re.compile(
    r"(?P<kind>[a-z-]+)(?: in (?P<file>\S+))?(?: at (?P<markers>BUG\d*(?: or BUG\d*)*))?"
    r"(?:: (?P<says>.+))?"
)
_LOG = re.compile(r"at (?P<marker>BUG\d*): (?P<says>.+)")
_NEEDS = re.compile("a sandbox|cutlass")


class Expected(Record):
    verdict: Verdict
    words: str  # somewhere in the result's error, messages or findings
    no_gain: bool

    def met_by(self, result: Result) -> bool:
        said = [str(result.error or ""), *(str(case.message) for case in result.cases)]
        said += [f"{finding.kind.value} {finding.message}" for finding in result.findings]
        return result.verdict is self.verdict and any(self.words in text for text in said)


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
    stopped_by: str  # "" but for cheats
    cpu: Expected
    gpu: Expected | None
    in_landlock: Expected | None  # null: what it comes to elsewhere
    finding: ExpectedFinding | None
    also: tuple[str, ...]
    got: str | None
    log: ExpectedLog | None
    needs_sandbox: bool
    needs_cutlass: bool
    architecture: str


def cheats() -> tuple[Fixture, ...]:
    """All of them, by name. Raises ValueError, naming the file, when one does not say it all."""
    needed = ("Stopped by", "CPU", "GPU")
    return tuple(
        _read(folder / "sgemm.cu", needed) for folder in sorted(CHEATS.iterdir()) if folder.is_dir()
    )


def fixtures(kind: str = "*", main: str = "sgemm.cu") -> tuple[Fixture, ...]:
    """Those of one kind (correct, broken, gpu, reduction) or all whose file is ``main``, by name.
    Raises as ``cheats`` does."""
    return tuple(_read(file, ("CPU",)) for file in sorted(FIXTURES.glob(f"{kind}/*/{main}")))


def _read(file: Path, needed: tuple[str, ...]) -> Fixture:
    declared = _declared(file)
    if missing := [name for name in ("about", *needed) if name not in declared]:
        raise ValueError(f"{file}: its first comment lacks {', '.join(missing)}")

    def field(name: str, pattern: re.Pattern[str]) -> dict[str, str] | None:
        if name not in declared:
            return None
        found = pattern.fullmatch(declared[name])
        if not found:
            raise ValueError(f"{file}: {name}: {declared[name]!r} does not fit")
        return {key: value or "" for key, value in found.groupdict().items()}

    def expected(name: str) -> Expected | None:
        if not (found := field(name, _EXPECTED)):
            return None
        verdict, words = Verdict[found["verdict"]], found["words"]
        return Expected(verdict=verdict, words=words, no_gain=bool(found["no_gain"]))

    cpu = expected("CPU")
    assert cpu
    field("Needs", _NEEDS)
    finding, log = field("Finding", _FINDING), field("Log", _LOG)
    return Fixture(
        folder=file.parent,
        stopped_by=declared.get("Stopped by", ""),
        cpu=cpu,
        gpu=expected("GPU"),
        in_landlock=expected("Landlock"),
        finding=None
        if finding is None
        else ExpectedFinding(
            kind=finding["kind"],
            says=finding["says"],
            file=finding["file"] or file.name,
            markers=tuple(filter(None, finding["markers"].split(" or "))),
        ),
        also=tuple(filter(None, declared.get("Also", "").split(", "))),
        got=declared.get("Got"),
        log=None if log is None else ExpectedLog(marker=log["marker"], says=log["says"]),
        needs_sandbox=declared.get("Needs") == "a sandbox",
        needs_cutlass=declared.get("Needs") == "cutlass",
        architecture=f"sm_{declared.get('Architecture', '80')}",
    )


def _declared(file: Path) -> dict[str, str]:
    """The fields of the first comment; what stands before them is called "about"."""
    found: dict[str, str] = {}
    field = "about"
    for line in file.read_text().splitlines():
        if not line.startswith("//"):
            break
        text = line[2:].strip()
        if match := _FIELD.fullmatch(text):
            field, text = match.groups()
            if field in found:
                raise ValueError(f"{file}: {field} stands there twice")
        found[field] = f"{found[field]} {text}" if field in found else text
    return found


def lay_out(cheat: Fixture, place: Path) -> Path:
    """The submission ``place/submissions/NAME``, ready to be graded."""
    return filled(cheat, place / "submissions" / cheat.folder.name, place)


def filled(fixture: Fixture, folder: Path, place: Path | str) -> Path:
    """Its files in ``folder``, with what stands for the places of this machine filled in."""
    folder.mkdir(parents=True)
    package = str(Path(grader.__file__).parent)
    for source in fixture.folder.iterdir():
        text = source.read_text().replace("@PLACE@", str(place)).replace("@GRADER@", package)
        (folder / source.name).write_text(text.replace("@LINES@", 25_000 * "\n"))
    return folder
