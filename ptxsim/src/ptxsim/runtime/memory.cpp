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

size_t extent(const Rows& rows, size_t pitch) { return (rows.count - 1) * pitch + rows.bytes; }

// Whether rows of one allocation meet those that begin at another place of it.
bool rows_meet(const Rows& rows, size_t from, size_t to) {
  const size_t apart = from < to ? to - from : from - to, pitch = rows.source_pitch;
  if (apart >= extent(rows, from < to ? pitch : rows.target_pitch)) return false;
  if (!sink_executes || rows.count == 1 || pitch != rows.target_pitch) return true;
  const size_t beside = apart % pitch;  // they may stand beside each other, row by row
  return beside < rows.bytes || pitch - beside < rows.bytes;
}

cudaError_t copy_on_device(void* target, const void* source, const Rows& rows, cudaStream_t stream,
                           const char* caller) {
  const Place from = device_place(source, extent(rows, rows.source_pitch), caller, Side::source);
  const Place to = device_place(target, extent(rows, rows.target_pitch), caller, Side::target);
  if (from.allocation == to.allocation && rows_meet(rows, from.delta, to.delta))
    refuse({rows.count > 1 && !sink_executes ? ROWS_OVERLAP : OVERLAP, {{"function", caller}}});
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

cudaError_t copy(void* target, const void* source, size_t bytes, cudaMemcpyKind kind, bool blocking,
                 cudaStream_t stream, const char* caller) {
  if (bytes == 0) return cudaSuccess;
  return copy_rows(target, source, {bytes}, kind, blocking, stream, caller);
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

cudaError_t copy_rows(void* target, const void* source, const Rows& given, cudaMemcpyKind kind,
                      bool blocking, cudaStream_t stream, const char* caller) {
  const bool apart = given.bytes != given.source_pitch || given.bytes != given.target_pitch;
  const Rows rows = apart ? given : Rows{given.bytes * given.count};
  const bool from_device = from_device_side(source, kind), to_device = to_device_side(target, kind);
  check_direction(from_device, to_device, kind, caller);
  if (from_device && to_device) return copy_on_device(target, source, rows, stream, caller);
  if (!sink_executes && rows.count > 1) refuse({ROWS_FROM_HOST, {{"function", caller}}});
  if (from_device) {
    const size_t read = extent(rows, rows.source_pitch);
    sink_read(target, device_place(source, read, caller, Side::source), rows, blocking, stream);
  } else if (to_device) {
    const size_t written = extent(rows, rows.target_pitch);
    sink_write(device_place(target, written, caller, Side::target), source, rows, blocking, stream);
  } else {
    copy_in_rows(target, source, rows);
  }
  return cudaSuccess;
}

cudaError_t fill(void* address, int value, const Rows& rows, cudaStream_t stream,
                 const char* caller) {
  if (!rows.bytes || !rows.count) return cudaSuccess;
  const size_t written = extent(rows, rows.target_pitch);
  sink_memset(device_place(address, written, caller, Side::target), value, rows, stream);
  return cudaSuccess;
}

void copy_in_rows(void* target, const void* source, const Rows& rows) {
  for (size_t row = 0; row < rows.count; ++row)
    std::memmove(static_cast<char*>(target) + row * rows.target_pitch,
                 static_cast<const char*>(source) + row * rows.source_pitch, rows.bytes);
}

extern "C" {

void __cudaRegisterVar(void** module, char* variable, char*, const char* name, int, size_t bytes,
                       int, int) {
  const std::lock_guard<std::recursive_mutex> alone(one_call);
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
    if (sink_executes) return cudaMallocManaged(address, bytes, cudaMemAttachHost);
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
cudaError_t cudaHostRegister(void* host, size_t bytes, unsigned) {
  return answer(__func__, [&](const char* caller) { return sink_pin(host, bytes, caller); });
}
cudaError_t cudaHostUnregister(void* host) {
  return answer(__func__, [&](const char* caller) { return sink_unpin(host, caller); });
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total) {
  return answer(__func__, [&](const char*) {
    *total = gpu.target.memory_bytes;
    *free_bytes = gpu.target.memory_bytes - sink_workspace_bytes();
    return cudaSuccess;
  });
}

cudaError_t cudaMemset(void* address, int value, size_t bytes) {
  return answer(__func__,
                [&](const char* caller) { return fill(address, value, {bytes}, nullptr, caller); });
}
cudaError_t cudaMemsetAsync(void* address, int value, size_t bytes, cudaStream_t stream) {
  return answer(__func__,
                [&](const char* caller) { return fill(address, value, {bytes}, stream, caller); });
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
