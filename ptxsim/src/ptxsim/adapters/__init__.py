"""Kernels of other packages, which make their PTX themselves: each needs its package, no GPU."""
