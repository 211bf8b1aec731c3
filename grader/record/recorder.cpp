// The recorder is one translation unit, so that headers are read once.
#include "recorder/cage.cpp"
#include "recorder/child.cpp"
#include "recorder/main.cpp"
#include "recorder/plan.cpp"
#include "recorder/private_memory.cpp"
#include "recorder/threads.cpp"
#include "recorder/unresolved.cpp"
