// One call of run_custom as it was recorded, made by C++: the launches, and what the host does
// between them, cost what they cost a program that calls the CUDA runtime itself.
//
// calling.py writes the steps and mirrors the records below. The driver is opened by name, so that
// this compiles without it.
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tensor_map.hpp"

namespace {

using u64 = uint64_t;
using i64 = int64_t;

enum Kind : u64 { LAUNCH, MEMSET, COPY, WRITE, ALLOCATE, FREE, SYNCHRONISE };

// Eight bytes of a step's data: an address that is known only when the step before it has run.
struct Patch {
  u64 offset, allocation;
  i64 delta;
};

struct Step {
  u64 kind;
  u64 function;           // LAUNCH
  u64 shared_bytes;       // LAUNCH
  u64 grid[3], block[3];  // LAUNCH
  u64 cluster[3];         // LAUNCH: blocks
  unsigned char* data;    // LAUNCH: parameters; WRITE: what is written
  u64 size;               // of data, or of what is filled, copied or allocated: bytes
  const u64* arguments;   // LAUNCH: where each parameter begins in data
  u64 argument_count;
  const Patch* patches;  // of data
  u64 patch_count;
  i64 target_delta, source_delta;
  u64 target, source;                    // allocations: indices into the table of addresses
  u64 rows, source_pitch, target_pitch;  // COPY: rows of `size`, bytes from each to the next
  u64 value;                             // MEMSET
  // LAUNCH: cooperative; ALLOCATE and FREE: ordered in the stream; WRITE: the host waits first
  u64 flag;
  u64 programmatic;  // LAUNCH: may begin before the one before it has ended
  u64 maps;          // whether data holds tensor maps, in the encoding of our own
};

constexpr int NOT_SUPPORTED = 801;  // CUDA_ERROR_NOT_SUPPORTED

using Stream = void*;
using Event = void*;

// CUlaunchAttribute and CUlaunchConfig, as CUDA 11.8 introduced them.
struct Attribute {
  unsigned id, pad;
  int value[16];  // a union of 64 bytes
};
constexpr unsigned COOPERATIVE = 2, CLUSTER = 4, PROGRAMMATIC = 6;
struct Config {
  unsigned grid[3], block[3], shared;
  Stream stream;
  Attribute* attributes;
  unsigned count;
};

// CUDA_MEMCPY2D
struct Place {
  size_t x, y;
  int type;
  const void* host;
  u64 device;
  void* array;
  size_t pitch;
};
constexpr int ON_DEVICE = 2;  // CU_MEMORYTYPE_DEVICE
struct Rows {
  Place source, target;
  size_t bytes, count;
};

struct Driver {
  int (*launch)(u64, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream,
                void**, void**);
  int (*launch_with)(const Config*, u64, void**, void**);
  int (*fill)(u64, unsigned char, size_t, Stream);
  int (*copy)(u64, u64, size_t, Stream);
  int (*copy_rows)(const Rows*, Stream);
  int (*write)(u64, const void*, size_t, Stream);
  int (*allocate)(u64*, size_t);
  int (*allocate_ordered)(u64*, size_t, Stream);
  int (*free)(u64);
  int (*free_ordered)(u64, Stream);
  int (*wait_for_stream)(Stream);
  int (*wait)();
  int (*record)(Event, Stream);
  // cuTensorMapEncodeTiled; null before CUDA 12
  int (*encode)(void*, int, unsigned, void*, const u64*, const u64*, const unsigned*,
                const unsigned*, int, int, int, int);
} driver;

template <typename Function> bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// The driver's own map in place of ours.
int encode(const sim::TensorMap& map, unsigned char* to) {
  if (!driver.encode) return NOT_SUPPORTED;
  unsigned box[sim::MOST_DIMENSIONS], steps[sim::MOST_DIMENSIONS];
  u64 extents[sim::MOST_DIMENSIONS], strides[sim::MOST_DIMENSIONS];
  for (unsigned d = 0; d < sim::MOST_DIMENSIONS; ++d) {
    box[d] = map.box[d];
    steps[d] = map.steps[d];
    extents[d] = map.extents[d];
    strides[d] = map.strides[d];
  }
  alignas(64) unsigned char made[sim::TENSOR_MAP_BYTES];
  const int error =
      driver.encode(made, map.type, map.rank, reinterpret_cast<void*>(map.address), extents,
                    strides + 1, box, steps, 0, map.swizzle, map.promotion, map.fills_nan);
  if (!error) std::memcpy(to, made, sizeof made);
  return error;
}

// The data with the driver's maps. Maps lie at multiples of 64 of the parameters or the variable.
int with_maps(const Step& s, std::vector<unsigned char>& data) {
  data.assign(s.data, s.data + s.size);
  const u64 first = s.kind == WRITE ? u64(-s.target_delta) % 64 : 0;
  for (u64 at = first; at < s.size && s.size - at >= sim::TENSOR_MAP_BYTES; at += 64) {
    sim::TensorMap map;
    std::memcpy(static_cast<void*>(&map), s.data + at, sizeof map);
    if (!map.sound()) continue;
    if (const int error = encode(map, data.data() + at)) return error;
  }
  return 0;
}

// Each parameter is passed by itself: in a block the driver expects the places of the machine code,
// where a tensor map lies at a multiple of 128 of the constant bank and not of the parameters.
int launch(const Step& s, unsigned char* data, Stream stream) {
  std::vector<void*> parameters;
  parameters.reserve(s.argument_count);
  for (u64 i = 0; i < s.argument_count; ++i) parameters.push_back(data + s.arguments[i]);
  const bool clusters = s.cluster[0] * s.cluster[1] * s.cluster[2] > 1;
  if (s.flag || s.programmatic || clusters) {
    Attribute attributes[3];
    unsigned count = 0;
    if (s.flag) attributes[count++] = {COOPERATIVE, 0, {1}};
    if (s.programmatic) attributes[count++] = {PROGRAMMATIC, 0, {1}};
    if (clusters)
      attributes[count++] = {CLUSTER, 0, {int(s.cluster[0]), int(s.cluster[1]), int(s.cluster[2])}};
    const Config config = {{unsigned(s.grid[0]), unsigned(s.grid[1]), unsigned(s.grid[2])},
                           {unsigned(s.block[0]), unsigned(s.block[1]), unsigned(s.block[2])},
                           unsigned(s.shared_bytes),
                           stream,
                           attributes,
                           count};
    return driver.launch_with(&config, s.function, parameters.data(), nullptr);
  }
  return driver.launch(s.function, unsigned(s.grid[0]), unsigned(s.grid[1]), unsigned(s.grid[2]),
                       unsigned(s.block[0]), unsigned(s.block[1]), unsigned(s.block[2]),
                       unsigned(s.shared_bytes), stream, parameters.data(), nullptr);
}

int copy(const Step& s, u64 target, u64 source, Stream stream) {
  if (s.rows == 1) return driver.copy(target, source, s.size, stream);
  const Rows rows = {{0, 0, ON_DEVICE, nullptr, source, nullptr, s.source_pitch},
                     {0, 0, ON_DEVICE, nullptr, target, nullptr, s.target_pitch},
                     s.size,
                     s.rows};
  return driver.copy_rows(&rows, stream);
}

int run(const Step& s, u64* addresses, Stream stream) {
  for (u64 i = 0; i < s.patch_count; ++i) {
    const Patch& patch = s.patches[i];
    const u64 address = addresses[patch.allocation] + u64(patch.delta);
    std::memcpy(s.data + patch.offset, &address, sizeof address);
  }
  unsigned char* data = s.data;
  std::vector<unsigned char> mapped;
  if (s.maps) {
    if (const int error = with_maps(s, mapped)) return error;
    data = mapped.data();
  }
  const u64 target = addresses[s.target] + u64(s.target_delta);
  switch (s.kind) {
    case LAUNCH: return launch(s, data, stream);
    case MEMSET: return driver.fill(target, static_cast<unsigned char>(s.value), s.size, stream);
    case COPY: return copy(s, target, addresses[s.source] + u64(s.source_delta), stream);
    case WRITE:
      if (s.flag)
        if (const int error = driver.wait_for_stream(stream)) return error;
      return driver.write(target, data, s.size, stream);
    case ALLOCATE:
      return s.flag ? driver.allocate_ordered(&addresses[s.target], s.size, stream)
                    : driver.allocate(&addresses[s.target], s.size);
    case FREE: {
      const u64 address = addresses[s.target];
      addresses[s.target] = 0;
      return s.flag ? driver.free_ordered(address, stream) : driver.free(address);
    }
    case SYNCHRONISE: return driver.wait();
    default: return -1;
  }
}

}  // namespace

