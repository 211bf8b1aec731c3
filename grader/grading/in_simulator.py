"""All stages of a grading in the simulator, in order."""

from __future__ import annotations

from collections.abc import Sequence

from grader.backends.protocol import Progress
from grader.backends.simulator.device import CpuDevice
from grader.errors import Rejected
from grader.grading import hidden_sizes, timed_sizes
from grader.grading.document import build_info, launches_of, with_kernels
from grader.grading.explaining import Explaining
from grader.grading.planning import told_apart, used_libraries
from grader.grading.preparing import Bench, compiled, recorded
from grader.grading.ran import Ran
from grader.judging import rulings
from grader.judging import verdicts as judge
from grader.model import NOTHING, Plan, Size, Submission, Verdict, counted, phrase


def run_in_simulator(
    submission: Submission, bench: Bench, device: CpuDevice, progress: Progress
) -> Ran:
    lab, folder = bench.lab, str(submission.folder)

    def again(sizes: Sequence[Size], arch: str) -> tuple[Plan | Rejected, ...]:
        return recorded(built, declared, submission, sizes, bench, arch)

    progress(phrase("compiling"), NOTHING)
    built = compiled(submission, bench, lab.architectures[0])
    declared = device.read(built, folder, progress)
    cases = sorted(lab.cpu, key=lambda case: lab.problem.amount(case.size))
    # On a GPU the timed sizes run for themselves; here it is seen whether they could.
    timed = [each.size for each in lab.performance] if bench.gpu_arch is None else []
    sizes = [*(case.size for case in cases), *timed]
    progress(
        phrase("recording the launches"),
        counted("for {count} size", "for {count} sizes", len(sizes)),
    )
    plans = recorded(built, declared, submission, sizes, bench)
    used = used_libraries(built, declared, plans, bench)
    larger = plans[len(cases) :]
    outcomes, planned = told_apart(cases, plans)
    beyond = timed_sizes.Beyond()
    with Explaining(built, plans, submission, bench) as explaining:
        if planned:
            outcomes += device.run(built, folder, planned, lab, progress)
        ruling = rulings.in_simulator(cases, outcomes, lab, seen=used)
        if ruling.verdict is Verdict.AC:
            beyond = timed_sizes.look_at(timed, larger, lab.architectures, again)
            if beyond.verdict is Verdict.AC:
                beyond = timed_sizes.probe(larger, built, folder, device, progress)
            ruling = rulings.at_timed_sizes(ruling, beyond.verdict, beyond.findings)
        explanation = explaining.result(device, progress) if ruling.explain else None
        # The last of all, so that nothing said of the others can depend on them.
        hidden = hidden_sizes.in_simulator(
            submission, built, declared, bench, device, ruling.verdict
        )
        if hidden is not None:
            ruling = rulings.with_hidden(ruling, lab, hidden)
    return Ran(
        verdict=ruling.verdict,
        error=beyond.words or None,
        build=build_info(built),
        cases=with_kernels(ruling.cases, plans),
        findings=ruling.findings,
        lines=judge.line_counts(outcomes, lab.problem),
        printed=next((outcome.printed for outcome in outcomes if outcome.printed), ""),
        launches=launches_of(planned, lab.problem),
        explanation=explanation if ruling.explain else None,
        groups=ruling.groups,
    )
