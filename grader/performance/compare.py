"""Our counts beside the profiler's, quantity by quantity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from grader.model import KernelCounts, Profile, Record

_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op"
_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op"
# The wavefronts that instructions request. The L1's own counters also include wavefronts that it
# repeats because of other work in its data pipe, and count each of these as a bank conflict.
_WAVEFRONTS = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op"
_ALL_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op"
_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op"
_EXECUTED = "smsp__sass_inst_executed_op"


class Compared(Record):
    quantity: str
    ours: float
    theirs: float | None  # None: this GPU or this version of ncu does not count it

    @property
    def apart(self) -> float | None:
        """Relative difference; None when there is nothing to compare with."""
        return self.ours / self.theirs - 1 if self.theirs else None


def total(profiles: Iterable[Profile]) -> dict[str, float]:
    """Sums over launches of the metrics that add up."""
    sums: dict[str, float] = {}
    for each in profiles:
        for name, value in each.metrics.items():
            if name.endswith(".sum"):
                sums[name] = sums.get(name, 0.0) + value
    return sums


def compare(counts: KernelCounts, measured: Mapping[str, float]) -> tuple[Compared, ...]:
    """measured: ``total`` of the profiles of the same launches."""
    executed = {entry.kind: entry.count for entry in counts.mix}

    def of(*prefixes: str) -> int:
        return sum(number for kind, number in executed.items() if kind.split(".")[0] in prefixes)

    loaded, copied = counts.global_loads, counts.global_copies
    shared = counts.shared_loads
    rows: Sequence[tuple[str, float, str]] = (
        ("instructions", counts.instructions, "smsp__inst_executed"),
        ("FFMA, threads", 32 * of("FFMA"), "smsp__sass_thread_inst_executed_op_ffma_pred_on"),
        ("global loads", of("LDG"), f"{_EXECUTED}_global_ld"),
        ("global stores", of("STG"), f"{_EXECUTED}_global_st"),
        ("shared loads", of("LDS"), f"{_EXECUTED}_shared_ld"),
        ("shared stores", of("STS"), f"{_EXECUTED}_shared_st"),
        ("cp.async", of("LDGSTS"), f"{_EXECUTED}_ldgsts"),
        ("shared load wavefronts", shared.cost, f"{_WAVEFRONTS}_ld"),
        (
            "of them bank conflicts",
            shared.cost - shared.passes,
            f"{_CONFLICTS}_ld + {_WAVEFRONTS}_ld - {_ALL_WAVEFRONTS}_ld",
        ),
        ("shared store wavefronts", counts.shared_stores.cost, f"{_WAVEFRONTS}_st"),
        ("cp.async wavefronts", counts.shared_copies.cost, f"{_WAVEFRONTS}_ldgsts"),
        # ncu counts what cp.async reads as loads.
        ("global load requests", loaded.requests + copied.requests, f"{_REQUESTS}_ld"),
        ("global load sectors", loaded.cost + copied.cost, f"{_SECTORS}_ld"),
        ("global store requests", counts.global_stores.requests, f"{_REQUESTS}_st"),
        ("global store sectors", counts.global_stores.cost, f"{_SECTORS}_st"),
    )
    return tuple(
        Compared(quantity=quantity, ours=ours, theirs=_value(formula, measured))
        for quantity, ours, formula in rows
    )


def _value(formula: str, measured: Mapping[str, float]) -> float | None:
    """``a + b - c`` of metrics' sums; None without one of them."""
    total, sign = 0.0, 1
    for word in formula.split():
        if word in "+-":
            sign = 1 if word == "+" else -1
        elif f"{word}.sum" not in measured:
            return None
        else:
            total += sign * measured[f"{word}.sum"]
    return total
