// Producers that keep together.
#pragma once

#include <cuda_runtime.h>

// The blocks of a wave read the same lines of A and B: what one brings from memory, the others find
// in the L2, if they come before it is gone. But clusters drift apart, tile by tile, and lines are
// read again. So a cluster counts its marks along the way, and waits at each until all have passed
// the one before, on average. Nothing depends on it: after some looks the cluster goes on.
constexpr int STEPS_TO_A_MARK = 16, LOOKS = 100;

__device__ unsigned marks_passed;  // by all clusters together; zero between launches

struct Pace {
  unsigned clusters, marks;  // marks: that a cluster with the most steps passes
  unsigned steps = 0, passed = 0;

  __device__ Pace(int clusters, int most_steps)
      : clusters(clusters), marks((most_steps + STEPS_TO_A_MARK - 1) / STEPS_TO_A_MARK) {}

  __device__ void step() {
    if (steps++ % STEPS_TO_A_MARK) return;
    atomicAdd(&marks_passed, 1);
    const volatile unsigned* const all = &marks_passed;
#pragma unroll 1
    for (int look = 0; look < LOOKS && *all < clusters * passed; ++look);
    ++passed;
  }

  // The marks that are left count as passed, and one more: when all clusters have come to that,
  // nobody looks any longer, and the count is cleared.
  __device__ void end() {
    const unsigned left = marks - passed + 1;
    if (atomicAdd(&marks_passed, left) + left == clusters * (marks + 1)) marks_passed = 0;
  }
};
