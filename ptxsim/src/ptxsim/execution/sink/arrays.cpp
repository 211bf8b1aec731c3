// CUDA arrays, which lie in device memory row behind row, and copies in three dimensions, which
// have them or pitched memory on either side.
#include <algorithm>
#include <cstring>

#include "sink.hpp"

namespace {

std::map<cudaArray_const_t, Array> arrays;
constexpr size_t MOST_EXTENT = 1 << 17;  // elements

// One side of a copy. rows: from one plane to the next.
struct Volume {
  char* start;
  size_t pitch, rows;
};

// wide: of what is copied, in bytes, as the place's x is.
Volume inside(cudaArray_const_t handle, cudaPos at, size_t wide, cudaExtent extent,
              const char* caller) {
  const Array& array = array_of(handle, caller);
  const size_t pitch = array.extents[0] * array.texel_bytes();
  const auto beyond = [](size_t from, size_t more, size_t most) {
    return from > most || more > most - from;
  };
  if (beyond(at.x, wide, pitch) || beyond(at.y, extent.height, array.extents[1]) ||
      beyond(at.z, extent.depth, array.extents[2]))
    refuse({OUTSIDE_ARRAY,
            {{"function", caller},
             {"extent", dim3(array.extents[0], array.extents[1], array.extents[2])}}});
  return {array.memory + (at.z * array.extents[1] + at.y) * pitch + at.x, pitch, array.extents[1]};
}

Volume inside(const cudaPitchedPtr& memory, cudaPos at, size_t wide, const char* caller) {
  if (at.x + wide > memory.pitch)
    refuse({WRONG_PITCH, {{"function", caller}, {"width", wide}, {"pitch", memory.pitch}}});
  const size_t first = (at.z * memory.ysize + at.y) * memory.pitch + at.x;
  return {static_cast<char*>(memory.ptr) + first, memory.pitch, memory.ysize};
}

// blocking, stream: as of any copy.
struct Manner {
  cudaMemcpyKind kind;
  bool blocking;
  cudaStream_t stream;
};

cudaError_t copy_volume(const Volume& to, const Volume& from, size_t wide, cudaExtent extent,
                        const Manner& how, const char* caller) {
  if (!wide || !extent.height || !extent.depth) return cudaSuccess;
  const bool one = from.rows == extent.height && to.rows == extent.height &&
                   extent.height * extent.depth <= MAX_ROWS;
  const Rows rows{wide, one ? extent.height * extent.depth : extent.height, from.pitch, to.pitch};
  for (size_t z = 0; z < (one ? 1 : extent.depth); ++z)
    copy_rows(to.start + z * to.rows * to.pitch, from.start + z * from.rows * from.pitch, rows,
              how.kind, how.blocking, how.stream, caller);
  return cudaSuccess;
}

// Parameters of cudaMemcpy3D or cudaMemcpy3DPeer. Where an array takes part, the extent counts its
// elements, as do places in it.
template <class Parameters>
cudaError_t copy_3d(const Parameters& p, const Manner& how, const char* caller) {
  const size_t to = p.dstArray ? array_of(p.dstArray, caller).texel_bytes() : 1;
  const size_t from = p.srcArray ? array_of(p.srcArray, caller).texel_bytes() : 1;
  const size_t wide = p.extent.width * std::max(to, from);
  const cudaPos at{p.dstPos.x * to, p.dstPos.y, p.dstPos.z};
  const cudaPos begin{p.srcPos.x * from, p.srcPos.y, p.srcPos.z};
  return copy_volume(p.dstArray ? inside(p.dstArray, at, wide, p.extent, caller)
                                : inside(p.dstPtr, at, wide, caller),
                     p.srcArray ? inside(p.srcArray, begin, wide, p.extent, caller)
                                : inside(p.srcPtr, begin, wide, caller),
                     wide, p.extent, how, caller);
}

cudaPitchedPtr pitched(const void* memory, size_t pitch, size_t height) {
  return {const_cast<void*>(memory), pitch, pitch, height};
}

cudaError_t to_array(cudaArray_t array, cudaPos at, const void* source, size_t pitch,
                     cudaExtent extent, const Manner& how, const char* caller) {
  return copy_volume(inside(array, at, extent.width, extent, caller),
                     inside(pitched(source, pitch, extent.height), {}, extent.width, caller),
                     extent.width, extent, how, caller);
}

cudaError_t from_array(void* target, size_t pitch, cudaArray_const_t array, cudaPos at,
                       cudaExtent extent, const Manner& how, const char* caller) {
  return copy_volume(inside(pitched(target, pitch, extent.height), {}, extent.width, caller),
                     inside(array, at, extent.width, extent, caller), extent.width, extent, how,
                     caller);
}

// Where so many bytes from a place on lie, which may go on in the next rows.
char* run_of(cudaArray_const_t handle, size_t x, size_t y, size_t bytes, const char* caller) {
  const Array& array = array_of(handle, caller);
  const size_t pitch = array.extents[0] * array.texel_bytes(), first = y * pitch + x;
  const size_t whole = pitch * array.extents[1];
  if (first > whole || bytes > whole - first)
    refuse({OUTSIDE_ARRAY,
            {{"function", caller}, {"extent", dim3(array.extents[0], array.extents[1], 1)}}});
  return array.memory + first;
}

}  // namespace

