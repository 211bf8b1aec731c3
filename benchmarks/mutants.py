"""Wrong programs without a race, and what the grader says of them: `python -m benchmarks.mutants`.

Each line of `mutants/*.txt` is an edit of a rung or a starter: a wrong index, bound, stride, stage,
swizzle, remainder or accumulator. Prints the verdict of each, the time of its grade, and what its
message says; then, by lab, how many are wrong without a finding that says why (counted), and how
many of these have a sentence (named). Arguments choose tables by their names. Takes a few seconds
for each edit.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.measure import machine, table
from grader import base
from grader.judge import ContextSettings, GradingContext, grade
from grader.labs import find_lab
from ptxsim.findings import Severity
from ptxsim.plan import Record

ROOT = Path(__file__).parents[1]
TABLES = Path(__file__).with_name("mutants")


class Mutant(Record):
    lab: str
    folder: str  # in the repository: "reference/sgemm/01_naive"
    file: str
    old: str
    new: str

    def write(self, parent: Path) -> Path:
        """The wrong program's folder. Raises ValueError if its edit does not fit."""
        target = parent / "alice"
        shutil.copytree(ROOT / self.folder, target)
        file = target / self.file
        text = file.read_text(encoding="utf-8")
        if self.old not in text:
            raise ValueError(f"{self.folder}/{self.file} does not contain {self.old!r}")
        file.write_text(text.replace(self.old, self.new), encoding="utf-8")
        return target


def mutants(names: Sequence[str] = ()) -> Iterator[Mutant]:
    """Those of the tables with these names, or of all."""
    for lines in sorted(TABLES.glob("*.txt")):
        for line in lines.read_text(encoding="utf-8").splitlines():
            if line and not line.startswith("#") and (not names or lines.stem in names):
                lab, folder, file, old, new = (each.strip(" ") for each in line.split("|", 4))
                old, new = (each.replace("\\n", "\n") for each in (old, new))
                yield Mutant(lab=lab, folder=folder, file=file, old=old, new=new)


class Said(Record):
    """The grader's words on a mutant."""

    verdict: base.Verdict
    explained: bool  # by a finding
    message: str  # of the size that was looked into; "": none
    seconds: float

    @property
    def counts(self) -> bool:
        """Whether it is wrong, and nothing else says why."""
        return self.verdict is base.Verdict.WA and not self.explained


def said(mutant: Mutant, context: GradingContext) -> Said:
    with tempfile.TemporaryDirectory() as folder:
        begun = time.monotonic()
        result = grade(mutant.write(Path(folder)), context, lambda _stage, _words: None).result
    messages = [str(case.message) for case in result.cases if case.verdict is base.Verdict.WA]
    longest = max((each.partition(": ")[2] for each in messages), key=len, default="")
    return Said(
        verdict=result.verdict,
        explained=any(each.severity is Severity.ERROR for each in result.findings),
        message=longest,
        seconds=time.monotonic() - begun,
    )


def main(names: Sequence[str]) -> None:
    contexts: dict[str, GradingContext] = {}
    counts: dict[str, Counter[str]] = {}
    for mutant in mutants(names):
        if mutant.lab not in contexts:
            settings = ContextSettings(lab=find_lab(mutant.lab), sandbox="auto", gpu_arch=None)
            contexts[mutant.lab] = settings.context()
        seen = said(mutant, contexts[mutant.lab])
        of_lab = counts.setdefault(mutant.lab, Counter())
        of_lab.update(edits=1, counted=seen.counts, named=seen.counts and bool(seen.message))
        words = seen.message if seen.counts else "(not counted: another mistake, or none)"
        edit = f"{mutant.old.strip()} → {mutant.new.strip()}".replace("\n", " ")
        print(f"{mutant.folder}: {edit}\n    {seen.verdict.value} {seen.seconds:.1f} s {words}")
    columns = ("edits", "counted", "named")
    rows = [(lab, *(str(of_lab[each]) for each in columns)) for lab, of_lab in counts.items()]
    print(table(("lab", *columns), rows))
    print(machine())


if __name__ == "__main__":
    main(sys.argv[1:])
