"""How fast the counts of a call let it be on a GPU: a bound, and an estimate.

For every kind of launch, each resource needs a certain time for the kernel's requests if it is
never idle. The longest time bounds the launch on the busiest multiprocessor; launches run one after
the other. No kernel with these counts is faster, so only the bound may be called "at most".

The estimate also counts the time that warps wait in the issue model, the start of blocks and
launches, and the DRAM traffic of launches that hardly compute. It takes for each resource the share
of its rate that measured kernels reach (calibration.py). docs/explain.md lists the resources, and
what is not modelled.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from math import hypot, prod

from grader.base import CardFigures, KernelInfo, gpus
from grader.model.accesses import SECTOR
from grader.model.calibration import Calibration, calibration
from grader.model.dram import LINE, PASS, dram_bytes, far_share, fits_l1
from grader.model.issue_model import Wave, waited
from grader.model.join import FAR
from grader.model.loop_steps import MainLoop
from grader.model.records import NO_COPIES, Bound, HostCopies, KernelCounts, Limit, Waiting
from grader.model.units import DOUBLES, INTEGERS, SHUFFLES, SPECIAL, lanes_of
from grader.problems import Work
from ptxsim.plan import Copy, Memset, Plan, Record

_HARDLY = 1.05  # the speed that a unit allows / the speed with its waits
_WORD = 4  # bytes
_WAVEFRONT = 128  # bytes
_FEW_LANES = (INTEGERS, SPECIAL, DOUBLES)
# Of a multiprocessor.
_UNITS = ("issue", "FP32", "tensor cores", "shared memory", "L1", *_FEW_LANES)
_L2_BYTES = 64  # to one multiprocessor in each cycle
# Of a cycle, for a line of the L1: naive kernels ran up to 0.6 % faster than one line per cycle on
# an H100 (python -m benchmarks.estimates).
_LINE_CYCLES = 0.99


def bound(
    counts: Sequence[KernelCounts],
    kernels: Mapping[str, KernelInfo],
    work: Work,
    gpu: gpus.Gpu,
    loops: Sequence[MainLoop | None] = (),
    *,
    copies: HostCopies = NO_COPIES,
    cards: Sequence[CardFigures] = (),
) -> Bound | None:
    """kernels: by mangled name, as built for ``gpu``'s architecture or one like it. loops: of the
    same launches as ``counts``; without them the estimate has no waiting. copies: of the same
    call. cards: what a course measured of its own.

    None when there are no counts, or a block does not fit on this GPU.
    """
    launches: list[Demand] = []
    constants = calibration(gpu, cards)
    waiting: Waiting | None = None
    for each, loop in zip_longest(counts, loops):
        kernel = kernels.get(each.name)
        wave = _wave(each, kernel, gpu) if kernel is not None else None
        if kernel is not None and wave is None:
            return None
        seconds = _seconds(each, wave, gpu)
        found = waited(loop, wave, gpu, constants) if loop and wave else None
        if found is not None:
            longest = max((one.seconds.get("waiting", 0.0) for one in launches), default=0.0)
            waiting = found[1] if found[0] > longest else waiting
            seconds["waiting"] = found[0]
        launches.append(Demand(counts=each, wave=wave, seconds=seconds))
    sums = _certain(_sums([each.seconds for each in launches]))
    sums["DRAM"] = work.bytes / (gpu.dram_gb_s * 1e9)
    hard = sum(max(_certain(each.seconds).values()) for each in launches)
    hard = max(hard, sums["DRAM"]) + _through_l2(copies.bytes, gpu)
    if not counts or not hard:
        return None
    about, slowed = estimated(launches, work, gpu, constants, copies)
    limits = [Limit(resource=name, speed=work.speed(s)) for name, s in slowed.items() if s]
    # Where warps wait for hardly more than the busiest unit, that unit is the limit.
    limits.sort(key=lambda limit: limit.speed * (_HARDLY if limit.resource == "waiting" else 1))
    speed, most = work.speed(max(about, hard)), work.speed(hard)
    low, high = _spread(work, counts, constants)
    return Bound(
        gpu=gpu.name,
        size=work.size.dims,
        speed=speed,
        interval=(low * speed, min(high * speed, most)),
        calibrated=constants.measured,
        resource=limits[0].resource,
        limits=tuple(limits),
        peak=work.peak(gpu.peak_tflops(work.arithmetic), gpu.dram_gb_s),
        waiting=waiting,
        most=Limit(resource=max(sums, key=lambda name: sums[name]), speed=most)
        if all(each.complete for each in counts)
        else None,
    )


def host_copies(plan: Plan) -> HostCopies:
    """Add up what a call copies and fills in device memory."""
    calls = [each for each in plan.operations if isinstance(each, Copy | Memset)]
    moved = (2 * each.size * each.rows if isinstance(each, Copy) else each.size for each in calls)
    return HostCopies(calls=len(calls), bytes=sum(moved))


class Demand(Record):
    """One kind of launch: the time that each resource needs at its full rate."""

    counts: KernelCounts
    wave: Wave | None  # None: the kernel's registers are not known
    seconds: dict[str, float]


def estimated(
    launches: Sequence[Demand],
    work: Work,
    gpu: gpus.Gpu,
    constants: Calibration,
    copies: HostCopies = NO_COPIES,
) -> tuple[float, dict[str, float]]:
    """Seconds of a call, and those in which each resource of it is busy."""
    slowed = [_slowed(each, work, gpu, constants) for each in launches]
    sums = _sums(slowed)
    bytewise = constants.slower["DRAM"] / (gpu.dram_gb_s * 1e9)
    sums["DRAM"] = max(sums.get("DRAM", 0.0), work.bytes * bytewise)
    busy = max(
        sum(
            _together(each, launch.wave.blocks if launch.wave else 1, work)
            for each, launch in zip(slowed, launches, strict=True)
        ),
        sums["DRAM"],
    )
    starts = sum(each.counts.times for each in launches) + copies.calls
    sums["DRAM"] += copies.bytes * bytewise
    busy += copies.bytes * bytewise
    return busy + (constants.call_us + constants.launch_us * starts) * 1e-6, sums


def _together(slowed: Mapping[str, float], blocks: int, work: Work) -> float:
    """Return the seconds of a launch whose resources are busy for ``slowed``. blocks: resident."""
    longest = max(slowed.values(), default=0.0)
    if work.unit.of != "bytes":
        return longest
    # A block loads nothing while it computes, and computes nothing while it waits. Others fill
    # these gaps only in part; the root of summed squares fits what was measured.
    busiest = max(slowed.get(unit, 0.0) for unit in _UNITS)
    waiting = slowed.get("latency", 0.0) + busiest / blocks
    return max(longest, hypot(busiest, waiting, slowed.get("DRAM", 0.0)))


def _sums(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The time of each resource in all launches."""
    sums: Counter[str] = Counter()
    for each in parts:
        sums.update(each)
    return dict(sums)