size_t channels_of(const cudaChannelFormatDesc& desc, const char* caller) {
  const int bits[] = {desc.x, desc.y, desc.z, desc.w};
  const size_t count = size_t(std::find(bits, bits + 4, 0) - bits);
  const bool equal = std::all_of(bits, bits + count, [&](int each) { return each == desc.x; });
  const bool rest = std::all_of(bits + count, bits + 4, [](int each) { return each == 0; });
  if ((desc.x != 8 && desc.x != 16 && desc.x != 32) || !equal || !rest || count == 3 ||
      desc.f > cudaChannelFormatKindFloat || (desc.f == cudaChannelFormatKindFloat && desc.x == 8))
    refuse({BAD_CHANNELS, {{"function", caller}}});
  return count;
}

size_t Array::texel_bytes() const { return size_t(desc.x + desc.y + desc.z + desc.w) / 8; }

const Array& array_of(cudaArray_const_t handle, const char* caller) {
  const auto found = arrays.find(handle);
  if (found == arrays.end()) refuse({NOT_AN_OBJECT, {{"function", caller}}});
  return found->second;
}

extern "C" {

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind f) {
  return {x, y, z, w, f};
}

cudaError_t cudaMalloc3DArray(cudaArray_t* made, const cudaChannelFormatDesc* desc,
                              cudaExtent extent, unsigned flags) {
  return answer(__func__, [&](const char* caller) {
    if (!made || !extent.width) return failed(cudaErrorInvalidValue, caller);
    channels_of(*desc, caller);
    if (flags & (cudaArrayCubemap | cudaArraySparse))
      refuse({NOT_SIMULATED, {{"function", caller}, {"what", "a cube map or a sparse array"}}});
    Array array{*desc, extent, flags, {extent.width, 1, 1}, nullptr};
    if (extent.height) array.extents[1] = extent.height;
    if (extent.depth) array.extents[2] = extent.depth;
    const size_t row = array.extents[0] * array.texel_bytes();
    if (array.extents[1] > MOST_EXTENT || array.extents[2] > MOST_EXTENT || row > MOST_EXTENT * 16)
      return failed(cudaErrorInvalidValue, caller);
    void* memory = nullptr;
    const cudaError_t error = cudaMalloc(&memory, row * array.extents[1] * array.extents[2]);
    if (error != cudaSuccess) return error;
    array.memory = static_cast<char*>(memory);
    *made = static_cast<cudaArray_t>(memory);  // which is no address for host code
    arrays[*made] = array;
    return cudaSuccess;
  });
}
cudaError_t cudaMallocArray(cudaArray_t* made, const cudaChannelFormatDesc* desc, size_t width,
                            size_t height, unsigned flags) {
  return cudaMalloc3DArray(made, desc, {width, height, 0}, flags);
}
cudaError_t cudaFreeArray(cudaArray_t array) {
  return answer(__func__, [&](const char* caller) {
    if (!array) return cudaSuccess;
    void* const memory = array_of(array, caller).memory;
    arrays.erase(array);
    return cudaFree(memory);
  });
}
cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* desc, cudaExtent* extent, unsigned* flags,
                             cudaArray_t handle) {
  return answer(__func__, [&](const char* caller) {
    const Array& array = array_of(handle, caller);
    give(desc, array.desc), give(extent, array.extent), give(flags, array.flags);
    return cudaSuccess;
  });
}
RUNTIME(cudaGetChannelDesc, (cudaChannelFormatDesc * desc, cudaArray_const_t array),
        give(desc, array_of(array, caller).desc))

