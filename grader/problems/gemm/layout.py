"""How the three matrices lie in memory, and the header that says so."""

from __future__ import annotations

import textwrap

from grader.model import Message, Record, listed, phrase
from grader.problems.gemm.numbers import FORMATS, Numbers
from grader.problems.operands import Order

_ORDERS = {"row": phrase("row-major"), "col": phrase("column-major")}
# Matrix: rows, columns, and the names of its two indices.
_MATRICES = {"A": ("m", "k", "i", "p"), "B": ("k", "n", "p", "j"), "C": ("m", "n", "i", "j")}


class Layout(Record):
    """Which index of a matrix counts: consecutive columns for "row", consecutive rows for "col"."""

    A: Order = "row"
    B: Order = "col"
    C: Order = "col"

    def __str__(self) -> str:
        return str(self.words)

    @property
    def words(self) -> Message:
        """``A row-major, B column-major, C column-major``."""
        orders = {name: _ORDERS[self.of(name)] for name in _MATRICES}
        if self.A == self.B == self.C:
            return phrase("all {order}", order=orders["A"])
        return listed(
            phrase("{name} {order}", name=name, order=order) for name, order in orders.items()
        )

    def of(self, name: str) -> Order:
        order: Order = getattr(self, name)
        return order

    def element(self, name: str) -> str:
        """How host and device code address an element: ``A[i * k + p]``."""
        rows, columns, i, j = _MATRICES[name]
        major, minor, extent = (i, j, columns) if self.of(name) == "row" else (j, i, rows)
        first, second = f"{major} * {extent}", minor
        return (
            f"{name}[{first} + {second}]"
            if self.of(name) == "row"
            else (f"{name}[{second} + {first}]")
        )

    def mistakes(self) -> tuple[Message, Message, Message]:
        """What a program does that takes A, B or C for what it is not."""

        def right(name: str) -> Message:
            return phrase(
                "{name} is {order}, {element}",
                name=name,
                order=_ORDERS[self.of(name)],
                element=self.element(name).replace(" * ", "*"),
            )

        def misread(name: str) -> Message:
            return phrase(
                "{name} was read as if {order}: {right}",
                name=name,
                order=_ORDERS["col" if self.of(name) == "row" else "row"],
                right=right(name),
            )

        return (
            misread("A"),
            misread("B"),
            phrase("C came out transposed: {right}", right=right("C")),
        )


def header(layout: Layout, numbers: Numbers = FORMATS["f32"]) -> str:
    """``gemm.cuh`` for this layout and format."""
    rows = [
        f"//   {name}  {_MATRICES[name][0]}×{_MATRICES[name][1]}, "
        f"{str(_ORDERS[layout.of(name)]) + ':':<14} {layout.element(name)}"
        for name in _MATRICES
    ]
    types = " or ".join(each.name for each in (numbers.element, *numbers.others))
    advice = (
        f"Specialise run_custom for {types} in {numbers.main}. The vectors are already on the "
        "device; take the pointers for your kernel with d_A.data().get()."
    )
    words = {
        "{precision}": numbers.precision,
        "{matrices}": "\n".join(rows),
        "{advice}": textwrap.fill(advice, 97, initial_indent="// ", subsequent_indent="// "),
        "{include}": f"#include <{numbers.include}>\n" if numbers.include else "",
    }
    text = _HEADER
    for name, value in words.items():
        text = text.replace(name, value)
    return text


_HEADER = """\
// The interface of the lab: C = A·B in {precision}.
//
{matrices}
//
{advice}
#pragma once

{include}#include <thrust/device_vector.h>

template <typename T>
void run_custom(thrust::device_vector<T>& d_A, thrust::device_vector<T>& d_B,
                thrust::device_vector<T>& d_C, const int m, const int n, const int k);
"""