def _certain(seconds: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in seconds.items() if name != "waiting"}


def _slowed(launch: Demand, work: Work, gpu: gpus.Gpu, constants: Calibration) -> dict[str, float]:
    """The time that each resource takes in kernels as they are."""
    counts, wave, clock = launch.counts, launch.wave, gpu.clock_mhz * 1e6
    seconds = dict(launch.seconds)
    seconds["L2"] += _through_l2(counts.scattered * SECTOR, gpu) * constants.scattered
    waiting = seconds.pop("waiting", 0.0)
    # Tensor cores, and the shared memory that feeds them, reach the same share of their rates.
    like = {"shared memory": "tensor cores"} if counts.tensor else {}
    like |= {"L2": "L2 by TMA"} if counts.bulk_loads.cost else {}
    like |= dict.fromkeys(_FEW_LANES, "issue")  # what schedulers reach of their rate
    slowed = {
        name: value * constants.slower[like.get(name, name)] for name, value in seconds.items()
    }
    if work.unit.of == "bytes":
        slowed["latency"] = seconds["latency"]  # ``_together`` adds the rest
    # While a unit of the multiprocessor is busy, nobody waits for anything else.
    busiest = max(seconds.get(unit, 0.0) for unit in _UNITS)
    if waiting > busiest:
        slowed["waiting"] = max(slowed.get(unit, 0.0) for unit in _UNITS) + waiting - busiest
    # Of each output, or of a word that is none.
    updates = max(counts.global_atomics.bytes / _WORD / work.elements, counts.hottest)
    # The L2 has about as many slices as there are multiprocessors.
    updates = max(updates, counts.global_atomics.passes / gpu.multiprocessors)
    changing = updates * constants.atomic_cycles
    slowed["atomics"] = max(changing, counts.crowded * constants.turn_cycles) / clock
    end = 0.0
    if wave is not None:
        if counts.shared_atomics.cost:
            blocks = prod(counts.grid) * counts.times
            turns = counts.shared_atomics.cost / blocks * wave.times
            slowed["atomics"] += turns * constants.shared_atomic_cycles / clock
        if counts.bulk_loads.requests and counts.bulk_shared.bytes:
            ring = _ring(counts, wave, slowed, gpu, constants)
            slowed["waiting"] = max(slowed.get("waiting", 0.0), ring)
        far = far_share(counts, wave, work, gpu) / FAR
        far *= gpu.multiprocessor.dram_latency * constants.far_loaded
        cycles = constants.block_cycles + counts.far_cycles * far
        starts = wave.blocks * constants.start_cycles * wave.times / clock
        slowed["latency"] = max(slowed["latency"] + cycles * wave.times / clock, starts)
        if counts.meetings:
            busy = max(slowed.get(unit, 0.0) for unit in (*_UNITS, "L2"))
            met = busy + _meetings(counts, wave, gpu, constants)
            slowed["waiting"] = max(slowed.get("waiting", 0.0), met)
        if counts.flops >= PASS * work.operations > 0:
            # A block stores its part when it has nothing else left to do; others still have.
            written = (counts.global_stores.cost + counts.global_atomics.cost) / wave.blocks
            end = written / gpu.multiprocessors * constants.write_cycles / clock
    if wave is not None and not fits_l1(counts, wave, gpu):
        slowed["L2"] += _through_l2(counts.local_lines * LINE, gpu) * constants.slower["L2"]
    moved = dram_bytes(counts, wave, work, gpu)
    slowed["DRAM"] = moved / (gpu.dram_gb_s * 1e9) * constants.slower["DRAM"]
    return {name: value + end for name, value in slowed.items() if value}


