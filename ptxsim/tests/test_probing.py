"""A few blocks of launches that are too large to simulate: what they access outside its memory."""

import struct

import msgspec
import pytest

from harness import allocated, compiled, engine, kernels, launched, planned, sentence, values
from ptxsim.findings.finding import Finding, FindingKind
from ptxsim.plan.records import Allocation, Dim3, Launch, Memset, Plan, PointerSlot
from ptxsim.probing import Prober

KERNELS = kernels("probing.cu")


def launch_of(kernel: str, memory: tuple[Allocation, ...], n: int, **shape: Dim3) -> Launch:
    """A launch with all of ``memory`` and ``n``."""
    pointers = tuple(
        PointerSlot(offset=8 * index, allocation=index, delta=0) for index in range(len(memory))
    )
    made = launched(kernel, *memory, pointers=pointers, cooperative=kernel == "meets_the_grid")
    last = struct.pack("<q" if kernel == "from_a_to_c" else "<i", n)
    return msgspec.structs.replace(made, params=made.params + last, **shape)


def probe(plan: Plan, seconds: float = 5.0) -> tuple[Finding, ...]:
    ptx, folder = compiled(KERNELS, "sm_90")
    return Prober(ptx, folder, engine()).probe(plan, seconds)


@pytest.mark.parametrize(
    ("names", "of_a", "of_c", "n", "grid", "block", "words"), values("probing.txt")
)
def test_accesses_outside_their_memory_are_found(
    names: str, of_a: int, of_c: int, n: int, grid: Dim3, block: Dim3, words: str
) -> None:
    a, c = allocated(of_a, of_c)
    memory = a, Allocation(name="C", address=c.address, size=c.size)
    launches = [launch_of(name, memory, n, grid=grid, block=block) for name in names.split()]
    clear = Memset(allocation=0, delta=0, value=0, size=of_a)
    found = probe(planned(memory, clear, *launches, inputs=0, outputs=0))
    assert [each.kind for each in found] == [FindingKind.OUT_OF_BOUNDS] * bool(words)
    assert all(words in sentence(each) for each in found), [sentence(each) for each in found]
    lines = [each.place.line for each in found if each.place]
    assert all("WRONG" in KERNELS.splitlines()[line - 1] for line in lines)
