"""Kinds of random fragments, which ``benchmarks.fragments_h200`` tries on a GPU and in the
simulator."""
