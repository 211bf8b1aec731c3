"""The report on one launch: findings as data and in words, counts by line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from ptxsim.findings.finding import Finding, Severity
from ptxsim.findings.remarks import Remark, in_words, remark
from ptxsim.findings.shapes import declared_shapes, with_indices
from ptxsim.outcome import SimOutcome
from ptxsim.text import verbatim

# PTX of a stranger can name any file, and an excerpt of it would stand in a log.
SUFFIXES = {".cu", ".cuh", ".h", ".hpp", ".hxx", ".inl", ".c", ".cc", ".cpp", ".cxx", ".py", ".ptx"}


@dataclass(frozen=True)
class Origin:
    """Where a module comes from: the folder of its sources, its name, and texts by file."""

    root: Path
    name: str
    texts: Mapping[str, str]
    words: Mapping[str, str] = field(default_factory=dict)  # that stand for words of CUDA's

    def source(self, file: str) -> str | None:
        """The text of a file that a finding names, or None where there is none to read."""
        path = self.root / file
        if file in self.texts or path.suffix not in SUFFIXES or not path.is_file():
            return self.texts.get(file)
        try:
            return path.read_text(errors="replace")
        except OSError:
            return None


class FindingsError(AssertionError):
    """A launch was not clean. The text is its findings' sentences, with their places."""

    def __init__(self, report: Report) -> None:
        super().__init__(str(report))
        self.report = report


@dataclass(frozen=True)
class Report(SimOutcome):
    """``findings``, ``lines`` (counts by source line) and ``printed``; ``str()`` is for people."""

    origin: Origin = field(kw_only=True)
    kernel: str = field(kw_only=True)

    @property
    def wrong(self) -> tuple[Finding, ...]:
        """The findings but for notes, which say nothing against a program."""
        return tuple(each for each in self.findings if each.severity is not Severity.NOTE)

    @property
    def clean(self) -> bool:
        return not self.wrong and self.stopped is None

    @property
    def remarks(self) -> tuple[Remark[str], ...]:
        """``wrong`` in words. Where no source line is known the place is one of the PTX."""
        return tuple(map(self.remark, self.wrong))

    def remark(self, found: Finding) -> Remark[str]:
        said = remark(found, str)
        for cuda, own in self.origin.words.items():
            message = verbatim(str(said.message).replace(cuda, own))
            said = msgspec.structs.replace(said, message=message)
        if said.file is not None:
            text = self.origin.source(said.file)
            shapes = declared_shapes([text] if text else ())
            return msgspec.structs.replace(said, message=with_indices(said.message, shapes))
        return msgspec.structs.replace(said, file=self.origin.name, line=found.ptx_line)

    def __str__(self) -> str:
        return "\n\n".join(self._paragraphs())

    def _paragraphs(self) -> Iterator[str]:
        if self.clean:
            yield f"{self.kernel}: nothing found"
        yield from in_words(self.remarks, self.origin.source)
        if self.stopped and not self.wrong:
            yield f"{self.kernel} was stopped ({self.stopped}) before its end"

    def raise_for_findings(self) -> None:
        """Raise FindingsError unless the launch was clean."""
        __tracebackhide__ = True
        if not self.clean:
            raise FindingsError(self)
