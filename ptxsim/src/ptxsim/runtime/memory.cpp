#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime.hpp"

namespace {

struct Symbol {
  std::string name;  // mangled
  size_t bytes;
  void* address;  // null until host code asks for it
};

std::map<const void*, Symbol> symbols;

Symbol& symbol_of(const void* variable, const char* caller) {
  const auto found = symbols.find(variable);
  if (found == symbols.end()) refuse({NOT_A_VARIABLE, {{"function", caller}}});
  return found->second;
}

void* address_of(Symbol& symbol) {
  if (symbol.address == nullptr)
    symbol.address = sink_allocate(symbol.name, symbol.bytes, symbol.name);
  return symbol.address;
}

enum class Side { source, target };

Place device_place(const void* address, size_t bytes, const char* caller, Side side) {
  Place place;
  if (sink_find(address, bytes, place)) return place;
  const Refusal source = sink_freed(address) ? SOURCE_FREED : SOURCE_OUTSIDE;
  const Refusal target = sink_freed(address) ? TARGET_FREED : TARGET_OUTSIDE;
  refuse(
      {side == Side::source ? source : target, {{"function", caller}, {"bytes", bytes}}, address});
}

void check_symbol_range(const Symbol& symbol, size_t offset, size_t bytes, const char* caller) {
  if (offset > symbol.bytes || bytes > symbol.bytes - offset)
    refuse({OUTSIDE_VARIABLE,
            {{"function", caller},
             {"bytes", bytes},
             {"offset", offset},
             {"name", symbol.name},
             {"size", symbol.bytes}}});
}

// ordered: in a stream, by one of the functions whose names end in Async.
cudaError_t allocate(void** address, size_t bytes, bool ordered, cudaStream_t stream,
                     const char* caller) {
  if (address == nullptr) return failed(cudaErrorInvalidValue, caller);
  *address = nullptr;
  if (bytes == 0) return cudaSuccess;
  const size_t left = gpu.target.memory_bytes - sink_workspace_bytes();
  if (bytes > left) {
    char size[32];
    std::snprintf(size, sizeof size, "%.4g", double(bytes) / (1 << 30));
    failed(cudaErrorMemoryAllocation, caller);
    sink_refused({NO_MEMORY, {{"function", caller}, {"size", size}}}, bytes);
    return cudaErrorMemoryAllocation;
  }
  *address = sink_allocate_workspace(bytes, ordered, stream);
  return cudaSuccess;
}

cudaError_t release(void* address, bool ordered, cudaStream_t stream, const char* caller) {
  if (address == nullptr) return cudaSuccess;
  Place place;
  if (!sink_find(address, 0, place) || place.delta != 0)
    refuse(
        {sink_freed(address) ? FREED_TWICE : NOT_AN_ALLOCATION, {{"function", caller}}, address});
  sink_free(place.allocation, ordered, stream, caller);
  return cudaSuccess;
}

cudaError_t fill(void* address, int value, size_t bytes, cudaStream_t stream, const char* caller) {
  if (bytes) sink_memset(device_place(address, bytes, caller, Side::target), value, bytes, stream);
  return cudaSuccess;
}

void check_direction(bool from_device, bool to_device, cudaMemcpyKind kind, const char* caller) {
  const bool reads = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDefault;
  if (sink_executes && from_device && !to_device && reads) return;
  if (from_device && to_device && (kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault))
    return;
  if (!from_device && to_device && (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDefault))
    return;
  if (!from_device && !to_device && (kind == cudaMemcpyHostToHost || kind == cudaMemcpyDefault))
    return;
  if (kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyHostToDevice)
    refuse({!to_device     ? TARGET_NOT_DEVICE
            : !from_device ? SOURCE_NOT_DEVICE
                           : SOURCE_NOT_HOST,
            {{"function", caller}}});
  refuse({DEVICE_TO_HOST, {{"function", caller}}});
}

cudaError_t copy_on_device(void* target, const void* source, const Rows& rows, cudaStream_t stream,
                           const char* caller) {
  const size_t read = (rows.count - 1) * rows.source_pitch + rows.bytes;
  const size_t written = (rows.count - 1) * rows.target_pitch + rows.bytes;
  const Place from = device_place(source, read, caller, Side::source);
  const Place to = device_place(target, written, caller, Side::target);
  const bool meet =
      from.delta < to.delta ? to.delta - from.delta < read : from.delta - to.delta < written;
  if (from.allocation == to.allocation && meet) {
    refuse({rows.count > 1 ? ROWS_OVERLAP : OVERLAP, {{"function", caller}}});
  }
  sink_copy(from, to, rows, stream);
  return cudaSuccess;
}

// Shared memory is on either side, as the direction needs it.
bool from_device_side(const void* source, cudaMemcpyKind kind) {
  const bool hosts = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost;
  return in_device_range(source) && !(sink_executes && hosts && is_managed(source));
}
bool to_device_side(const void* target, cudaMemcpyKind kind) {
  const bool hosts = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost;
  return in_device_range(target) && !(sink_executes && hosts && is_managed(target));
}

// blocking: the host waits for the device before it copies what is its own.
cudaError_t copy(void* target, const void* source, size_t bytes, cudaMemcpyKind kind, bool blocking,
                 cudaStream_t stream, const char* caller) {
  if (bytes == 0) return cudaSuccess;
  const bool from_device = from_device_side(source, kind), to_device = to_device_side(target, kind);
  check_direction(from_device, to_device, kind, caller);
  if (from_device && to_device) return copy_on_device(target, source, {bytes}, stream, caller);
  if (from_device)
    sink_read(target, device_place(source, bytes, caller, Side::source), bytes, blocking, stream);
  else if (to_device)
    sink_write(device_place(target, bytes, caller, Side::target), source, bytes, blocking, stream);
  else std::memcpy(target, source, bytes);
  return cudaSuccess;
}

cudaError_t write_symbol(const void* variable, const void* source, size_t bytes, size_t offset,
                         cudaMemcpyKind kind, bool blocking, cudaStream_t stream,
                         const char* caller) {
  Symbol& symbol = symbol_of(variable, caller);
  check_symbol_range(symbol, offset, bytes, caller);
  if (bytes == 0) return cudaSuccess;
  if (sink_executes || in_device_range(source)) {
    void* target = static_cast<char*>(address_of(symbol)) + offset;
    return copy(target, source, bytes, kind, blocking, stream, caller);
  }
  if (kind == cudaMemcpyDeviceToDevice) check_direction(false, true, kind, caller);
  sink_symbol(symbol.name, offset, source, bytes, blocking, stream);
  return cudaSuccess;
}

cudaError_t read_symbol(void* target, const void* variable, size_t bytes, size_t offset,
                        cudaMemcpyKind kind, bool blocking, cudaStream_t stream,
                        const char* caller) {
  Symbol& symbol = symbol_of(variable, caller);
  check_symbol_range(symbol, offset, bytes, caller);
  return copy(target, static_cast<char*>(address_of(symbol)) + offset, bytes, kind, blocking,
              stream, caller);
}

}  // namespace

