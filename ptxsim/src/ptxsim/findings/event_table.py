"""The table of events: what the engine may see, its kind and severity, and its sentence.

The engine numbers events in this order; ``python -m ptxsim.engine_header`` writes their names into
its header. events.json has the rest: under severity and kind each event's sentence, whose places
the scene's names fill. A function of sentences.py chooses between several. Hints are no events:
lowering/notes.py finds them.
"""

from enum import Enum, auto
from pathlib import Path

import msgspec

from ptxsim.findings import details
from ptxsim.findings.finding import FindingKind, Severity

_TABLE = msgspec.json.decode(
    Path(__file__).with_name("events.json").read_bytes(),
    type=dict[str, dict[str, str | dict[str, str]]],
)
_GROUPS = {name: group for group, events in _TABLE.items() for name in events}
SENTENCES = {name: text for events in _TABLE.values() for name, text in events.items()}


class Event(Enum):
    """Something that the engine sees."""

    OUT_OF_BOUNDS = auto()
    MISALIGNED = auto()
    RACE = auto()
    ASYNC_RACE = auto()
    UNDEFINED_STORE = auto()
    UNDEFINED_ADDRESS = auto()
    UNDEFINED_BRANCH = auto()
    DIVERGENT_BARRIER = auto()
    DIVERGENT_WARP_OP = auto()
    DEADLOCK = auto()
    ENDLESS = auto()
    TRAP = auto()
    ASSERTION = auto()
    BARRIER_UNINITIALISED = auto()
    BARRIERS_MIXED = auto()
    COPY_NOT_COMMITTED = auto()
    MASK_WITHOUT_CALLER = auto()
    MASK_BEYOND_BLOCK = auto()
    WAITS_FOR_EVER = auto()
    NOT_ALL_RESIDENT = auto()
    NEVER_SET = auto()
    ABSENT_LANE = auto()
    STACK_OVERFLOW = auto()
    PART_OF_A_WARP = auto()
    MBARRIER_NEVER_COMPLETES = auto()
    BULK_COPY_RACE = auto()
    OPERAND_OVERWRITTEN = auto()
    PROXY_FENCE_MISSING = auto()
    PROXY_FENCE_AFTER_COPY = auto()
    WGMMA_NOT_FENCED = auto()
    WGMMA_REGISTERS_SET = auto()
    WGMMA_NOT_WAITED_FOR = auto()
    WARPS_NOT_ORDERED = auto()
    STORE_UNDER_WAY = auto()
    BAD_TENSOR_MAP = auto()
    PEER_EXITED = auto()
    PEER_NOT_STARTED = auto()
    UNUSED_RACE = auto()
    BEFORE_GRID_WAIT = auto()
    TILE_MISALIGNED = auto()
    TILE_BEFORE_TENSOR = auto()
    ATOMIC_AND_PLAIN = auto()
    NO_FUNCTION = auto()
    USED_AFTER_FREE = auto()
    FREED_TWICE = auto()
    FREED_WRONGLY = auto()
    BLOCK_SCOPE_ONLY = auto()
    VOLATILE_RACE = auto()
    NO_FENCE_AFTER_FLAG = auto()
    READ_ONLY_WRITTEN = auto()
    LOOKS_AT_ATOMIC = auto()
    BAD_TEXTURE = auto()
    BRANCH_OUT_OF_TABLE = auto()
    EXTERN_ARRAYS_MEET = auto()
    MBARRIER_NOT_FENCED = auto()
    PROXY_FENCE_AFTER_READ = auto()
    LEFT_BEFORE_BARRIER = auto()
    EARLY_LOOK = auto()
    UNFENCED_READ = auto()
    UNCHECKED_SWAP = auto()
    COMPLETED_BY_NO_COMPLETE = auto()
    BAD_SURFACE = auto()
    OUT_OF_SURFACE = auto()

    @property
    def needs_difference(self) -> bool:
        """Whether it says something only where another order changes the results."""
        return self in (Event.EARLY_LOOK, Event.UNFENCED_READ)

    @property
    def severity(self) -> Severity:
        """WARNING: legal, since every GPU of today does what the program means."""
        return Severity(_GROUPS[self.name].split()[0])

    @property
    def kind(self) -> FindingKind:
        return FindingKind(_GROUPS[self.name].split()[1])


DETAILS: dict[Event, type[details.Detail]] = {
    Event.DIVERGENT_BARRIER: details.Turnout,
    Event.LEFT_BEFORE_BARRIER: details.Turnout,
    Event.DEADLOCK: details.Turnout,
    Event.DIVERGENT_WARP_OP: details.Participants,
    Event.PART_OF_A_WARP: details.Participants,
    Event.MASK_WITHOUT_CALLER: details.Participants,
    Event.MASK_BEYOND_BLOCK: details.Participants,
    Event.MBARRIER_NEVER_COMPLETES: details.StuckPhase,
    Event.NOT_ALL_RESIDENT: details.Residency,
    Event.STACK_OVERFLOW: details.FullStack,
    Event.BRANCH_OUT_OF_TABLE: details.TableJump,
    Event.BAD_TENSOR_MAP: details.Dimensions,
    Event.BAD_TEXTURE: details.Dimensions,
    Event.BAD_SURFACE: details.Dimensions,
    Event.OUT_OF_SURFACE: details.SurfacePlace,
    Event.TILE_MISALIGNED: details.TileStart,
    Event.TILE_BEFORE_TENSOR: details.TileCorner,
}
