#include <algorithm>
#include <cstring>

#include <cuda_occupancy.h>

#include "runtime.hpp"

namespace {

constexpr int NO_ATTRIBUTE = -1;

int attribute_value(cudaDeviceAttr attribute) {
  const Target& t = gpu.target;
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: return MAX_THREADS;
    case cudaDevAttrMaxBlockDimX: return MAX_BLOCK_XY;
    case cudaDevAttrMaxBlockDimY: return MAX_BLOCK_XY;
    case cudaDevAttrMaxBlockDimZ: return MAX_BLOCK_Z;
    case cudaDevAttrMaxGridDimX: return MAX_GRID_X;
    case cudaDevAttrMaxGridDimY: return MAX_GRID_YZ;
    case cudaDevAttrMaxGridDimZ: return MAX_GRID_YZ;
    case cudaDevAttrMaxSharedMemoryPerBlock: return DEFAULT_SHARED;
    case cudaDevAttrTotalConstantMemory: return 64 << 10;
    case cudaDevAttrWarpSize: return 32;
    case cudaDevAttrMaxPitch: return 0x7fffffff;
    case cudaDevAttrMaxRegistersPerBlock: return MAX_REGISTERS;
    case cudaDevAttrClockRate: return t.clock_khz;
    case cudaDevAttrTextureAlignment: return 512;
    case cudaDevAttrGpuOverlap: return 1;
    case cudaDevAttrMultiProcessorCount: return t.multiprocessors;
    case cudaDevAttrKernelExecTimeout: return 0;
    case cudaDevAttrIntegrated: return 0;
    case cudaDevAttrComputeMode: return cudaComputeModeDefault;
    case cudaDevAttrConcurrentKernels: return 1;
    case cudaDevAttrMemoryClockRate: return t.memory_clock_khz;
    case cudaDevAttrGlobalMemoryBusWidth: return t.bus_bits;
    case cudaDevAttrL2CacheSize: return t.l2_bytes;
    case cudaDevAttrMaxThreadsPerMultiProcessor: return t.threads_per_multiprocessor;
    case cudaDevAttrAsyncEngineCount: return 2;
    case cudaDevAttrUnifiedAddressing: return 1;
    case cudaDevAttrComputeCapabilityMajor: return t.major;
    case cudaDevAttrComputeCapabilityMinor: return t.minor;
    case cudaDevAttrStreamPrioritiesSupported: return 1;
    case cudaDevAttrGlobalL1CacheSupported: return 1;
    case cudaDevAttrLocalL1CacheSupported: return 1;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return int(t.shared_per_multiprocessor);
    case cudaDevAttrMaxRegistersPerMultiprocessor: return t.registers_per_multiprocessor;
    case cudaDevAttrManagedMemory: return 1;
    case cudaDevAttrCooperativeLaunch: return 1;
    case cudaDevAttrClusterLaunch: return t.major >= 9;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: return int(t.shared_optin);
    case cudaDevAttrMaxBlocksPerMultiprocessor: return t.blocks_per_multiprocessor;
    case cudaDevAttrReservedSharedMemoryPerBlock: return int(t.shared_reserved);
    case cudaDevAttrMemoryPoolsSupported: return 1;
    default: return NO_ATTRIBUTE;
  }
}

cudaOccDeviceProp occupancy_device() {
  cudaDeviceProp properties;
  cudaGetDeviceProperties(&properties, 0);
  return properties;
}

cudaOccFuncAttributes occupancy_kernel(const Kernel& kernel) {
  cudaOccFuncAttributes attributes;
  attributes.maxThreadsPerBlock = kernel.max_threads;
  attributes.numRegs = kernel.registers;
  attributes.sharedSizeBytes = kernel.shared_static;
  attributes.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
  attributes.maxDynamicSharedSizeBytes = kernel.shared_dynamic;
  attributes.numBlockBarriers = 1;
  return attributes;
}

cudaOccDeviceState occupancy_state(const Kernel& kernel) {
  cudaOccDeviceState state;
  state.carveoutConfig = kernel.carveout;
  return state;
}

}  // namespace

