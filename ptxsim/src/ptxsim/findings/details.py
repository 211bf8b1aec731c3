"""Details of an event, by its kind: integers, in the engine's order (``set_details``)."""

from ptxsim.record import Record


class Turnout(Record):
    """Threads at a barrier that others do not reach: of a warp, or of a block."""

    arrived: int
    expected: int


class Participants(Record):
    """Lanes of a warp operation, as bits."""

    named: int  # by its mask, or because it needs them all
    present: int  # those that execute it


class StuckPhase(Record):
    """The phase of an mbarrier that never completes."""

    arrived: int  # arrivals
    expected: int  # arrivals that it takes
    announced: int  # bytes, by expect_tx
    missing: int  # of these; negative where copies brought more


class Residency(Record):
    """A grid whose blocks wait for each other and do not all fit the GPU."""

    fitting: int  # blocks at the same time
    launched: int


class FullStack(Record):
    """The stack of a thread that calls itself too deep."""

    calls: int  # that have not returned
    bytes: int  # of the stack


class TableJump(Record):
    """A brx.idx beyond its table."""

    index: int
    labels: int  # in the table


class Dimensions(Record):
    """How many a tensor map, a texture or a surface has."""

    found: int  # 0: it is none
    wanted: int  # by the instruction; -1: only one of them has layers


class TileStart(Record):
    """The innermost coordinate of a tile, which is no multiple of 16 bytes."""

    coordinate: int  # elements
    element: int  # bytes


class TileCorner(Record):
    """A coordinate of a stored tile's start that is negative."""

    coordinate: int
    axis: int  # 0: the innermost


class SurfacePlace(Record):
    """Coordinates of an access to a surface."""

    x: int  # bytes
    y: int
    z: int


Detail = (
    Turnout
    | Participants
    | StuckPhase
    | Residency
    | FullStack
    | TableJump
    | Dimensions
    | TileStart
    | TileCorner
    | SurfacePlace
)
