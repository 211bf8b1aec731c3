"""Tuning of the top rungs, and their races with cuBLAS and CUB."""
