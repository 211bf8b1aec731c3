"""The stand-in CUDA runtime, in C++: what host code links instead of CUDA's.

runtime.hpp says what a program that links it provides.
"""

from pathlib import Path

SOURCE = Path(__file__).with_name("runtime.cpp")  # its translation unit; runtime.hpp lies beside it