extern "C" {

// Whether the driver library has everything.
int calling_open(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) find(library, "cuTensorMapEncodeTiled", driver.encode);
  return library != nullptr && find(library, "cuLaunchKernel", driver.launch) &&
         find(library, "cuLaunchKernelEx", driver.launch_with) &&
         find(library, "cuMemsetD8Async", driver.fill) &&
         find(library, "cuMemcpyDtoDAsync_v2", driver.copy) &&
         find(library, "cuMemcpy2DAsync_v2", driver.copy_rows) &&
         find(library, "cuMemcpyHtoDAsync_v2", driver.write) &&
         find(library, "cuMemAlloc_v2", driver.allocate) &&
         find(library, "cuMemAllocAsync", driver.allocate_ordered) &&
         find(library, "cuMemFree_v2", driver.free) &&
         find(library, "cuMemFreeAsync", driver.free_ordered) &&
         find(library, "cuStreamSynchronize", driver.wait_for_stream) &&
         find(library, "cuCtxSynchronize", driver.wait) &&
         find(library, "cuEventRecord", driver.record);
}

size_t calling_step_bytes() { return sizeof(Step); }
size_t calling_patch_bytes() { return sizeof(Patch); }

// Runs the steps between two events, either of which may be null. Returns a CUresult; `done` is
// how many steps succeeded. `addresses` holds those of all allocations; the steps fill in and
// clear those of what they allocate and free.
int calling_run(const Step* steps, size_t count, u64* addresses, Stream stream, Event start,
                Event end, size_t* done) {
  *done = 0;
  if (start != nullptr)
    if (const int error = driver.record(start, stream)) return error;
  for (; *done < count; ++*done)
    if (const int error = run(steps[*done], addresses, stream)) return error;
  return end != nullptr ? driver.record(end, stream) : 0;
}

int calling_allocate(u64* address, size_t bytes) { return driver.allocate(address, bytes); }
int calling_free(u64 address) { return driver.free(address); }

}  // extern "C"
