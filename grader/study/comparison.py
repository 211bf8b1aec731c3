"""Our counts beside the profiler's, quantity by quantity."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from grader.model import KernelCounts
from grader.results import Profile
from ptxsim.plan import Record
from ptxsim.text import Message, phrase, verbatim

_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op"
_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op"
# The wavefronts that instructions request. The L1's own counters also include wavefronts that it
# repeats because of other work in its data pipe, and count each of these as a bank conflict.
_WAVEFRONTS = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op"
_ALL_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op"
_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op"
_EXECUTED = "smsp__sass_inst_executed_op"


_MATRIX_CONFLICTS = "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ldsm"
_PATH = "sm__ops_path_tensor_op"
OPERATIONS = {
    "HMMA f16.f16": f"{_PATH}_hmma_src_fp16_dst_fp16_sparsity_off",
    "HMMA f16.f32": f"{_PATH}_hmma_src_fp16_dst_fp32_sparsity_off",
    "HMMA bf16.f32": f"{_PATH}_hmma_src_bf16_dst_fp32_sparsity_off",
    "HMMA tf32.f32": f"{_PATH}_hmma_src_tf32_dst_fp32_sparsity_off",
    "HGMMA f16.f16": f"{_PATH}_hgmma_src_fp16_sparsity_off",
    "HGMMA f16.f32": f"{_PATH}_hgmma_src_fp16_sparsity_off",
    "HGMMA bf16.f32": f"{_PATH}_hgmma_src_bf16_dst_fp32_sparsity_off",
    "HGMMA tf32.f32": f"{_PATH}_hgmma_src_tf32_dst_fp32_sparsity_off",
}
# What a multiprocessor receives: of a multicast, each of its blocks.
_TMA_READ, _TMA_LOADS = "l1tex__m_xbar2l1tex_read", "_mem_global_op_tma_ld"
_TMA_WRITTEN = "l1tex__m_l1tex2xbar_write_bytes_mem_global_op_tma_st"


class Compared(Record):
    quantity: Message
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
    # The L1's own counters of loads include ldmatrix.
    of_matrices = f" + {_WAVEFRONTS}_ldsm - {_MATRIX_CONFLICTS}" if of("LDSM") else ""
    shared = counts.shared_loads
    rows: Sequence[tuple[Message, float, str]] = (
        (phrase("instructions"), counts.instructions, "smsp__inst_executed"),
        (
            phrase("FFMA, threads"),
            32 * of("FFMA"),
            "smsp__sass_thread_inst_executed_op_ffma_pred_on",
        ),
        (phrase("global loads"), of("LDG"), f"{_EXECUTED}_global_ld"),
        (phrase("global stores"), of("STG"), f"{_EXECUTED}_global_st"),
        (phrase("shared loads"), of("LDS"), f"{_EXECUTED}_shared_ld"),
        (phrase("shared stores"), of("STS"), f"{_EXECUTED}_shared_st"),
        (verbatim("cp.async"), of("LDGSTS"), f"{_EXECUTED}_ldgsts"),
        (phrase("shared load wavefronts"), shared.cost, f"{_WAVEFRONTS}_ld"),
        (
            phrase("of them bank conflicts"),
            shared.cost - shared.passes,
            f"{_CONFLICTS}_ld + {_WAVEFRONTS}_ld - {_ALL_WAVEFRONTS}_ld{of_matrices}",
        ),
        (phrase("shared store wavefronts"), counts.shared_stores.cost, f"{_WAVEFRONTS}_st"),
        (phrase("cp.async wavefronts"), counts.shared_copies.cost, f"{_WAVEFRONTS}_ldgsts"),
        # ncu counts what cp.async reads as loads.
        (phrase("global load requests"), loaded.requests + copied.requests, f"{_REQUESTS}_ld"),
        (phrase("global load sectors"), loaded.cost + copied.cost, f"{_SECTORS}_ld"),
        (phrase("global store requests"), counts.global_stores.requests, f"{_REQUESTS}_st"),
        (phrase("global store sectors"), counts.global_stores.cost, f"{_SECTORS}_st"),
        *(_of_tensor_cores(counts, of) if counts.tensor or counts.bulk_loads.requests else ()),
    )
    return tuple(
        Compared(quantity=quantity, ours=ours, theirs=_value(formula, measured))
        for quantity, ours, formula in rows
    )


def _of_tensor_cores(
    counts: KernelCounts, of: Callable[..., int]
) -> Iterator[tuple[Message, float, str]]:
    """Yield the counts that only kernels with tensor cores or bulk copies have."""
    loads = counts.matrix_loads
    # ncu counts HGMMA as HMMA, too.
    yield verbatim("HMMA"), of("HMMA", "HGMMA"), "sm__inst_executed_pipe_tensor_op_hmma"
    yield verbatim("HGMMA"), of("HGMMA"), "sm__inst_executed_pipe_tensor_op_gmma"
    for each in counts.tensor:
        types = f"{'HGMMA' if each.by_warpgroup else 'HMMA'} {each.kind}.{each.sums}"
        yield phrase("operations, {types}", types=types), each.flops, OPERATIONS[types]
    yield verbatim("ldmatrix"), of("LDSM"), f"{_EXECUTED}_ldsm"
    yield phrase("ldmatrix wavefronts"), loads.cost, f"{_WAVEFRONTS}_ldsm"
    yield phrase("of them ldmatrix conflicts"), loads.cost - loads.passes, _MATRIX_CONFLICTS
    yield verbatim("stmatrix"), of("STSM"), f"{_EXECUTED}_stsm"
    yield phrase("stmatrix wavefronts"), counts.matrix_stores.cost, f"{_WAVEFRONTS}_stsm"
    yield phrase("TMA loads"), of("UTMALDG"), f"{_EXECUTED}_tma_ld"
    # What passes through shared memory goes both ways.
    arrived = counts.bulk_shared.bytes - counts.bulk_stores.bytes
    yield phrase("TMA bytes loaded"), arrived, f"{_TMA_READ}_bytes{_TMA_LOADS}"
    yield phrase("TMA stores"), of("UTMASTG"), f"{_EXECUTED}_tma_st"
    yield phrase("TMA bytes stored"), counts.bulk_stores.bytes, _TMA_WRITTEN


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
