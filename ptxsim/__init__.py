"""The SIMT simulator: runs nvcc's PTX on the CPU and watches every access.

ptxsim.frontend reads the text, lower.py and rules.py turn instructions into engine operations, flow.py
orders blocks and shares registers, program.py packs, engine/ (C++) interprets warps over shadowed
memory, simulator.py runs whole launch plans, sampling.py counts a few blocks of large ones,
findings.py and counts.py say what was seen.
"""

from ptxsim.sampling import LaunchSample, RowCount, Sampler
from ptxsim.simulator import SimLimits, SimOutcome, Simulator

__all__ = [
    "LaunchSample",
    "RowCount",
    "Sampler",
    "SimLimits",
    "SimOutcome",
    "Simulator",
]
