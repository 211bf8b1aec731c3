// A workspace that lives on from one call to the next.
#pragma once

#include "element.cuh"

// At least `count` elements, with whatever the last call left there. cudaMalloc and cudaFree wait
// for the GPU, so memory is allocated only when a call needs more than every call before it.
inline Element* workspace(size_t count) {
  static Element* memory = nullptr;
  static size_t room = 0;
  if (count > room) {
    cudaFree(memory);
    cudaMalloc(&memory, count * sizeof(Element));
    room = count;
  }
  return memory;
}
