from __future__ import annotations

from grader.backends.gpu.watch import Sight
from grader.errors import MachineError
from grader.model import Watched, phrase

# This many repetitions may be disturbed, or as many as were not, whichever is more.
_MAY_BE_DISTURBED = 10


class Diary:
    """Observations between the repetitions, and how many repetitions were disturbed."""

    def __init__(self) -> None:
        self._sights: list[Sight] = []
        self.disturbed = 0
        self._good = 0

    def accepts(self, sight: Sight | None) -> bool:
        """Whether the repetition counts. Raises MachineError when too many did not."""
        if sight is not None:
            self._sights.append(sight)
        if sight is None or sight.disturbance is None:
            self._good += 1
            return True
        self.disturbed += 1
        if self.disturbed > max(_MAY_BE_DISTURBED, self._good):
            of = self.disturbed + self._good
            raise MachineError(
                phrase(
                    "the GPU was shared: {disturbed} of {all} repetitions were disturbed "
                    "({how}); grade again when it is free",
                    disturbed=self.disturbed,
                    all=of,
                    how=sight.disturbance,
                )
            )
        return False

    def seen(self) -> Watched | None:
        if not self._sights:
            return None
        clocks = [sight.clock_mhz for sight in self._sights if sight.clock_mhz is not None]
        slowed = dict.fromkeys(reason for sight in self._sights for reason in sight.slowed)
        unseen = dict.fromkeys(what for sight in self._sights for what in sight.unseen)
        return Watched(
            sm_clock_mhz=(min(clocks), max(clocks)) if clocks else None,
            slowed=tuple(slowed),
            unseen=tuple(unseen),
        )