cudaError_t copy_rows(void* target, const void* source, const Rows& rows, cudaMemcpyKind kind,
                      cudaStream_t stream, const char* caller) {
  const bool from_device = from_device_side(source, kind), to_device = to_device_side(target, kind);
  check_direction(from_device, to_device, kind, caller);
  if (from_device && to_device) return copy_on_device(target, source, rows, stream, caller);
  if (!sink_executes) refuse({ROWS_FROM_HOST, {{"function", caller}}});
  for (size_t row = 0; row < rows.count; ++row)
    copy(static_cast<char*>(target) + row * rows.target_pitch,
         static_cast<const char*>(source) + row * rows.source_pitch, rows.bytes, kind, true, stream,
         caller);
  return cudaSuccess;
}

extern "C" {

void __cudaRegisterVar(void** module, char* variable, char*, const char* name, int, size_t bytes,
                       int, int) {
  if (symbols.count(variable)) return;  // by a module that names it .extern
  symbols[variable] = {name, bytes, sink_variable(name, module_of(module), bytes)};
}

cudaError_t cudaMalloc(void** address, size_t bytes) {
  return answer(__func__, [&](const char* caller) {
    return allocate(address, bytes, false, nullptr, caller);
  });
}
cudaError_t cudaMallocAsync(void** address, size_t bytes, cudaStream_t stream) {
  return answer(__func__,
                [&](const char* caller) { return allocate(address, bytes, true, stream, caller); });
}
cudaError_t cudaFree(void* address) {
  return answer(__func__,
                [&](const char* caller) { return release(address, false, nullptr, caller); });
}
cudaError_t cudaFreeAsync(void* address, cudaStream_t stream) {
  return answer(__func__,
                [&](const char* caller) { return release(address, true, stream, caller); });
}

// Pinned memory is only more quickly copied.
cudaError_t cudaMallocHost(void** address, size_t bytes) {
  return answer(__func__, [&](const char* caller) {
    if (address == nullptr) return failed(cudaErrorInvalidValue, caller);
    if (sink_executes) return cudaMallocManaged(address, bytes, cudaMemAttachGlobal);
    *address = std::malloc(bytes);
    return *address ? cudaSuccess : failed(cudaErrorMemoryAllocation, caller);
  });
}
cudaError_t cudaHostAlloc(void** address, size_t bytes, unsigned) {
  return cudaMallocHost(address, bytes);
}
cudaError_t cudaFreeHost(void* address) {
  if (in_device_range(address)) return cudaFree(address);
  std::free(address);
  return cudaSuccess;
}
cudaError_t cudaHostRegister(void*, size_t, unsigned) { return cudaSuccess; }
cudaError_t cudaHostUnregister(void*) { return cudaSuccess; }

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total) {
  return answer(__func__, [&](const char*) {
    *total = gpu.target.memory_bytes;
    *free_bytes = gpu.target.memory_bytes - sink_workspace_bytes();
    return cudaSuccess;
  });
}

