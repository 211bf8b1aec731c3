// Launches that overlap: a kernel may begin while the launch before it ends. sm_90 and newer.
#pragma once

#include "tile.cuh"

// The launch that follows may begin, as soon as every block of this one has said so or has ended.
__device__ __forceinline__ void let_next_launch_begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
// Until all launches before have ended, and what they wrote can be read.
__device__ __forceinline__ void wait_for_launches_before() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// kernel<<<grid, threads, shared>>>(arguments...), which may begin before the launch before it has
// ended: wait_for_launches_before() comes before its first use of memory that the other uses.
template <class... Parameters, class... Arguments>
void launch_early(void (*kernel)(Parameters...), dim3 grid, int threads, size_t shared,
                  Arguments... arguments) {
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed =
      attribute(cudaDevAttrComputeCapabilityMajor) >= 9;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared;
  config.attrs = &early;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...);
}
