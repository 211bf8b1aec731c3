"""Sizes that only a GPU runs: what can be known of them without one.

They cannot be right on a GPU if none of the lab's architectures can make their launches, or if the
few blocks of each launch that the simulator runs access what lies outside their memory.
"""

import hashlib
from collections.abc import Sequence

import msgspec

from grader import base
from grader.judge import kept
from grader.judge.launches import refused_calls
from grader.judge.program import Program
from grader.run import CaseOutcome, CpuDevice, Progress
from ptxsim.findings import Severity
from ptxsim.plan import Plan, Record, Size
from ptxsim.text import NOTHING, Message, phrase

_Findings = tuple[base.Finding, ...]


class LargerSizes(Record):
    """The sizes of a group that are recorded and not run."""

    program: Program
    plans: tuple[tuple[Size, Plan | base.Rejected], ...]
    located: bool  # whether source lines are noted; not those of hidden sizes

    def warnings(self, outcomes: Sequence[CaseOutcome]) -> _Findings:
        """Return a warning for each line whose call CUDA refuses at these sizes alone."""
        warned = {each.subject for outcome in outcomes for each in outcome.findings}
        found = []
        for size, plan in self.plans:
            if isinstance(plan, base.Rejected):
                continue
            for finding in refused_calls(plan, self.program.context.lab.architectures):
                if finding.subject not in warned:
                    warned.add(finding.subject)
                    words = _at(size, finding.message)
                    found.append(msgspec.structs.replace(finding, message=words))
        return tuple(found)

    def fault(self, simulator: CpuDevice, progress: Progress) -> base.Rejected | None:
        """Return the first reason why a GPU cannot be right at these sizes."""
        return self._first_unlaunchable() or self._first_overrun(simulator, progress)

    def _first_unlaunchable(self) -> base.Rejected | None:
        # The plans are for the first architecture, the build's own.
        program, (_, *others) = self.program, self.program.context.lab.architectures
        for size, plan in self.plans:
            if not isinstance(plan, base.Rejected):
                continue
            again = (program.record([size], arch, located=self.located) for arch in others)
            if not any(isinstance(one, Plan) for plans in again for one in plans):
                findings = tuple(_error_at(size, each) for each in plan.findings)
                return base.Rejected(plan.verdict, _at(size, plan.message), findings)
        return None

    def _first_overrun(self, simulator: CpuDevice, progress: Progress) -> base.Rejected | None:
        for size, plan in self.plans:
            if isinstance(plan, base.Rejected):
                continue
            try:
                found = self._probe(plan, simulator, progress)
            except base.OutOfTime:
                raise
            except base.GraderError as failure:  # the verdict stands, whatever cannot be looked at
                words = phrase("not looked at {size}: {why}", size=str(size), why=failure.message)
                progress(words, NOTHING)
                continue
            if found:
                first, *rest = (_error_at(size, each) for each in found)
                words = first.message
                if first.file:
                    place = f"{first.file}:{first.line}"
                    words = phrase("{place}: {what}", place=place, what=words)
                return base.Rejected(base.Verdict.RE, words, (first, *rest))
        return None

    def _probe(self, plan: Plan, simulator: CpuDevice, progress: Progress) -> _Findings:
        """Look at one size, once for each build; nothing of hidden sizes is kept."""
        built = self.program.built
        if not self.located:
            return simulator.probe(built, self.program.root, plan, progress)
        digest = hashlib.sha256(base.own_code().encode() + msgspec.json.encode(plan))
        digest.update(built.ptx.read_bytes())
        name = f"probed-{digest.hexdigest()[:24]}"
        found = kept.recall(name, _Findings)
        if found is None:
            found = simulator.probe(built, self.program.root, plan, progress)
            kept.keep(name, found)
        return found


def _error_at(size: Size, finding: base.Finding) -> base.Finding:
    words = _at(size, finding.message)
    return msgspec.structs.replace(finding, message=words, severity=Severity.ERROR)


def _at(size: Size, what: Message) -> Message:
    return phrase("at {size}, which a GPU times: {what}", size=str(size), what=what)
