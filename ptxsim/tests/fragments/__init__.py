"""Random device code, and the same code on the host: the simulator's arithmetic against g++'s.

generate.py writes fragments, intrinsics.hpp gives the host what CUDA has and C++ lacks.
"""
