// Add two vectors on the GPU. This file is yours.
#include "add.h"

__global__ void add(const float* a, const float* b, float* c, int n) {
  // TODO: which element is this thread's? Are there more threads than elements?
}

void add_vectors(const float* a, const float* b, float* c, int n) {
  // TODO: allocate device memory, copy a and b there, launch the kernel, copy c back, free.
}
