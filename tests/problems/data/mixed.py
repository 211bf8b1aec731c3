"""Bytes, of which a call adds multiples to doubles in place, keeps some, and finds an order."""

from grader.problems.expected import Expected, any_sorting
from grader.problems.operands import (
    DOUBLE,
    FLOAT,
    INT32,
    INT64,
    UINT8,
    UINT32,
    Operand,
    Scalar,
    Whole,
)
from grader.problems.problem import GB_S, Dim, Interface, Problem

HEADER = """\
#pragma once
#include <thrust/device_vector.h>
template <typename T>
void run_custom(thrust::device_vector<T>& in, thrust::device_vector<double>& y,
                thrust::device_vector<int>& order, thrust::device_vector<T>& kept,
                thrust::device_vector<unsigned>& count, int n, float alpha, long long limit);
"""
FAR = 1 << 40
KINDS = {"": Whole(below=256), "skewed": Whole(below=256, often=250, few=2)}


class Mixed(Problem):
    name = "mixed"
    dims = (Dim(name="n", most=1 << 20),)
    kinds = ("skewed", "equal")
    unit = GB_S
    baseline = "copy"
    output = "y"
    title = "bytes of all kinds"
    interface = Interface(
        main="mixed.cu",
        header="mixed.cuh",
        text=HEADER,
        vectors=(UINT8, DOUBLE, INT32, UINT8, UINT32),
        dims=1,
        element=UINT8,
        scalars=(FLOAT, INT64),
    )

    def operands(self, size):
        n, kind = (size["n"],), KINDS.get(size.inputs, Whole(below=256, course="equal"))
        return (
            Operand(name="in", role="in", shape=n, element=UINT8, values=kind),
            Operand(name="y", role="inout", shape=n, element=DOUBLE),
            Operand(name="order", role="out", shape=n, element=INT32),
            Operand(name="kept", role="out", shape=n, element=UINT8),
            Operand(name="count", role="out", shape=(1,), element=UINT32),
        )

    def scalars(self, size):
        alpha, limit = size["n"] + 0.5, FAR + 128
        return (
            Scalar(name="alpha", element=FLOAT, value=alpha),
            Scalar(name="limit", element=INT64, value=limit),
        )

    def reference(self, xp, size, inputs):
        numbers, y = inputs
        kept = numbers[numbers < 128]
        want = xp.zeros_like(numbers)
        want[: kept.size] = kept
        return (
            Expected(want=y + (size["n"] + 0.5) * numbers),
            any_sorting(xp, numbers),
            Expected(want=want, length=int(kept.size)),
            Expected(want=xp.array([kept.size])),
        )

    def tolerance(self, size):
        return 0.0
