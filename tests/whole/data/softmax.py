"""The softmax of each row, which counts bytes."""

import numpy as np

from grader.problems.expected import Expected
from grader.problems.operands import FLOAT, Operand
from grader.problems.problem import GB_S, Dim, Interface, Problem

HEADER = """\
#pragma once
#include <thrust/device_vector.h>
template <typename T>
void run_custom(thrust::device_vector<T>& in, thrust::device_vector<T>& out, int rows, int n);
"""


class Softmax(Problem):
    name = "softmax"
    dims = (Dim(name="rows", most=65536), Dim(name="n", most=4096))
    unit = GB_S
    baseline = "copy"
    output = "out"
    title = "softmax of each row"
    interface = Interface(
        main="softmax.cu", header="softmax.cuh", text=HEADER, vectors=(FLOAT,) * 2, dims=2
    )
    advice = ("no-tile", "global-sum", "rolled-loop", "scalar-loads", "few-blocks")

    def operands(self, size):
        return tuple(
            Operand(name=name, role=role, shape=size.extents)
            for name, role in (("in", "in"), ("out", "out"))
        )

    def reference(self, xp, size, inputs):
        powers = xp.exp(inputs[0].reshape(size.extents).astype(xp.float64))
        return (Expected(want=powers / powers.sum(axis=1, keepdims=True), scale=np.float64(1)),)

    def tolerance(self, size):
        return 1e-5
