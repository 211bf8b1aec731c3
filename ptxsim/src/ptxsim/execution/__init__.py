"""Whole CUDA programs without a GPU: each call of the runtime is done at once, every access watched.

The program is a process of its own, linked with ``sink/`` in the place of CUDA's runtime. It asks by
messages; device memory is a file that both processes map.
"""
