// The toolkit's occupancy calculator, line by line: reads
//   major minor threads_per_sm registers_per_sm shared_per_sm shared_optin shared_reserved threads
//   registers shared
// and writes the blocks that one multiprocessor holds, -1 where the calculator refuses.
#include <algorithm>
#include <cstdio>

#include <cuda_occupancy.h>

int main() {
  cudaOccDeviceProp device;
  cudaOccFuncAttributes kernel;
  const cudaOccDeviceState state;
  int threads;
  size_t shared;
  device.maxThreadsPerBlock = 1024;
  device.regsPerBlock = 65536;
  device.warpSize = 32;
  device.sharedMemPerBlock = 48 << 10;
  device.numSms = 1;
  kernel.maxThreadsPerBlock = 1024;
  kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
  kernel.numBlockBarriers = 1;
  while (std::scanf("%d %d %d %d %zu %zu %zu %d %d %zu", &device.computeMajor, &device.computeMinor,
                    &device.maxThreadsPerMultiprocessor, &device.regsPerMultiprocessor,
                    &device.sharedMemPerMultiprocessor, &device.sharedMemPerBlockOptin,
                    &device.reservedSharedMemPerBlock, &threads, &kernel.numRegs, &shared) == 10) {
    kernel.sharedSizeBytes = std::min<size_t>(shared, 48 << 10);
    const size_t dynamic = shared - kernel.sharedSizeBytes;
    kernel.maxDynamicSharedSizeBytes = dynamic;
    cudaOccResult result = {};
    const auto failed = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state,
                                                                threads, dynamic);
    std::printf("%d\n", failed ? -1 : result.activeBlocksPerMultiprocessor);
  }
}
