"""Whole CUDA programs without a GPU: what a call asks for is done at once, every access watched.

The program is a process of its own, linked with ``sink/`` in the place of CUDA's runtime. It asks
by messages; device memory is a file that both processes map.
"""
