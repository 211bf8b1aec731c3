"""The corpus of cheats: what each submission under tests/cheats declares about itself.

The first comment of its sgemm.cu says what it tries, then, each on lines of its own:

    // Stopped by: what stands in its way
    // Needs: bubblewrap (only where nothing else stops it)
    // CPU: the verdict in the simulator, and words that the result must hold
    // GPU: the same on a GPU; "no gain": its score is at most that of honest work

In sources ``@PLACE@`` stands for the folder that holds submissions and results, ``@GRADER@`` for
the grader's package; ``lay_out`` fills them in.
"""

from __future__ import annotations

import re
from pathlib import Path

import grader
from grader.model import Record, Result, Verdict
from tests.support.places import CHEATS

_EXPECTED = re.compile(r"(?P<verdict>[A-Z]{2,3})(?P<no_gain> no gain)?(?: (?P<words>.+))?")


class Expected(Record):
    verdict: Verdict
    words: str  # somewhere in the result's error, messages or findings
    no_gain: bool

    def met_by(self, result: Result) -> bool:
        said = [result.error or "", *(case.message for case in result.cases)]
        said += [f"{finding.kind} {finding.message}" for finding in result.findings]
        return result.verdict is self.verdict and any(self.words in text for text in said)


class Cheat(Record):
    folder: Path
    tries: str
    stopped_by: str
    needs_bubblewrap: bool
    cpu: Expected
    gpu: Expected


def cheats() -> tuple[Cheat, ...]:
    """All of them, by name. Raises ValueError, naming the file, when one does not say it all."""
    return tuple(_read(folder) for folder in sorted(CHEATS.iterdir()) if folder.is_dir())


def _read(folder: Path) -> Cheat:
    comment: list[str] = []
    for line in (folder / "sgemm.cu").read_text().splitlines():
        if not line.startswith("//"):
            break
        comment.append(line[2:].strip())
    text = " ".join(comment)
    found = re.fullmatch(r"(.+?) Stopped by: (.+?)( Needs: bubblewrap)? CPU: (.+?) GPU: (.+)", text)
    if not found:
        raise ValueError(f"{folder}/sgemm.cu: expected what it tries, Stopped by, CPU and GPU")
    tries, stopped_by, needs, cpu, gpu = found.groups()
    return Cheat(
        folder=folder,
        tries=tries,
        stopped_by=stopped_by,
        needs_bubblewrap=needs is not None,
        cpu=_expected(folder, cpu),
        gpu=_expected(folder, gpu),
    )


def _expected(folder: Path, text: str) -> Expected:
    found = _EXPECTED.fullmatch(text)
    if not found or found["verdict"] not in Verdict.__members__:
        raise ValueError(f"{folder}/sgemm.cu: {text!r} is no verdict with words")
    return Expected(
        verdict=Verdict[found["verdict"]],
        words=found["words"] or "",
        no_gain=found["no_gain"] is not None,
    )


def lay_out(cheat: Cheat, place: Path) -> Path:
    """The submission ``place/submissions/NAME``, ready to be graded."""
    folder = place / "submissions" / cheat.folder.name
    folder.mkdir(parents=True)
    package = str(Path(grader.__file__).parent)
    for source in cheat.folder.iterdir():
        text = source.read_text().replace("@PLACE@", str(place)).replace("@GRADER@", package)
        (folder / source.name).write_text(text)
    return folder