int blocks_per_multiprocessor(const Kernel& kernel, int threads, size_t dynamic) {
  const cudaOccDeviceProp device = occupancy_device();
  const cudaOccFuncAttributes attributes = occupancy_kernel(kernel);
  const cudaOccDeviceState state = occupancy_state(kernel);
  cudaOccResult result = {};
  if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &attributes, &state, threads,
                                              dynamic))
    return 0;
  return result.activeBlocksPerMultiprocessor;
}

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  return answer(__func__, [&](const char* caller) {
    return device == 0 ? cudaSuccess : failed(cudaErrorInvalidDevice, caller);
  });
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }
cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }
cudaError_t cudaProfilerStart() { return cudaSuccess; }
cudaError_t cudaProfilerStop() { return cudaSuccess; }

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return answer(__func__, [&](const char* caller) {
    if (device != 0) return failed(cudaErrorInvalidDevice, caller);
    *value = attribute_value(attribute);
    if (*value == NO_ATTRIBUTE)
      refuse({ATTRIBUTE, {{"function", caller}, {"attribute", int(attribute)}}});
    return cudaSuccess;
  });
}

// The header may rename this one (_v2); the definition follows it.
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device) {
  return answer(__func__, [&](const char* caller) {
    if (device != 0) return failed(cudaErrorInvalidDevice, caller);
    const Target& t = gpu.target;
    std::memset(static_cast<void*>(p), 0, sizeof *p);
    std::strncpy(p->name, t.name.c_str(), sizeof p->name - 1);
    p->totalGlobalMem = t.memory_bytes;
    p->sharedMemPerBlock = DEFAULT_SHARED;
    p->regsPerBlock = MAX_REGISTERS;
    p->warpSize = 32;
    p->memPitch = 0x7fffffff;
    p->maxThreadsPerBlock = MAX_THREADS;
    p->maxThreadsDim[0] = p->maxThreadsDim[1] = MAX_BLOCK_XY;
    p->maxThreadsDim[2] = MAX_BLOCK_Z;
    p->maxGridSize[0] = MAX_GRID_X;
    p->maxGridSize[1] = p->maxGridSize[2] = MAX_GRID_YZ;
    p->totalConstMem = 64 << 10;
    p->major = t.major;
    p->minor = t.minor;
    p->textureAlignment = 512;
    p->multiProcessorCount = t.multiprocessors;
    p->concurrentKernels = 1;
    p->asyncEngineCount = 2;
    p->unifiedAddressing = 1;
    p->cooperativeLaunch = 1;
    p->clusterLaunch = t.major >= 9;
    p->managedMemory = 1;
    p->canMapHostMemory = sink_executes;
    p->memoryBusWidth = t.bus_bits;
    p->l2CacheSize = t.l2_bytes;
    p->maxThreadsPerMultiProcessor = t.threads_per_multiprocessor;
    p->streamPrioritiesSupported = 1;
    p->globalL1CacheSupported = p->localL1CacheSupported = 1;
    p->sharedMemPerMultiprocessor = t.shared_per_multiprocessor;
    p->regsPerMultiprocessor = t.registers_per_multiprocessor;
    p->sharedMemPerBlockOptin = t.shared_optin;
    p->maxBlocksPerMultiProcessor = t.blocks_per_multiprocessor;
    p->reservedSharedMemPerBlock = t.shared_reserved;
#if CUDART_VERSION < 13000
    p->clockRate = t.clock_khz;
    p->memoryClockRate = t.memory_clock_khz;
#endif
    return cudaSuccess;
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks,
                                                                   const void* function,
                                                                   int threads, size_t shared,
                                                                   unsigned) {
  return answer(__func__, [&](const char* caller) {
    *blocks = blocks_per_multiprocessor(measured_kernel(function, caller), threads, shared);
    return cudaSuccess;
  });
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function,
                                                          int threads, size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, shared,
                                                                0);
}
cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* function,
                                                      int blocks, int threads) {
  return answer(__func__, [&](const char* caller) {
    const Kernel& kernel = measured_kernel(function, caller);
    const cudaOccDeviceProp device = occupancy_device();
    const cudaOccFuncAttributes attributes = occupancy_kernel(kernel);
    const cudaOccDeviceState state = occupancy_state(kernel);
    if (cudaOccAvailableDynamicSMemPerBlock(bytes, &device, &attributes, &state, blocks, threads))
      return failed(cudaErrorInvalidValue, caller);
    return cudaSuccess;
  });
}
}
