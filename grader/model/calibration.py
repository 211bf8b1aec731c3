"""Constants of the estimate: fitted on one card, and carried over to others.

calibration.json has the constants that fit measured kernels (``benchmarks.estimates fit``) and what
small programs measured on the same card (``grade calibrate``). A course runs the latter on its own
card, which writes a file into ``$SGEMM_GRADER_PREPARED/calibration/``. A constant then changes by
as much as the figure behind it does from the fitted card to the course's.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from grader.base import CardFigures, decode, gpus
from ptxsim.plan import Record


class Calibration(Record):
    """Constants of the estimate. Cycles are of one multiprocessor."""

    card: CardFigures  # of the card on which the constants were fitted
    # By resource: the time that kernels need / the time at its full rate.
    slower: dict[str, float]
    l2_loaded: float  # latency of a load from the L2 while others load / the lowest one
    dram_loaded: float
    far_loaded: float  # latency of DRAM for a warp's loads one after the other / the lowest one
    start_cycles: float  # between the starts of two blocks on one multiprocessor
    block_cycles: float  # from the start of a block to its first instruction, and after its last
    write_cycles: float  # for a sector that it stores or changes in the L2
    copy_cycles: float  # from a bulk copy's start until a warp sees its data, beyond the L2's time
    scattered: float  # a sector that is stored in part: in sectors of loads, beyond itself
    atomic_cycles: float  # between changes of one word in the L2
    turn_cycles: float  # between changes of words in one slice of the L2
    shared_atomic_cycles: float  # between those of a loop that compares and swaps a shared word
    launch_us: float
    call_us: float  # on top of its launches
    spread: dict[str, tuple[float, float]]  # by kind of work: measured / estimated speed
    elsewhere: float  # factor on the spread on cards that were not measured
    measured: bool = True  # on this card

    def on(self, card: CardFigures, gpu: gpus.Gpu) -> Calibration:
        """Carry the constants over to a card with these figures."""
        base, from_gpu = self.card, gpus.find(self.card.gpu) or gpu

        def ratio(name: str) -> float:
            mine, theirs = getattr(card, name), getattr(base, name)
            return float(mine / theirs) if mine and theirs else 1.0

        def table(name: str) -> float:
            there, here = from_gpu.multiprocessor, gpu.multiprocessor
            return float(getattr(there, name) / getattr(here, name))

        shares = {"FP32": "fp32_share", "tensor cores": "tensor_share", "DRAM": "dram_share"}
        shares |= dict.fromkeys(("L2", "L2 by TMA"), "l2_bytes")
        scaled = ("block_cycles", "launch_us", "atomic_cycles", "shared_atomic_cycles")
        return msgspec.structs.replace(
            self,
            slower={
                name: max(value / ratio(shares[name]), 1.0) if name in shares else value
                for name, value in self.slower.items()
            },
            l2_loaded=self.l2_loaded * ratio("l2_latency") * table("l2_latency"),
            dram_loaded=self.dram_loaded * ratio("dram_latency") * table("dram_latency"),
            far_loaded=self.far_loaded * ratio("dram_latency") * table("dram_latency"),
            turn_cycles=self.turn_cycles * ratio("atomic_cycles"),
            call_us=self.call_us * ratio("launch_us"),
            **{name: getattr(self, name) * ratio(name) for name in scaled},
        )


FITTED = decode(Path(__file__).with_name("calibration.json").read_bytes(), Calibration)


def calibration(gpu: gpus.Gpu, cards: Sequence[CardFigures] = ()) -> Calibration:
    """Return the constants for a card: as fitted, or carried over by its own figures.

    cards: what a course measured of its own.
    """
    for card in cards:
        model = gpus.find(card.gpu)
        if gpu.name in (card.gpu, model and model.name):
            return FITTED.on(card, gpu)
    fitted_on = gpus.find(FITTED.card.gpu)
    like = fitted_on is not None and fitted_on.capability == gpu.capability
    return msgspec.structs.replace(FITTED, measured=like)
