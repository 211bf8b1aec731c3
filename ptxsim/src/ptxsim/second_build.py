"""The second build of device code, by nvcc -G. Nothing in it is optimised away, so it shows what
the first one hides: nvcc keeps small arrays in registers, where no index leaves them, and removes
what depends on a variable without a value."""

from ptxsim.findings.event_table import Event
from ptxsim.findings.finding import Finding
from ptxsim.frontend.interface import Declarations
from ptxsim.outcome import SimOutcome

_UNINITIALISED = {
    *(Event.UNDEFINED_STORE, Event.UNDEFINED_ADDRESS, Event.UNDEFINED_BRANCH, Event.NEVER_SET)
}

# Its results come into registers later, which unoptimised code stores at once.
_LATE_REGISTERS = "wgmma.mma_async"


def runs_alike(ptx: str) -> bool:
    """Whether unoptimised code can do what the source says."""
    return _LATE_REGISTERS not in ptx


def has_same_kernels(first: Declarations, second: Declarations) -> bool:
    """Whether the launches of the first build fit the second one."""

    def kernels(module: Declarations) -> dict[str, list[tuple[int, int]]]:
        return {
            name: [(param.offset, param.size) for param in entry.params]
            for name, entry in module.entries.items()
        }

    return kernels(first) == kernels(second)


def hidden_mistakes(outcome: SimOutcome) -> tuple[Finding, ...]:
    """Return what the run of a second build says against the program: arrays that are overrun,
    values that nobody wrote. All else may be due to the build, which runs in another order and
    time; and nothing counts of a run that was stopped."""
    return () if outcome.stopped else tuple(filter(_counts, outcome.findings))


def _counts(found: Finding) -> bool:
    if found.event is Event.OUT_OF_BOUNDS:
        return found.access is not None and found.access.space in ("local", "shared")
    return found.event in _UNINITIALISED
