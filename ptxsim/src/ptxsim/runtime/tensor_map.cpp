// The driver's calls that host code gets through the runtime: of them only what makes tensor maps.
#include <cuda.h>

#include <cstring>

#include "runtime.hpp"
#include "../engine/tensor_map.hpp"

#if CUDART_VERSION >= 12000  // before, there are no tensor maps

namespace {

// A map that cannot be made holds zeros, which a kernel cannot use.
CUresult refuse_map(const char* why) {
  driver_failed({BAD_TENSOR_MAP, {{"why", why}}});
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult encode_tiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                      const cuuint64_t* extents, const cuuint64_t* strides, const cuuint32_t* box,
                      const cuuint32_t* steps, CUtensorMapInterleave interleave,
                      CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                      CUtensorMapFloatOOBfill fill) {
  // The type asks for more than 16, but without optimisation g++ does not heed it for the temporary
  // that holds a returned map. Kernels get a copy that lies right.
  if (!map || reinterpret_cast<uintptr_t>(map) % 16)
    return refuse_map("a CUtensorMap lies at a multiple of 64 bytes");
  const sim::TensorMapRequest request{uint32_t(type),
                                      rank,
                                      reinterpret_cast<uint64_t>(address),
                                      extents,
                                      strides,
                                      box,
                                      steps,
                                      uint32_t(interleave),
                                      uint32_t(swizzle),
                                      uint32_t(promotion),
                                      uint32_t(fill)};
  sim::TensorMap made;
  std::memset(static_cast<void*>(map), 0, sizeof *map);
  if (const char* why = sim::encode(request, made)) return refuse_map(why);
  std::memcpy(static_cast<void*>(map), &made, sizeof made);
  return CUDA_SUCCESS;
}
static_assert(sizeof(CUtensorMap) == sim::TENSOR_MAP_BYTES);

CUresult error_text(CUresult error, const char** text) {
  *text = error == CUDA_SUCCESS ? "no error" : "invalid argument";
  return CUDA_SUCCESS;
}

CUresult error_name(CUresult error, const char** name) {
  *name = error == CUDA_SUCCESS ? "CUDA_SUCCESS" : "CUDA_ERROR_INVALID_VALUE";
  return CUDA_SUCCESS;
}

cudaError_t find(const char* symbol, void** function, cudaDriverEntryPointQueryResult* status) {
  return answer("cudaGetDriverEntryPoint", [&](const char*) {
    *function = entry_point(symbol);
    if (!*function) refuse({DRIVER_CALL, {{"function", symbol}}});
    if (status) *status = cudaDriverEntryPointSuccess;
    return cudaSuccess;
  });
}

}  // namespace

// A sink that executes has a driver of its own in the place of what is weak here.
#define WEAK __attribute__((weak))

WEAK void* entry_point(const std::string& symbol) {
  if (symbol == "cuTensorMapEncodeTiled") return reinterpret_cast<void*>(encode_tiled);
  if (symbol == "cuGetErrorString") return reinterpret_cast<void*>(error_text);
  if (symbol == "cuGetErrorName") return reinterpret_cast<void*>(error_name);
  return nullptr;
}

extern "C" {

// For host code that was written to be linked with the driver.
WEAK CUresult CUDAAPI cuInit(unsigned) { return CUDA_SUCCESS; }
WEAK CUresult CUDAAPI cuGetErrorString(CUresult error, const char** text) {
  return error_text(error, text);
}
WEAK CUresult CUDAAPI cuGetErrorName(CUresult error, const char** name) {
  return error_name(error, name);
}
CUresult CUDAAPI cuGetProcAddress_v2(const char* symbol, void** function, int, cuuint64_t,
                                     CUdriverProcAddressQueryResult* status) {
  const bool found = find(symbol, function, nullptr) == cudaSuccess;
  if (status) *status = found ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
CUresult CUDAAPI cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                        void* address, const cuuint64_t* extents,
                                        const cuuint64_t* strides, const cuuint32_t* box,
                                        const cuuint32_t* steps, CUtensorMapInterleave interleave,
                                        CUtensorMapSwizzle swizzle,
                                        CUtensorMapL2promotion promotion,
                                        CUtensorMapFloatOOBfill fill) {
  return encode_tiled(map, type, rank, address, extents, strides, box, steps, interleave, swizzle,
                      promotion, fill);
}

#if CUDART_VERSION < 13000
cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long,
                                    cudaDriverEntryPointQueryResult* status) {
  return find(symbol, function, status);
}
#endif
cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* status) {
  return find(symbol, function, status);
}
}

#endif
