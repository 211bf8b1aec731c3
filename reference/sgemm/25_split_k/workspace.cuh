// A workspace that lives on from one call to the next.
// The same file lies beside rungs 12, 25, 28 to 30 and 32.
#pragma once

// At least `floats` floats, with whatever the last call left there. cudaMalloc and cudaFree wait for
// the GPU and take longer than a small product, so memory is allocated only when a call needs more
// than every call before it. Freeing the old workspace waits for the kernels that use it.
inline float* workspace(size_t floats) {
  static float* memory = nullptr;
  static size_t room = 0;
  if (floats > room) {
    cudaFree(memory);
    cudaMalloc(&memory, floats * sizeof(float));
    room = floats;
  }
  return memory;
}