def _meetings(counts: KernelCounts, wave: Wave, gpu: gpus.Gpu, constants: Calibration) -> float:
    """The time in which blocks wait for each other: for a fence, an arrival and a look at who has
    arrived, each on its way to the L2 and back, while all resident blocks change one word."""
    arrivals = min(prod(counts.grid), wave.blocks * gpu.multiprocessors)
    trips = 3 * gpu.multiprocessor.l2_latency * constants.l2_loaded
    cycles = trips + arrivals * constants.atomic_cycles
    return counts.meetings * wave.times * cycles / (gpu.clock_mhz * 1e6)


def _ring(
    counts: KernelCounts,
    wave: Wave,
    slowed: Mapping[str, float],
    gpu: gpus.Gpu,
    constants: Calibration,
) -> float:
    """The time of a main loop whose tiles come by bulk copies, one of A and one of B for a step.

    Shared memory holds the tiles of some steps. Those of one are multiplied, and given back when
    the next one's product has begun; the others may be on their way. With two, nothing overlaps.
    """
    blocks = prod(counts.grid)
    steps = counts.bulk_loads.requests / 2
    stages = int(wave.shared_bytes * steps / counts.bulk_shared.bytes) * wave.blocks
    on_one = steps / blocks * -(-blocks // gpu.multiprocessors)
    arrival = on_one * constants.copy_cycles / (gpu.clock_mhz * 1e6) + slowed["L2"]
    return (arrival + max(stages - 2, 0) * slowed["tensor cores"]) / max(stages - 1, 1)


def _spread(
    work: Work, counts: Sequence[KernelCounts], constants: Calibration
) -> tuple[float, float]:
    """Measured / estimated speed of four kernels in five of this kind, at least and at most."""
    kind = "tensor cores" if any(each.tensor for each in counts) else work.unit.of
    low, high = constants.spread[kind]
    factor = 1.0 if constants.measured else constants.elsewhere
    return low / factor, high * factor


def _wave(counts: KernelCounts, kernel: KernelInfo, gpu: gpus.Gpu) -> Wave | None:
    """The blocks that the busiest multiprocessor holds at a time. None when not even one fits."""
    fits = gpus.occupancy(gpu.multiprocessor, kernel, counts)
    if fits is None:
        return None
    most = -(-prod(counts.grid) // gpu.multiprocessors)
    resident = min(fits.blocks, most)
    return Wave(
        blocks=resident,
        warps=fits.warps // fits.blocks,
        times=most / resident * counts.times,
        shared_bytes=kernel.shared_bytes + counts.shared_bytes,
        local_bytes=kernel.local_bytes * prod(counts.block),
    )


def _seconds(counts: KernelCounts, wave: Wave | None, gpu: gpus.Gpu) -> dict[str, float]:
    """The time that each resource needs for one kind of launch."""
    sm = gpu.multiprocessor
    blocks = prod(counts.grid)
    # Share of one multiprocessor.
    busiest = max(-(-blocks // gpu.multiprocessors) / blocks, counts.heaviest)
    lines = counts.global_loads.lines + counts.global_stores.lines + counts.global_copies.lines
    lines += counts.local_lines
    units = {each.kind: each.count for each in counts.units}
    waves = counts.shared_loads.cost + counts.shared_stores.cost + counts.shared_copies.passes
    waves += counts.matrix_loads.cost + counts.matrix_stores.cost + counts.bulk_shared.cost
    waves += units.get(SHUFFLES, 0) + counts.shared_atomics.passes
    read = sum(each.shared_bytes for each in counts.tensor) / _WAVEFRONT
    beyond = [counts.global_copies, counts.global_stores, counts.bulk_loads, counts.bulk_stores]
    beyond.append(counts.global_atomics)
    sectors = sum(each.cost for each in beyond) + counts.strong_sectors
    rates = (
        (each.flops / 2, gpu.tensor_rate(each.kind, each.sums, by_warps=not each.by_warpgroup))
        for each in counts.tensor
    )
    cycles = {
        "issue": counts.instructions / sm.schedulers * busiest,
        "FP32": counts.floats * 32 / sm.fp32_lanes * busiest,
        # Products of unknown rate count nothing.
        "tensor cores": sum(products / rate for products, rate in rates if rate) * busiest,
        "shared memory": (waves + read) * busiest,
        "L1": lines * _LINE_CYCLES * busiest,
    }
    for unit, executed in units.items():
        if lanes := lanes_of(unit, sm):
            cycles[unit] = executed * 32 / lanes * busiest
    if wave is not None:
        alone = counts.heaviest * blocks * counts.times  # of the heaviest block, over the mean
        cycles["latency"] = counts.warp_cycles * max(wave.times, alone)
    seconds = {name: value / (gpu.clock_mhz * 1e6) for name, value in cycles.items()}
    return seconds | {"L2": _through_l2(sectors * SECTOR, gpu)}


def _through_l2(bytes_: int, gpu: gpus.Gpu) -> float:
    """Seconds in which so many bytes reach all multiprocessors."""
    return bytes_ / (_L2_BYTES * gpu.multiprocessors * gpu.clock_mhz * 1e6)
