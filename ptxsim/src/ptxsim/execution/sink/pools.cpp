// Memory pools, all of which take from the same memory; and memory of the host that kernels see.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "sink.hpp"

extern int shared_memory;

namespace {

struct Pool {
  uint64_t threshold = 0;  // bytes that it would keep
};
Pool default_pool;

cudaMemPool_t handle_of(Pool& pool) { return reinterpret_cast<cudaMemPool_t>(&pool); }

// Pages of the host that are device memory as well while they are registered.
struct Registered {
  char *host, *device;  // the first page
  size_t bytes;         // of whole pages
};
std::map<const void*, Registered> pages_of_host;  // by the address that was given

// Has pages of the host show another file, or none, and hold what they held.
bool map_over(char* host, size_t bytes, int file, off_t from) {
  const std::string held(host, bytes);
  const int flags = MAP_FIXED | (file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED);
  if (mmap(host, bytes, PROT_READ | PROT_WRITE, flags, file, from) == MAP_FAILED) return false;
  std::memcpy(host, held.data(), bytes);
  return true;
}

}  // namespace

cudaError_t sink_pin(void* host, size_t bytes, const char* caller) {
  const auto page = uintptr_t(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uintptr_t>(host) / page * page;
  const size_t whole = (reinterpret_cast<uintptr_t>(host) + bytes - first + page - 1) / page * page;
  if (!host || !bytes || in_device_range(host)) return failed(cudaErrorInvalidValue, caller);
  char* const start = reinterpret_cast<char*>(first);
  for (const auto& [given, pages] : pages_of_host)
    if (start < pages.host + pages.bytes && pages.host < start + whole)
      return failed(cudaErrorHostMemoryAlreadyRegistered, caller);
  const auto device = static_cast<char*>(sink_allocate_workspace(whole, false, nullptr));
  const off_t at = shared_view(device) - shared_view(reinterpret_cast<void*>(FIRST_ADDRESS));
  if (!map_over(start, whole, shared_memory, at)) return failed(cudaErrorInvalidValue, caller);
  pages_of_host[host] = {start, device, whole};
  sink_share(device, whole);
  return cudaSuccess;
}

cudaError_t sink_unpin(void* host, const char* caller) {
  const auto found = pages_of_host.find(host);
  if (found == pages_of_host.end()) return failed(cudaErrorHostMemoryNotRegistered, caller);
  const Registered& pages = found->second;
  map_over(pages.host, pages.bytes, -1, 0);
  void* const device = pages.device;
  pages_of_host.erase(found);
  return cudaFree(device);
}

void unpin_all() {
  for (const auto& [given, pages] : pages_of_host) map_over(pages.host, pages.bytes, -1, 0);
  pages_of_host.clear();
}

void* device_side(const void* host) {
  if (is_managed(host)) return const_cast<void*>(host);
  const auto at = static_cast<const char*>(host);
  for (const auto& [given, pages] : pages_of_host)
    if (at >= pages.host && size_t(at - pages.host) < pages.bytes)
      return pages.device + (at - pages.host);
  return nullptr;
}

extern "C" {

RUNTIME(cudaHostGetDevicePointer, (void** device, void* host, unsigned),
        (*device = device_side(host),
         *device ? cudaSuccess : failed(cudaErrorInvalidValue, caller)))
RUNTIME(cudaHostGetFlags, (unsigned* flags, void* host),
        device_side(host) ? give(flags, cudaHostAllocMapped)
                          : failed(cudaErrorInvalidValue, caller))
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  return answer(__func__, [&](const char*) {
    Place place;
    void* const seen = device_side(address);
    const bool known = sink_find(address, 0, place), shared = seen && is_managed(address);
    std::memset(attributes, 0, sizeof *attributes);
    attributes->type = shared && !is_pinned(address) ? cudaMemoryTypeManaged
                       : seen                        ? cudaMemoryTypeHost
                       : known                       ? cudaMemoryTypeDevice
                                                     : cudaMemoryTypeUnregistered;
    attributes->devicePointer = seen ? seen : known ? const_cast<void*>(address) : nullptr;
    attributes->hostPointer = known && !seen ? nullptr : const_cast<void*>(address);
    return cudaSuccess;
  });
}

RUNTIME(cudaDeviceGetDefaultMemPool, (cudaMemPool_t * pool, int device),
        device ? failed(cudaErrorInvalidDevice, caller) : give(pool, handle_of(default_pool)))
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return cudaDeviceGetDefaultMemPool(pool, device);
}
cudaError_t cudaDeviceSetMemPool(int, cudaMemPool_t) { return cudaSuccess; }
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps*) {
  return give(pool, handle_of(*new Pool));
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t) { return cudaSuccess; }
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) { return cudaSuccess; }
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc*, size_t) {
  return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  if (attribute == cudaMemPoolAttrReleaseThreshold)
    std::memcpy(&reinterpret_cast<Pool*>(pool)->threshold, value, sizeof(uint64_t));
  return cudaSuccess;
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return answer(__func__, [&](const char*) {
    if (attribute <= cudaMemPoolReuseAllowInternalDependencies) {
      *static_cast<int*>(value) = 1;
      return cudaSuccess;
    }
    const bool threshold = attribute == cudaMemPoolAttrReleaseThreshold;
    *static_cast<uint64_t*>(value) =
        threshold ? reinterpret_cast<Pool*>(pool)->threshold : sink_workspace_bytes();
    return cudaSuccess;
  });
}
cudaError_t cudaMallocFromPoolAsync(void** address, size_t bytes, cudaMemPool_t,
                                    cudaStream_t stream) {
  return cudaMallocAsync(address, bytes, stream);
}
}
