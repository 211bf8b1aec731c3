// Heat that spreads over a plate, on the GPU. This file is yours.
#include "heat.h"

__global__ void step(const float* from, float* to, int rows, int columns) {
  // TODO: which cell is this thread's? What about cells on the edges?
}

void heat(float* plate, int rows, int columns, int steps) {
  // TODO: two buffers on the device; each step reads one and writes the other.
}
