"""The table of events: what the engine may see, its kind and severity, and its sentence.

The engine numbers events in this order; ``python -m ptxsim.engine_header`` writes their names into
its header.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, unique
from typing import TypeAlias

from ptxsim.findings import sentences
from ptxsim.findings.finding import Kind, Severity
from ptxsim.findings.scene import EventScene
from ptxsim.message import Message

Sentence: TypeAlias = str | Callable[[EventScene], Message]  # the scene's names fill its places
_Row: TypeAlias = tuple[Kind, Severity, Sentence]


def error(kind: Kind, sentence: Sentence) -> _Row:
    return kind, Severity.ERROR, sentence


def warning(kind: Kind, sentence: Sentence) -> _Row:
    """Mark as legal: every GPU of today does what the program means."""
    return kind, Severity.WARNING, sentence


@unique
class Event(Enum):
    """Something that the engine sees."""

    def __init__(self, kind: Kind, severity: Severity, sentence: Sentence) -> None:
        self.kind = kind
        self.severity = severity
        self._sentence = sentence

    def sentence(self, scene: EventScene) -> Message:
        words = self._sentence
        return scene.told(Message(text=words) if isinstance(words, str) else words(scene))

    OUT_OF_BOUNDS = error(Kind.OUT_OF_BOUNDS, sentences.out_of_bounds)
    MISALIGNED = error(Kind.MISALIGNED, sentences.misaligned)
    RACE = error(Kind.RACE, sentences.race)
    ASYNC_RACE = error(
        Kind.RACE,
        "cp.async not waited for: {this_thread} {does} {element} at {here} while the "
        "asynchronous copy that {that_thread} issued at {there} may still be under way "
        "{in_block}; wait for its group, then __syncthreads()",
    )
    UNDEFINED_STORE = error(
        Kind.UNINITIALIZED_READ,
        "{memory}: what {who} read at {there} was never written, and it goes "
        "into the result stored at {here}",
    )
    UNDEFINED_ADDRESS = error(
        Kind.UNINITIALIZED_READ,
        "{memory}: what {who} read at {there} was never written, and it is "
        "used as an address at {here}",
    )
    UNDEFINED_BRANCH = error(
        Kind.UNINITIALIZED_READ,
        "{memory}: what {who} read at {there} was never written, and it decides a branch at {here}",
    )
    DIVERGENT_BARRIER = error(
        Kind.BARRIER_DIVERGENCE,
        "__syncthreads() under divergence: {arrived} of {expected} threads of a "
        "warp reach the barrier at {here} ({who}), {that_thread} is at "
        "{there}; every thread must reach the same barrier",
    )
    DIVERGENT_WARP_OP = error(
        Kind.BARRIER_DIVERGENCE,
        "warp operation under divergence: the mask {mask:#010x} names {expected} "
        "threads; {present} reach {here} ({who}), {missing} do not: {that_thread} is at "
        "{there}",
    )
    DEADLOCK = error(
        Kind.BARRIER_DIVERGENCE,
        "deadlock: {arrived} of {expected} threads wait at the barrier at {here} "
        "{in_block}, the others wait elsewhere and never arrive",
    )
    ENDLESS = error(
        Kind.ENDLESS_LOOP,
        "still running when the time was up: {who} was at {here}; does this loop end?",
    )
    TRAP = error(Kind.TRAP, sentences.trap)
    ASSERTION = error(Kind.TRAP, "assertion failed in {who} at {here}")
    BARRIER_UNINITIALISED = error(
        Kind.UNINITIALIZED_READ, "{who} uses an mbarrier that was never initialised, at {here}"
    )
    BARRIERS_MIXED = warning(
        Kind.BARRIER_DIVERGENCE,
        "different barriers meet: {this_thread} waits in the __syncthreads() at {here} while "
        "other warps wait in the one at {there} {in_block}; every GPU of today lets them go "
        "on, but CUDA promises it only if all threads of a block come to the same one",
    )
    COPY_NOT_COMMITTED = error(
        Kind.RACE,
        "cp.async not committed: {this_thread} {does} {element} at {here} while the "
        "asynchronous copy that {that_thread} issued at {there} may still be under way "
        "{in_block}; waiting for groups covers only copies that were committed to one: "
        "__pipeline_commit() before __pipeline_wait_prior()",
    )
    MASK_WITHOUT_CALLER = error(
        Kind.BARRIER_DIVERGENCE,
        "{who} takes part in the warp operation at {here}, but its mask {mask:#010x} "
        "does not name its own lane {lane}; a mask must name every lane that executes it",
    )
    MASK_BEYOND_BLOCK = warning(
        Kind.BARRIER_DIVERGENCE,
        "the mask {mask:#010x} of the shuffle at {here} names lanes that the warp does "
        "not have: the block ends before them {in_block}; what is read from them is undefined",
    )
    WAITS_FOR_EVER = error(
        Kind.ENDLESS_LOOP,
        "{who} waits at {here} for a value that no thread writes any more: all others have "
        "finished or wait, too",
    )
    NOT_ALL_RESIDENT = error(
        Kind.ENDLESS_LOOP,
        "{who} waits at {here} for blocks that cannot start: {arrived} blocks fit on "
        "{gpu} at the same time, {expected} were launched; blocks that wait for each "
        "other must all fit",
    )
    NEVER_SET = error(
        Kind.UNINITIALIZED_READ,
        "a variable that is used at {there} has no value yet in {who}, and its result "
        "is used at {here}; set it first (a sum to 0)",
    )
    ABSENT_LANE = error(
        Kind.UNINITIALIZED_READ,
        "the shuffle at {there} reads from a lane that takes no part in it, and {who} uses "
        "the result at {here}",
    )
    STACK_OVERFLOW = error(
        Kind.TRAP,
        "{who} calls itself too deep at {here}: after {arrived} calls that have not "
        "returned its stack of {expected} bytes is full; cudaDeviceSetLimit("
        "cudaLimitStackSize, …) makes it larger",
    )
    PART_OF_A_WARP = error(
        Kind.BARRIER_DIVERGENCE,
        "only {present} reach {here} ({who}), an instruction that all 32 threads of a warp "
        "must execute together; {missing} do not",
    )
    MBARRIER_NEVER_COMPLETES = error(Kind.BARRIER_DIVERGENCE, sentences.mbarrier)
    BULK_COPY_RACE = error(
        Kind.RACE,
        "bulk copy not waited for: {this_thread} {does} {element} at {here} while the "
        "copy (or st.async) that {that_thread} issued at {there} may still be under way "
        "{in_block}; wait for the phase of its mbarrier",
    )
    OPERAND_OVERWRITTEN = error(
        Kind.RACE,
        "{this_thread} writes {element} at {here} while the asynchronous operation at "
        "{there} may still read it {in_block}; wait for its group first (wgmma.wait_group or "
        "cp.async.bulk.wait_group.read)",
    )
    PROXY_FENCE_MISSING = error(Kind.RACE, sentences.proxy_fence)
    PROXY_FENCE_AFTER_COPY = warning(
        Kind.RACE,
        "{here} reads {element} through the async proxy, and a cp.async of {that_thread} "
        "wrote it at {there} {in_block} with no fence.proxy.async between them; GPUs of today "
        "read the right data, but PTX does not promise it",
    )
    WGMMA_NOT_FENCED = error(
        Kind.RACE,
        "the wgmma at {here} has no wgmma.fence before it ({who}): its registers may not hold "
        "what was put there",
    )
    WGMMA_REGISTERS_SET = warning(
        Kind.RACE,
        "registers of the wgmma at {here} were set after the last wgmma.fence ({who}); PTX "
        "asks for a wgmma.fence between them",
    )
    WGMMA_NOT_WAITED_FOR = error(
        Kind.RACE,
        "{who} uses at {here} the result of the wgmma at {there}, which may still be under "
        "way: wgmma.commit_group and wgmma.wait_group first",
    )
    WARPS_NOT_ORDERED = warning(
        Kind.RACE,
        "the wgmma at {here} reads {element}, which {that_thread} of another warp wrote at "
        "{there} with no barrier between them {in_block}; GPUs of today start a wgmma when "
        "its four warps have come, but PTX does not promise it",
    )
    BAD_TENSOR_MAP = error(Kind.OUT_OF_BOUNDS, sentences.tensor_map)
    PEER_EXITED = error(
        Kind.OUT_OF_BOUNDS,
        "{who} accesses at {here} the shared memory of {that_block}, which may have ended by "
        "then; a barrier of the cluster must keep it alive",
    )
    PEER_NOT_STARTED = error(
        Kind.OUT_OF_BOUNDS,
        "{who} accesses at {here} the shared memory of {that_block}, which may not have started "
        "yet; a barrier of the cluster must come first",
    )
    UNUSED_RACE = warning(
        Kind.RACE,
        "in shared memory {this_thread} {does} {element} at {here}, which {that_one} {did} at "
        "{there}, and nothing orders the two; nothing uses what was read, so it does no harm here, "
        "but a __syncthreads() between them would make that certain",
    )
    BEFORE_GRID_WAIT = error(Kind.RACE, sentences.before_grid_wait)
    TILE_MISALIGNED = error(Kind.MISALIGNED, sentences.tile_misaligned)
    TILE_BEFORE_TENSOR = error(Kind.OUT_OF_BOUNDS, sentences.tile_before_tensor)
    ATOMIC_AND_PLAIN = error(Kind.RACE, sentences.atomic_and_plain)
    NO_FUNCTION = error(Kind.OUT_OF_BOUNDS, sentences.no_function)
    USED_AFTER_FREE = error(
        Kind.OUT_OF_BOUNDS,
        "{space} {operation}: {who} {does} {bytes} at {element}, which {that_one} freed at {there}",
    )
    FREED_TWICE = error(Kind.OUT_OF_BOUNDS, sentences.freed_twice)
    FREED_WRONGLY = error(Kind.OUT_OF_BOUNDS, sentences.freed_wrongly)
    BLOCK_SCOPE_ONLY = error(
        Kind.RACE,
        "{who} changes {element} atomically at {here}, as {that_one} does at {there}, but not both "
        "for the whole GPU: atomicAdd_block and thread_scope_block hold among the threads of one "
        "block only; use atomicAdd or thread_scope_device",
    )
    VOLATILE_RACE = error(Kind.RACE, sentences.volatile_race)
    NO_FENCE_AFTER_FLAG = error(Kind.RACE, sentences.no_fence_after_flag)
    READ_ONLY_WRITTEN = error(
        Kind.RACE,
        "{who} reads {element} at {here} as memory that nobody writes (__ldg, const __restrict__ "
        "or __constant__), and {that_one} wrote it at {there} in the same launch: what it gets is "
        "undefined; read it with a plain load, or write it in a launch of its own before",
    )
    LOOKS_AT_ATOMIC = warning(
        Kind.RACE,
        "{who} reads {element} at {here} with a plain load, which {that_one} changes atomically at "
        "{there} in no order with it: the compiler may keep an old value, and CUDA's memory model "
        "calls it a data race; read it by atomicAdd(…, 0) or through a volatile pointer",
    )
    BAD_TEXTURE = error(Kind.OUT_OF_BOUNDS, sentences.texture)
