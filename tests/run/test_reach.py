"""Which rows and columns a grid leaves out, by the blocks that wrote a matrix."""

import numpy as np
import pytest

from grader.problems import Operand
from grader.run.simulator.reach import unreached
from ptxsim.plan import Launch


def said(
    shape: tuple[int, int], grid: tuple[int, int], tile: tuple[int, int], *, x_counts: str
) -> str:
    """What is said of a kernel whose blocks take a tile of rows and columns each."""
    rows, columns = np.indices(shape)
    down, across = rows // tile[0], columns // tile[1]
    x, y = (down, across) if x_counts == "rows" else (across, down)
    inside = (x < grid[0]) & (y < grid[1])
    operand = Operand(name="C", role="out", shape=shape, order="col")
    who = np.zeros(operand.count, dtype=[("block", "u4"), ("thread", "u4")])
    who["block"] = operand.flat(np.where(inside, 1 + x + grid[0] * y, 0))
    launch = Launch(
        kernel="k", grid=(*grid, 1), block=(16, 16, 1), shared_bytes=0, params=b"", pointers=()
    )
    return str(unreached(operand, who, launch))


@pytest.mark.parametrize(
    ("shape", "grid", "tile", "x_counts", "says"),
    [
        ((33, 257), (3, 17), (16, 16), "rows", ""),
        ((33, 257), (5, 20), (16, 16), "rows", ""),
        ((33, 257), (3, 17), (16, 16), "columns", "no thread reaches columns 48 to 256 of C: the"),
        ((33, 257), (3, 17), (16, 16), "columns", "launch has 3 × 17 blocks, but in the kernel x"),
        ((33, 257), (3, 17), (16, 16), "columns", "x counts columns and y counts rows, 16 × 16"),
        (
            (33, 64),
            (2, 4),
            (16, 16),
            "rows",
            "no thread reaches row 32 of C: the grid has 2",
        ),
        ((33, 64), (2, 4), (16, 16), "rows", "2 blocks of 16 rows along x, and 3 are needed"),
        ((33, 64), (3, 1), (16, 16), "rows", "no thread reaches columns 16 to 63 of C"),
        ((96, 64), (2, 2), (32, 16), "rows", "rows 64 to 95 and columns 32 to 63 of C: the grid"),
        ((96, 64), (2, 2), (32, 16), "rows", "2 blocks of 16 columns along y, and 4 are needed"),
    ],
)
def test_what_no_thread_reaches(
    shape: tuple[int, int], grid: tuple[int, int], tile: tuple[int, int], x_counts: str, says: str
) -> None:
    found = said(shape, grid, tile, x_counts=x_counts)
    assert says in found if says else not found


def test_holes_say_nothing_of_the_grid() -> None:
    operand = Operand(name="C", role="out", shape=(8, 8))
    who = np.ones(64, dtype=[("block", "u4"), ("thread", "u4")])
    who["block"][27] = 0
    launch = Launch(
        kernel="k", grid=(1, 1, 1), block=(8, 8, 1), shared_bytes=0, params=b"", pointers=()
    )
    assert not unreached(operand, who, launch)
