"""Units of a multiprocessor that take fewer lanes in a cycle than its schedulers issue.

Their rates are in the CUDA programming guide, "Throughput of native arithmetic instructions".
"""

import re
from collections.abc import Mapping

from grader.base import gpus
from grader.build import SassInstruction

SHUFFLES = "shuffles"  # go to the multiprocessor's path to shared memory, as a wavefront each
INTEGERS, SPECIAL, DOUBLES = "integers", "special functions", "FP64"
# By unit: opcodes without modifiers of which it is certain that nothing else executes them.
_OPCODES: Mapping[str, re.Pattern[str]] = {
    SHUFFLES: re.compile(r"SHFL"),
    INTEGERS: re.compile(r"IADD3|LOP3|SHF|LEA|ISETP|IMNMX|IABS|SGXT|BMSK"),
    SPECIAL: re.compile(r"MUFU|I2F|F2I|F2F|FRND|POPC|FLO|BREV"),
    DOUBLES: re.compile(r"D(?:ADD|MUL|FMA|SETP)"),
}
_SPECIAL_LANES = 16


def unit_of(item: SassInstruction) -> str | None:
    """The unit among these that executes an instruction."""
    return next((name for name, found in _OPCODES.items() if found.fullmatch(item.base)), None)


def lanes_of(unit: str, sm: gpus.Multiprocessor) -> int | None:
    """Lanes of a unit that one multiprocessor serves in a cycle; None where it limits nothing."""
    return {
        INTEGERS: sm.integer_lanes,
        SPECIAL: _SPECIAL_LANES,
        DOUBLES: sm.fp64_lanes,
    }.get(unit)
