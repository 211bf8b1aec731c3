"""Whether counts of a few blocks stand for a program that somebody means to please the model with.

The simulator verifies small sizes, of which it runs every block; at a timed size it counts some. A
kernel may notice either. What it can gain by that is limited by a comparison with a verified size.
"""

from collections.abc import Sequence

from ptxsim.findings import LaunchSample, kernel_name
from ptxsim.text import NOTHING, Message, phrase

_UNSEEN = 0.02  # of a timed launch's instructions may run at no verified size
_BEYOND = 1.2  # times what its sampled blocks let expect, a verified size may execute


def distrust(
    timed: Sequence[LaunchSample], verified: Sequence[LaunchSample], executed: int
) -> Message:
    """Say why counts at a timed size are no ground for points; NOTHING if they are.

    verified: samples at a size that ran whole and came out right; executed: warp instructions of
    the submission's lines there.
    """
    known = {each.kernel for each in verified}
    seen = {row.row for each in verified for row in each.rows if row.warps}
    for each in timed:
        kernel = kernel_name(each.kernel)
        if each.kernel not in known:
            return phrase("no size that was verified launches {kernel}", kernel=kernel)
        new = sum(row.warps for row in each.rows if row.row not in seen)
        share = new / max(sum(row.warps for row in each.rows), 1)
        if share > _UNSEEN:
            return phrase(
                "{share:.0f} % of what {kernel} executes runs at no size that was verified",
                share=100 * share,
                kernel=kernel,
            )
    counted = sum(
        row.warps * each.all_blocks * each.times / each.blocks
        for each in verified
        for row in each.rows
    )
    if not (executed <= _BEYOND * counted):
        return phrase(
            "blocks execute {times:.3g} times as many instructions as those that are counted",
            times=executed / max(counted, 1),
        )
    return NOTHING