cudaError_t cudaMemset(void* address, int value, size_t bytes) {
  return answer(__func__,
                [&](const char* caller) { return fill(address, value, bytes, nullptr, caller); });
}
cudaError_t cudaMemsetAsync(void* address, int value, size_t bytes, cudaStream_t stream) {
  return answer(__func__,
                [&](const char* caller) { return fill(address, value, bytes, stream, caller); });
}

cudaError_t cudaMemcpy(void* target, const void* source, size_t bytes, cudaMemcpyKind kind) {
  return answer(__func__, [&](const char* caller) {
    return copy(target, source, bytes, kind, true, nullptr, caller);
  });
}
cudaError_t cudaMemcpyAsync(void* target, const void* source, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return answer(__func__, [&](const char* caller) {
    return copy(target, source, bytes, kind, false, stream, caller);
  });
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* source, size_t bytes, size_t offset,
                               cudaMemcpyKind kind) {
  return answer(__func__, [&](const char* caller) {
    return write_symbol(symbol, source, bytes, offset, kind, true, nullptr, caller);
  });
}
cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* source, size_t bytes,
                                    size_t offset, cudaMemcpyKind kind, cudaStream_t stream) {
  return answer(__func__, [&](const char* caller) {
    return write_symbol(symbol, source, bytes, offset, kind, false, stream, caller);
  });
}
cudaError_t cudaMemcpyFromSymbol(void* target, const void* symbol, size_t bytes, size_t offset,
                                 cudaMemcpyKind kind) {
  return answer(__func__, [&](const char* caller) {
    return read_symbol(target, symbol, bytes, offset, kind, true, nullptr, caller);
  });
}
cudaError_t cudaMemcpyFromSymbolAsync(void* target, const void* symbol, size_t bytes, size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t stream) {
  return answer(__func__, [&](const char* caller) {
    return read_symbol(target, symbol, bytes, offset, kind, false, stream, caller);
  });
}
cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  return answer(__func__, [&](const char* caller) {
    *address = address_of(symbol_of(symbol, caller));
    return cudaSuccess;
  });
}
cudaError_t cudaGetSymbolSize(size_t* bytes, const void* symbol) {
  return answer(__func__, [&](const char* caller) {
    *bytes = symbol_of(symbol, caller).bytes;
    return cudaSuccess;
  });
}
}
