"""Figures of one card that the model of speeds is carried over to it by."""

from ptxsim.plan import Record


class CardFigures(Record):
    """Figures of one card, measured by ``grade calibrate``. Cycles are of its boost clock."""

    gpu: str  # the driver's name
    where: str  # versions and date
    fp32_share: float  # of the peak that FFMA reach in all multiprocessors together
    tensor_share: float | None  # the same for HMMA, which draw more power; null: it has none
    dram_share: float  # of the bandwidth in the table of GPUs
    l2_bytes: float  # that reach each multiprocessor in a cycle while all read the L2
    l2_latency: float  # median cycles of a load from the L2
    dram_latency: float
    block_cycles: float  # of a multiprocessor, for each of many waves of blocks that do nothing
    launch_us: float  # from a launch that does nothing to the next
    atomic_cycles: float  # between additions to one word of global memory
    shared_atomic_cycles: float  # the same in shared memory

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(value, float) and not 0 < value < float("inf"):
                raise ValueError(f"`{name}` must be a positive number")
