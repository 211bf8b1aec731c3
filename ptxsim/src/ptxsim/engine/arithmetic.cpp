// One translation unit for all of arithmetic/, so that headers are read once.
// -O1 compiles in three quarters of the time of -O2, and mma and wgmma run in 0.6 of it.
#pragma GCC optimize("O1", "tree-vectorize")
#include "arithmetic/bits.cpp"
#include "arithmetic/carries.cpp"
#include "arithmetic/comparisons.cpp"
#include "arithmetic/conversions.cpp"
#include "arithmetic/floats.cpp"
#include "arithmetic/halves.cpp"
#include "arithmetic/integers.cpp"
#include "arithmetic/video.cpp"
