"""Branches that split warps: how often, and which code runs with lanes off because of them."""

from functools import cache
from pathlib import Path

import pytest

from harness import allocated, compiled, engine, launched, planned
from ptxsim.findings.finding import LaunchSample
from ptxsim.plan.records import Place
from ptxsim.sampling import Sampler

THREADS = 128  # four warps
SOURCE = (Path(__file__).parent / "kernels" / "divergence.cu").read_text()
LINES = SOURCE.split("\n")


@cache
def sampled(name: str) -> LaunchSample:
    ptx, folder = compiled(SOURCE)
    sampler = Sampler(ptx, folder, engine())
    allocations = allocated(*(4 * THREADS,) * 3)
    launch = launched(f"_Z{len(name)}{name}PVf", allocations[2], block=(THREADS, 1, 1))
    plan = planned(allocations, launch)
    (found,) = sampler.sample(plan, 10.0)
    return found


def line(text: str, nth: int = 0) -> int:
    return [number for number, each in enumerate(LINES, 1) if text in each][nth]


def split(name: str) -> dict[int, tuple[int, int]]:
    """By source line: executions of its branches, and splits."""
    places = {
        each.place.line: (each.warps, each.splits) for each in sampled(name).branches if each.place
    }
    assert all(
        each.place == Place(file="sgemm.cu", line=each.place.line)
        for each in sampled(name).branches
        if each.place
    )
    return places


def stores(name: str) -> list[tuple[int, int, int | None]]:
    """Executions, active lanes and the splitting branch's source line of every store to global or
    shared memory, in the order of the text."""
    found = sampled(name)
    lines = {each.row: each.place.line for each in found.branches if each.place}
    text = compiled(SOURCE)[0].splitlines()
    return [
        (row.warps, row.active, lines.get(row.branch))
        for row in found.rows
        if text[row.row - 1].strip().startswith(("st.shared", "st.volatile.global"))
    ]


def test_a_tree_of_interleaved_pairs_splits_every_warp() -> None:
    # Steps 1 to 16 split all four warps; 32 and 64 leave only lane 0 of two and of one.
    at = line("t % (2 * s) == 0")
    assert split("tree")[at] == (28, 20 + 2 + 1)
    body = stores("tree")[1]
    assert body == (4 * 5 + 2 + 1, 64 + 32 + 16 + 8 + 4 + 2 + 1, at)


def test_a_branch_that_whole_warps_follow_splits_none() -> None:
    assert split("whole_warps") == {}
    assert [row.branch for row in sampled("whole_warps").rows] == [0] * len(
        sampled("whole_warps").rows
    )


def test_the_innermost_branch_counts() -> None:
    outer, inner = line("t % 2 == 0"), line("t % 4 == 0")
    assert split("nested") == {outer: (4, 4), inner: (4, 4)}
    assert stores("nested") == [(4, 64, outer), (4, 32, inner), (4, 64, outer), (4, 128, None)]


def test_lanes_that_leave_a_loop_early_wait_for_the_others() -> None:
    at = line("i < t % 32")
    (warps, splits) = split("rounds")[at]
    assert splits >= 4 * 30
    inside, behind = stores("rounds")
    assert inside == (4 * 31, 4 * sum(range(32)), at)
    assert behind == (4, 128, None)
    assert warps >= splits


def test_lanes_that_return_are_off_until_the_end() -> None:
    at = line("t >= 100")
    assert split("leaves") == {at: (4, 1)}
    assert stores("leaves") == [(4, 100, at)]


def test_a_switch_splits_a_warp_too() -> None:
    assert sum(splits for _, splits in split("chosen").values()) >= 4
    assert all((warps, active) == (4, 32) and at for warps, active, at in stores("chosen"))


@pytest.mark.parametrize("name", ["tree", "nested", "rounds", "leaves", "chosen"])
def test_no_more_lanes_than_there_are(name: str) -> None:
    assert all(row.active <= 32 * row.warps for row in sampled(name).rows)


def test_polling_is_no_work() -> None:
    """Three warps look at a word while the first one computes for several of their turns."""
    found, text = sampled("waits_for_a_warp"), compiled(SOURCE)[0].splitlines()
    (polls,) = (row for row in found.rows if "ld.volatile.shared" in text[row.row - 1])

    assert found.complete and 3 <= polls.warps == polls.requests <= 9


def test_the_first_access_of_the_most_lanes_to_global_memory_is_kept() -> None:
    kept = [row.lanes for row in sampled("grows").rows if row.space == "global" and row.requests]
    assert kept == [tuple(4 * (31 - lane) for lane in range(32))]
    stores = [row.lanes for row in sampled("tree").rows if row.space == "global" and row.requests]
    assert stores[-1][:4] == (0, None, None, None)
