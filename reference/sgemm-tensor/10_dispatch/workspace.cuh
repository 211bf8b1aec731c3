// Workspaces that live on from one call to the next.
#pragma once

#include <cstddef>

// At least `count` elements, one workspace for each type and use, with whatever the last call left
// there.
// cudaMalloc and cudaFree wait for the GPU, so memory is allocated only when a call needs more than
// every call before it.
template <class T, int USE = 0>
T* workspace(size_t count) {
  static T* memory = nullptr;
  static size_t room = 0;
  if (count > room) {
    cudaFree(memory);
    cudaMalloc(&memory, count * sizeof(T));
    room = count;
  }
  return memory;
}
