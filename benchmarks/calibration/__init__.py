"""Measured once, to learn how a GPU works or to try variants of a rung."""
