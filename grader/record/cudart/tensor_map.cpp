// The driver's calls that host code gets through the runtime: of them only what makes tensor maps.
#include <cuda.h>

#include <cstring>

#include "recorder.hpp"
#include "tensor_map.hpp"

namespace {

// Why the last map could not be made; its bytes are zero, which a kernel cannot use.
CUresult encode_tiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                      const cuuint64_t* extents, const cuuint64_t* strides, const cuuint32_t* box,
                      const cuuint32_t* steps, CUtensorMapInterleave interleave,
                      CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                      CUtensorMapFloatOOBfill fill) {
  if (!map || reinterpret_cast<uintptr_t>(map) % 64) return CUDA_ERROR_INVALID_VALUE;
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
  if (sim::encode(request, made)) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(static_cast<void*>(map), &made, sizeof made);
  return CUDA_SUCCESS;
}
static_assert(sizeof(CUtensorMap) == sim::TENSOR_MAP_BYTES);

CUresult error_text(CUresult error, const char** text) {
  *text = error == CUDA_SUCCESS ? "no error" : "invalid argument";
  return CUDA_SUCCESS;
}

// Null for what is not supported.
void* entry_point(const std::string& symbol) {
  if (symbol == "cuTensorMapEncodeTiled") return reinterpret_cast<void*>(encode_tiled);
  if (symbol == "cuGetErrorString") return reinterpret_cast<void*>(error_text);
  return nullptr;
}

cudaError_t find(const char* symbol, void** function, cudaDriverEntryPointQueryResult* status) {
  *function = entry_point(symbol);
  if (!*function)
    refuse("FE", std::string(symbol) +
                     " of the CUDA driver is not supported; of its functions "
                     "only cuTensorMapEncodeTiled is");
  if (status) *status = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}

}  // namespace

extern "C" {

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
