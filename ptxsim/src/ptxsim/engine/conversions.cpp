// A translation unit of its own: it takes the compiler as long as the rest of arithmetic/.
#include "arithmetic/conversions.cpp"
