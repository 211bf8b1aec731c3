"""Counts of each launch of a large plan, from a few of its blocks."""

import ctypes
import math
import mmap
import os
import time
import weakref
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import numpy.ctypeslib  # now: later no file can be opened

from ptxsim.findings.divergence import split_by
from ptxsim.findings.finding import LaunchSample, Severity
from ptxsim.findings.row_counts import Counters, count_flops, row_counts
from ptxsim.findings.sentences import sentence
from ptxsim.kernels import Running, trapped
from ptxsim.lowering.operation import UnsupportedInstruction
from ptxsim.machine import Bytes
from ptxsim.plan.records import Copy, Launch, Memset, Plan, SymbolWrite, Write
from ptxsim.simulator import Simulator
from ptxsim.soundness import check_plan, cluster_of
from ptxsim.text import NOTHING

Contents = Mapping[int, Bytes]  # by allocation

_PIECE = 1 << 22  # bytes, a multiple of the page
_FIXED = 0x10  # MAP_FIXED, as Linux has it on every processor
_FAILED = ctypes.c_void_p(-1).value


# Nobody who writes a kernel should know what it will be given where its blocks are counted.
_SEED = int.from_bytes(os.urandom(8), "little")


def made_up(size: int, number: int, values: Bytes | None = None) -> Bytes:
    """Map at least ``size`` bytes of ``values``, which repeat themselves, or else of normally
    distributed float32, others for every ``number``. A page that is written costs memory. Raises
    MemoryError."""
    pieces = max(1, -(-size // _PIECE))
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *(ctypes.c_int,) * 3, ctypes.c_long)
    file = os.memfd_create("made up")
    access = mmap.PROT_READ | mmap.PROT_WRITE
    try:
        if values is None:
            drawn = np.random.default_rng((_SEED, number))
            values = drawn.standard_normal(_PIECE // 4, np.float32).view(np.uint8)
        os.write(file, np.resize(values, _PIECE).tobytes())
        start = libc.mmap(None, pieces * _PIECE, access, mmap.MAP_PRIVATE, file, 0)
        if start == _FAILED:
            raise MemoryError
        for at in range(start + _PIECE, start + pieces * _PIECE, _PIECE):
            libc.mmap(at, _PIECE, access, mmap.MAP_PRIVATE | _FIXED, file, 0)
    finally:
        os.close(file)
    whole = (ctypes.c_uint8 * (pieces * _PIECE)).from_address(start)
    libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    weakref.finalize(whole, libc.munmap, start, pieces * _PIECE)
    return np.ctypeslib.as_array(whole)


_DISTINCT = 32  # most launches of a plan that are sampled; a product needs fewer
STEPS = 1 << 40  # time is the limit
MOST_BYTES = 1 << 40  # of the plan; hardly any of it is touched
_SMALL = 1 << 20  # bytes of a memset or copy that is carried out for the counts
SOME = 4  # blocks sampled of each kind of launch, if time allows
_LONG = 4096  # basic blocks that a block's warps enter
_GOLDEN = (5**0.5 - 1) / 2  # its multiples never coincide and form no pattern


class Sampler(Simulator):
    """Counts the launches of plans that are too large to simulate."""

    def sample(
        self, plan: Plan, seconds: float, blocks: int = SOME, inputs: Contents | None = None
    ) -> tuple[LaunchSample, ...]:
        """Count at most ``blocks`` blocks of each kind of launch, with no other watch on them.

        ``inputs`` are what the plan's inputs hold again and again; one without them has made-up
        numbers. Counts that depend on data are those of these.
        () if there are too many kinds of launch. Raises RefusedProgram as ``run`` does.
        """
        kinds = distinct_launches(plan)
        if not kinds:
            return ()
        with self._launches(plan, inputs or {}) as (run, launches):
            return tuple(
                self._sample(run, each, kinds[id(each)], seconds / len(kinds), blocks)
                for each in launches
            )

    @contextmanager
    def _launches(self, plan: Plan, inputs: Contents) -> Iterator[tuple[Running, Iterator[Launch]]]:
        """Yield the first of every kind of launch, in the plan's order; what the host writes before
        it, a tensor map for example, is there then."""
        check_plan(plan, self._module, self.variables, MOST_BYTES)
        run = self._prepare(plan, _inputs(plan, inputs), range(len(plan.allocations)))
        kinds = distinct_launches(plan)

        def walk() -> Iterator[Launch]:
            for each in (*plan.setup, *plan.operations):
                match each:
                    case Launch() if id(each) in kinds:
                        yield each
                    case Write() | SymbolWrite():
                        run.machine.carry_out(each)
                    case Memset(size=size) if size <= _SMALL:
                        run.machine.carry_out(each)
                    case Copy(size=size, rows=rows) if size * rows <= _SMALL:
                        run.machine.carry_out(each)

        try:
            yield run, walk()
        except UnsupportedInstruction as error:
            raise self._refusal(error, plan) from None
        finally:
            self._free(run)

    def _sample(
        self, run: Running, launch: Launch, times: int, seconds: float, most: int
    ) -> LaunchSample:
        """The block in the middle of the grid, which no edge cuts, the last one, and others while
        time allows.

        If these two are long and count the same in every instruction, they are enough.
        """
        library = self._engine.library
        started = time.thread_time()
        together = math.prod(cluster_of(launch, self._module))  # all blocks of a cluster run
        spent, blocks, stopped, alike = 0.0, 0, None, False
        before: Counters | None = None
        flops, work = [0], [0]  # of the first blocks together; work: entries of basic blocks
        run.findings.clear()
        for block in _spread(math.prod(launch.grid), most):
            if stopped or alike or (blocks and spent * (blocks + 1) / blocks > seconds):
                break
            library.sim_sample(run.machine.handle, block, block + 1)
            stopped = self._launch(run, launch, STEPS, seconds * (2 if blocks else 1) - spent)
            stopped = "trap" if trapped(run.findings) else stopped
            spent = time.thread_time() - started
            blocks += together
            program, handle = run.programs[launch.kernel]
            counters = self._counters(program, handle)
            alike = (
                before is not None and blocks == 2 * together and _long_and_twice(counters, before)
            )
            before = counters
            flops.append(count_flops(counters))
            work.append(int(counters.blocks["warps"].sum()))
        del run.programs[launch.kernel]
        library.sim_program_free(handle)
        branches, inside = split_by(counters, self._module.locations)
        done = np.diff(flops if flops[-1] else work)
        mistake = next((each for each in run.findings if each.severity is Severity.ERROR), None)
        return LaunchSample(
            kernel=launch.kernel,
            grid=launch.grid,
            block=launch.block,
            shared_bytes=launch.shared_bytes,
            times=times,
            blocks=blocks,
            stopped=stopped,
            rows=tuple(row_counts(counters, inside, launch.shared_bytes)),
            branches=branches,
            mistake=sentence(mistake) if mistake else NOTHING,
            uneven=len(flops) < 3 or len(set(np.diff(flops))) > 1,
            heaviest=float(done.max() / max(done.sum(), 1)) / together,
        )


def distinct_launches(plan: Plan) -> dict[int, int]:
    """How often every kind of launch occurs, by its first one's id; {} if there are too many."""
    first: dict[tuple[object, ...], Launch] = {}
    times: Counter[int] = Counter()
    for each in plan.operations:
        if isinstance(each, Launch):
            key = (each.kernel, each.grid, each.block, each.shared_bytes)
            times[id(first.setdefault(key, each))] += 1
    return times if len(times) <= _DISTINCT else {}


def _spread(count: int, most: int) -> list[int]:
    """Choose at most ``most`` of ``count`` blocks: the one in the middle, the last, others."""
    if count <= most:
        return list(range(count))
    middle, *others = (int(count * ((0.5 + each * _GOLDEN) % 1)) for each in range(most))
    return list(dict.fromkeys((middle, count - 1, *others)))[:most]


def _long_and_twice(counters: Counters, once: Counters) -> bool:
    return int(once.blocks["warps"].sum()) >= _LONG and all(
        np.array_equal(
            getattr(counters, name).view(np.uint64), 2 * getattr(once, name).view(np.uint64)
        )
        for name in ("blocks", "guarded", "memory", "source")
    )


def _inputs(plan: Plan, contents: Contents) -> dict[int, np.ndarray]:
    """Memory for ``plan``, most of it never touched. No input holds a zero, which a kernel may
    skip."""
    buffers = {
        index: np.zeros(max(allocation.size, 1), np.uint8)
        for index, allocation in enumerate(plan.allocations)
        if allocation.symbol is None
    }
    for index in range(plan.inputs):
        size = plan.allocations[index].size
        buffers[index] = made_up(size, index, contents.get(index))[:size]
    return buffers
