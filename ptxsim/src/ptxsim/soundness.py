"""Whether the simulator can carry out a plan on this module.

Callers may have checked the plan before. It is checked again here, because the engine relies on
every address and every length in it.
"""

import math
from collections.abc import Sequence

from ptxsim.frontend.records import PtxModule, Variable
from ptxsim.outcome import Reason, RefusedProgram
from ptxsim.plan import records
from ptxsim.plan.limits import MAX_CLUSTER, broken_limit
from ptxsim.text import Message, phrase

_ADDRESSES = 1 << 56  # higher addresses name windows of shared and local memory
_MOST_TOGETHER = 1 << 16  # blocks that run at the same time; no GPU holds as many


def check_plan(
    plan: records.Plan, module: PtxModule, variables: Sequence[Variable], most_bytes: int
) -> None:
    """Raises RefusedProgram: WRONG_PLAN for a plan that does not fit the module, TOO_LARGE for more
    than ``most_bytes`` of memory."""
    names = [a.symbol for a in plan.allocations if a.symbol is not None]
    if len(names) != len(set(names)):
        raise _refused("a __device__ variable occurs twice")
    if min(plan.inputs, plan.outputs) < 0 or not plan.given <= len(plan.allocations):
        raise _refused("the caller gives more or fewer allocations than there are")
    known = {v.name: v for v in variables}
    total = sum(max(v.size, 0) for v in variables)
    sizes: list[int] = []
    for allocation in plan.allocations:
        variable = known.get(allocation.symbol or "")
        size = allocation.size if variable is None else variable.size
        if not (0 < allocation.address < _ADDRESSES and 0 <= size < _ADDRESSES):
            raise _refused(f"{allocation.name[:80]} lies outside of memory")
        if variable is not None and allocation.size != variable.size:
            raise _refused(f"{variable.name[:80]} has {variable.size} bytes in the PTX")
        sizes.append(size)
        total += size if variable is None else 0
    if total > most_bytes:
        raise RefusedProgram(
            Reason.TOO_LARGE,
            phrase(
                "its allocations and __device__ variables are {total} MB together, and the "
                "simulator takes {most} MB",
                total=total >> 20,
                most=most_bytes >> 20,
            ),
        )
    for operation in (*plan.setup, *plan.operations):
        match operation:
            case records.Launch():
                _check_launch(operation, module)
            case records.Allocate(allocation=index) | records.Free(allocation=index):
                if not 0 <= index < len(sizes):
                    raise _refused("it allocates or frees what is not there")
            case records.SymbolWrite(symbol=symbol, delta=delta, data=data):
                if symbol not in known or not _inside(delta, len(data), known[symbol].size):
                    raise _refused(f"a copy to the symbol {symbol[:80]} exceeds it")
            case records.Write(allocation=index, delta=delta, data=data):
                if not _within(sizes, index, delta, len(data)):
                    raise _refused("a copy from the host exceeds its allocation")
            case records.Memset(allocation=index, delta=delta, size=size):
                if not _within(sizes, index, delta, size):
                    raise _refused("a memset or a copy exceeds its allocation")
                if not 0 <= operation.value <= 255:
                    raise _refused("a memset writes something other than a byte")
            case records.Copy():
                source = (operation.source, operation.source_delta, operation.source_span)
                target = (operation.target, operation.target_delta, operation.target_span)
                if not (operation.sound and _within(sizes, *source) and _within(sizes, *target)):
                    raise _refused("a memset or a copy exceeds its allocation")


def check_parameters(launch: records.Launch, param_bytes: int) -> None:
    if len(launch.params) != param_bytes:
        raise _refused(
            f"the kernel {launch.kernel[:80]} is launched with {len(launch.params)} bytes of "
            f"parameters and takes {param_bytes}"
        )


def cluster_of(launch: records.Launch, module: PtxModule) -> records.Dim3:
    """The blocks of a cluster, along each axis."""
    return module.functions[launch.kernel].cluster or launch.cluster


def _check_launch(launch: records.Launch, module: PtxModule) -> None:
    function = module.functions.get(launch.kernel)
    if function is None or not function.entry:
        raise _refused(f"there is no kernel {launch.kernel[:80]} in the PTX")
    if limit := broken_limit(launch):
        raise _refused(
            phrase(
                "kernel {kernel} cannot be launched: {limit}",
                kernel=launch.kernel[:80],
                limit=limit,
            )
        )
    cluster = cluster_of(launch, module)
    if min(cluster) < 1 or math.prod(cluster) > MAX_CLUSTER:
        raise _refused(
            f"{launch.kernel[:80]} runs in clusters of {cluster} blocks; CUDA allows {MAX_CLUSTER}"
        )
    if any(n % of for n, of in zip(launch.grid, cluster, strict=True)):
        raise _refused(
            f"the grid {launch.grid} of {launch.kernel[:80]} is no multiple of its clusters "
            f"{cluster}"
        )
    if launch.cooperative and math.prod(launch.grid) > _MOST_TOGETHER:
        raise _refused(f"the cooperative launch of {launch.kernel[:80]} has more blocks than fit")


def _within(sizes: Sequence[int], index: int, delta: int, size: int) -> bool:
    return 0 <= index < len(sizes) and _inside(delta, size, sizes[index])


def _inside(delta: int, size: int, whole: int) -> bool:
    return delta >= 0 and size >= 0 and delta + size <= whole


def _refused(why: Message | str) -> RefusedProgram:
    return RefusedProgram(Reason.WRONG_PLAN, why)
