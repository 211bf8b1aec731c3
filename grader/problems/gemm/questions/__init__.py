"""What the lab's report asks about a product of matrices, answered for one kernel. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from grader.model import phrase
from grader.problems.gemm.questions.features import cp_async, cute, on_tensor_cores, tensor_cores
from grader.problems.gemm.questions.tiles import block_tile, tiling, transposition
from grader.problems.gemm.questions.traffic import bandwidth_bound, naive_traffic, tile_traffic
from grader.problems.questions import COUNTED, Question

QUESTIONS: Mapping[str, Question] = {
    "transposition": Question(
        text=phrase("What would transposing an operand do to coalescing and to the L2?"),
        method=phrase(
            "sectors for each request: {counts}; the layout is the lab's", counts=COUNTED
        ),
        answer=transposition,
    ),
    "tiling": Question(
        text=phrase("Why does tiling help, by traffic and by instruction-level parallelism apart?"),
        method=phrase(
            "2·M·N·K elements against the sectors asked for ({counts}); sums of a thread: chains "
            "of dependent FFMA in the main loop",
            counts=COUNTED,
        ),
        answer=tiling,
    ),
    "tile": Question(
        text=phrase("Which part of {output} does a block compute?"),
        method=phrase(
            "grid and block as launched; the tile is C divided by the grid; registers and shared "
            "memory from the cubin, occupancy by NVIDIA's rules"
        ),
        answer=block_tile,
    ),
    "tile-traffic": Question(
        text=phrase("How much does it read from global memory?"),
        method=phrase(
            "the formula for whole tiles; {counts}; ncu where grade profile ran", counts=COUNTED
        ),
        answer=tile_traffic,
    ),
    "naive-traffic": Question(
        text=phrase("Is the naive kernel's global traffic redundant, once caches are counted?"),
        method=phrase("ncu: l1tex sectors of global loads, lts sectors read, dram bytes read"),
        answer=naive_traffic,
    ),
    "bandwidth-bound": Question(
        text=phrase("What does the bandwidth bound of the old tutorials say?"),
        method=phrase(
            "bandwidth × FLOP for each byte; data sheets; the G80's figures are the tutorials'"
        ),
        answer=bandwidth_bound,
    ),
    "tensor-cores": Question(
        text=phrase("Why no tensor cores?"),
        method=phrase(
            "search for HMMA, IMMA and their like in the machine code; docs/verification.md "
            "derives the tolerance"
        ),
        answer=tensor_cores,
    ),
    "on-tensor-cores": Question(
        text=phrase("Does it use tensor cores?"),
        method=phrase("search for HMMA, IMMA and their like in the machine code"),
        answer=on_tensor_cores,
    ),
    "cp-async": Question(
        text=phrase("What are the limits of cp.async here: sizes, alignment, stages?"),
        method=phrase(
            "bytes of each copy: {counts}; stages: the least latency of DRAM by published "
            "measurements over the FP32 pipe's time for one step",
            counts=COUNTED,
        ),
        answer=cp_async,
    ),
    "cute": Question(
        text=phrase("What does CuTe do here?"),
        method=phrase("its names in the source, and the main loop that the compiler makes of them"),
        answer=cute,
    ),
}
