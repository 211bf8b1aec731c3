// The sums of slices of K, each in a product of its own in the workspace.
#pragma once

#include "overlap.cuh"
#include "workspace.cuh"

// Adds the slices' sums, always in the same order.
__global__ void add_slices(const float* partial, float* C, size_t count, int slices) {
  wait_for_launches_before();
  const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float sum = 0;
#pragma unroll 8
  for (int z = 0; z < slices; ++z) sum += partial[z * count + i];
  C[i] = sum;
}

inline void add_up(const float* partial, float* C, size_t count, int slices) {
  launch_early(add_slices, unsigned((count + 255) / 256), 256, 0, partial, C, count, slices);
}
