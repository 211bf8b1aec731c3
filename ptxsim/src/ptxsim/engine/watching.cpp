// A translation unit of its own, which leaves the others' inlining as it is.
#include "checks/watched.cpp"
