// One translation unit for all of arithmetic/ but the conversions, so that headers are read once.
#include "arithmetic/bits.cpp"
#include "arithmetic/carries.cpp"
#include "arithmetic/comparisons.cpp"
#include "arithmetic/floats.cpp"
#include "arithmetic/halves.cpp"
#include "arithmetic/integers.cpp"
#include "arithmetic/video.cpp"