// --- copies of volumes
RUNTIME(cudaMemcpy3D, (const cudaMemcpy3DParms* p), copy_3d(*p, {p->kind, true, nullptr}, caller))
RUNTIME(cudaMemcpy3DAsync, (const cudaMemcpy3DParms* p, cudaStream_t stream),
        copy_3d(*p, {p->kind, false, stream}, caller))
RUNTIME(cudaMemcpy3DPeer, (const cudaMemcpy3DPeerParms* p),
        copy_3d(*p, {cudaMemcpyDefault, true, nullptr}, caller))

// --- copies of rectangles
RUNTIME(cudaMemcpy2DToArrayAsync,
        (cudaArray_t array, size_t x, size_t y, const void* source, size_t pitch, size_t width,
         size_t height, cudaMemcpyKind kind, cudaStream_t stream),
        to_array(array, {x, y, 0}, source, pitch, {width, height, 1}, {kind, false, stream},
                 "cudaMemcpy2DToArray"))
cudaError_t cudaMemcpy2DToArray(cudaArray_t array, size_t x, size_t y, const void* source,
                                size_t pitch, size_t width, size_t height, cudaMemcpyKind kind) {
  return cudaMemcpy2DToArrayAsync(array, x, y, source, pitch, width, height, kind, nullptr);
}
RUNTIME(cudaMemcpy2DFromArrayAsync,
        (void* target, size_t pitch, cudaArray_const_t array, size_t x, size_t y, size_t width,
         size_t height, cudaMemcpyKind kind, cudaStream_t stream),
        from_array(target, pitch, array, {x, y, 0}, {width, height, 1}, {kind, false, stream},
                   "cudaMemcpy2DFromArray"))
cudaError_t cudaMemcpy2DFromArray(void* target, size_t pitch, cudaArray_const_t array, size_t x,
                                  size_t y, size_t width, size_t height, cudaMemcpyKind kind) {
  return cudaMemcpy2DFromArrayAsync(target, pitch, array, x, y, width, height, kind, nullptr);
}
RUNTIME(cudaMemcpy2DArrayToArray,
        (cudaArray_t target, size_t to_x, size_t to_y, cudaArray_const_t source, size_t x, size_t y,
         size_t width, size_t height, cudaMemcpyKind kind),
        copy_volume(inside(target, {to_x, to_y, 0}, width, {width, height, 1}, caller),
                    inside(source, {x, y, 0}, width, {width, height, 1}, caller), width,
                    {width, height, 1}, {kind, true, nullptr}, caller))

// --- copies of so many bytes, row after row
RUNTIME(cudaMemcpyToArray,
        (cudaArray_t array, size_t x, size_t y, const void* source, size_t bytes,
         cudaMemcpyKind kind),
        cudaMemcpy(run_of(array, x, y, bytes, caller), source, bytes, kind))
RUNTIME(cudaMemcpyFromArray,
        (void* target, cudaArray_const_t array, size_t x, size_t y, size_t bytes,
         cudaMemcpyKind kind),
        cudaMemcpy(target, run_of(array, x, y, bytes, caller), bytes, kind))

// --- pitched memory
cudaError_t cudaMalloc3D(cudaPitchedPtr* made, cudaExtent extent) {
  size_t pitch = 0;
  void* address = nullptr;
  const cudaError_t error =
      cudaMallocPitch(&address, &pitch, extent.width, extent.height * extent.depth);
  if (error) return error;
  return give(made, {address, pitch, extent.width, extent.height});
}
cudaError_t cudaMemset3DAsync(cudaPitchedPtr to, int value, cudaExtent extent,
                              cudaStream_t stream) {
  return answer("cudaMemset3D", [&](const char* caller) {
    const Volume volume = inside(to, {}, extent.width, caller);
    for (size_t z = 0; z < extent.depth; ++z)
      fill(volume.start + z * volume.rows * volume.pitch, value,
           {extent.width, extent.height, volume.pitch, volume.pitch}, stream, caller);
    return cudaSuccess;
  });
}
cudaError_t cudaMemset3D(cudaPitchedPtr to, int value, cudaExtent extent) {
  return cudaMemset3DAsync(to, value, extent, nullptr);
}
}
