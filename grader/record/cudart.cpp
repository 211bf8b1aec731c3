// The recorder is one translation unit, so that headers are read once.
#include "cudart/cage.cpp"
#include "cudart/child.cpp"
#include "cudart/main.cpp"
#include "cudart/plan.cpp"
#include "cudart/private_memory.cpp"
#include "cudart/threads.cpp"
#include "cudart/unresolved.cpp"
