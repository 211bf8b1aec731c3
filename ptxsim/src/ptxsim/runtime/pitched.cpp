// Pitched and managed memory, as far as it is plain device memory, and the device's limits.
#include <algorithm>

#include "runtime.hpp"

namespace {

constexpr size_t PITCH = 512;  // bytes; that of every GPU of today

void check_rows(size_t pitch, size_t width, size_t height, const char* caller) {
  if (width > pitch)
    refuse({WRONG_PITCH, {{"function", caller}, {"width", width}, {"pitch", pitch}}});
  if (height > MAX_ROWS && width != pitch) refuse({TOO_MANY_ROWS, {{"function", caller}}});
  if (height > 1 && pitch > ARENA_BYTES / height) refuse({ROWS_TOO_LARGE, {{"function", caller}}});
}

// The bytes of rows without a gap. To fill rows with gaps would be a kernel's work.
size_t contiguous(size_t pitch, size_t width, size_t height, const char* caller) {
  check_rows(pitch, width, height, caller);
  if (width != pitch && height > 1)
    refuse({MEMSET_WITH_GAPS, {{"function", caller}, {"width", width}, {"pitch", pitch}}});
  return width * height;
}

// Whether a copy of rows is one of a single row.
bool as_one(size_t target_pitch, size_t source_pitch, size_t width, size_t height,
            const char* caller) {
  check_rows(source_pitch, width, height, caller);
  check_rows(target_pitch, width, height, caller);
  return width == 0 || height <= 1 || (width == source_pitch && width == target_pitch);
}

struct Managed {
  const char* start;
  size_t bytes;
  bool pinned;
};
std::vector<Managed> managed;

const Managed* managed_at(const void* address) {
  const char* at = static_cast<const char*>(address);
  const auto found = std::find_if(managed.begin(), managed.end(), [at](const Managed& each) {
    return at >= each.start && size_t(at - each.start) < each.bytes;
  });
  return found == managed.end() ? nullptr : &*found;
}

cudaError_t only_managed(const void* address, const char* function) {
  return answer(function, [&](const char* caller) {
    const bool wrong = sink_executes && !is_managed(address);
    return wrong ? failed(cudaErrorInvalidValue, caller) : cudaSuccess;
  });
}

size_t stack_bytes = 1 << 10;

}  // namespace

bool is_managed(const void* address) { return managed_at(address) != nullptr; }
bool is_pinned(const void* address) {
  const Managed* const found = managed_at(address);
  return found && found->pinned;
}

size_t device_stack_bytes() { return stack_bytes; }

extern "C" {

void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int);

cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  return answer(__func__, [&](const char* caller) {
    if (limit == cudaLimitPrintfFifoSize) return cudaSuccess;
    if (limit != cudaLimitStackSize) refuse({LIMIT_TO_SET, {{"function", caller}}});
    if (value > MAX_LOCAL_BYTES) return failed(cudaErrorInvalidValue, caller);
    stack_bytes = value;
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  return answer(__func__, [&](const char* caller) {
    if (limit != cudaLimitStackSize) refuse({LIMIT_TO_GET, {{"function", caller}}});
    *value = stack_bytes;
    return cudaSuccess;
  });
}

cudaError_t cudaMallocPitch(void** address, size_t* pitch, size_t width, size_t height) {
  return answer(__func__, [&](const char* caller) {
    if (address == nullptr || pitch == nullptr || width > ARENA_BYTES)
      return failed(cudaErrorInvalidValue, caller);
    *pitch = (width + PITCH - 1) / PITCH * PITCH;
    if (height > 1 && *pitch > ARENA_BYTES / height)
      return failed(cudaErrorMemoryAllocation, caller);
    return cudaMalloc(address, *pitch * height);
  });
}
cudaError_t cudaMallocManaged(void** address, size_t bytes, unsigned flags) {
  const cudaError_t error = cudaMalloc(address, bytes);
  if (error == cudaSuccess)
    managed.push_back({static_cast<const char*>(*address), bytes, flags == cudaMemAttachHost});
  if (error == cudaSuccess) sink_share(*address, bytes);
  return error;
}
// Managed memory is on the device from the start.
#if CUDART_VERSION >= 13000
cudaError_t cudaMemPrefetchAsync(const void* address, size_t, cudaMemLocation, unsigned,
                                 cudaStream_t) {
  return only_managed(address, __func__);
}
cudaError_t cudaMemAdvise(const void* address, size_t, cudaMemoryAdvise, cudaMemLocation) {
  return only_managed(address, __func__);
}
#else
cudaError_t cudaMemPrefetchAsync(const void* address, size_t, int, cudaStream_t) {
  return only_managed(address, __func__);
}
cudaError_t cudaMemAdvise(const void* address, size_t, cudaMemoryAdvise, int) {
  return only_managed(address, __func__);
}
#endif
void __cudaRegisterManagedVar(void** module, void** variable, char* device, const char* name,
                              int external, size_t bytes, int constant, int global) {
  if (!sink_executes) refuse({MANAGED_VARIABLE, {{"name", name}}});
  __cudaRegisterVar(module, reinterpret_cast<char*>(variable), device, name, external, bytes,
                    constant, global);
  cudaGetSymbolAddress(variable, static_cast<const void*>(variable));
  managed.push_back({static_cast<const char*>(*variable), bytes, false});
  sink_share(*variable, bytes);
}

cudaError_t cudaMemcpy2DAsync(void* target, size_t target_pitch, const void* source,
                              size_t source_pitch, size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream) {
  return answer(__func__, [&](const char*) {
    if (as_one(target_pitch, source_pitch, width, height, "cudaMemcpy2DAsync"))
      return cudaMemcpyAsync(target, source, width * height, kind, stream);
    return copy_rows(target, source, {width, height, source_pitch, target_pitch}, kind, false,
                     stream, "cudaMemcpy2DAsync");
  });
}
cudaError_t cudaMemcpy2D(void* target, size_t target_pitch, const void* source, size_t source_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind) {
  return answer(__func__, [&](const char* caller) {
    if (as_one(target_pitch, source_pitch, width, height, caller))
      return cudaMemcpy(target, source, width * height, kind);
    return copy_rows(target, source, {width, height, source_pitch, target_pitch}, kind, true,
                     nullptr, caller);
  });
}
cudaError_t cudaMemset2DAsync(void* target, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  return answer("cudaMemset2D", [&](const char* caller) {
    if (!sink_executes)
      return cudaMemsetAsync(target, value, contiguous(pitch, width, height, caller), stream);
    check_rows(pitch, width, height, caller);
    return fill(target, value, {width, height, pitch, pitch}, stream, caller);
  });
}
cudaError_t cudaMemset2D(void* target, size_t pitch, int value, size_t width, size_t height) {
  return cudaMemset2DAsync(target, pitch, value, width, height, nullptr);
}

}  // extern "C"
