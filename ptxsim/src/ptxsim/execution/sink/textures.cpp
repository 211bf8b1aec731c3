// Texture and surface objects. A handle is the address of what the engine reads, a Texture.
#include <cstring>

#include "sink.hpp"

namespace {

using u8 = uint8_t;
using u32 = uint32_t;
using u64 = uint64_t;
struct Texture { TEXTURE_FIELDS };  // the engine's

// What an object was made of.
struct Made {
  cudaResourceDesc resource;
  cudaTextureDesc texture;
};
std::map<u64, Made> objects;

constexpr size_t ALIGNMENT = 512, PITCH_ALIGNMENT = 32, MOST_TEXELS = 1 << 30;

void describe(Texture& t, const cudaChannelFormatDesc& desc, const char* caller) {
  t.magic = TEXTURE_MAGIC;
  t.channels = u8(channels_of(desc, caller));
  t.element = u8(desc.x / 8);
  t.type = desc.f == cudaChannelFormatKindFloat ? 2 : desc.f == cudaChannelFormatKindSigned;
  for (auto& extent : t.extents) extent = 1;
}

void use_array(Texture& t, cudaArray_const_t handle, const char* caller) {
  const Array& array = array_of(handle, caller);
  const bool layered = array.flags & cudaArrayLayered;
  describe(t, array.desc, caller);
  t.address = reinterpret_cast<u64>(array.memory);
  t.pitch = u32(array.extents[0] * array.texel_bytes());
  t.dimensions = u8(1 + (array.extent.height > 0) + (array.extent.depth > 0 && !layered));
  t.layers = layered ? u32(array.extents[2]) : 0;
  for (int axis = 0; axis < t.dimensions; ++axis) t.extents[axis] = u32(array.extents[axis]);
}

void use_memory(Texture& t, const void* memory, size_t width, size_t height, size_t pitch,
                const char* caller) {
  Place place;
  const size_t texel = size_t(t.channels) * t.element;
  const size_t bytes = height ? (height - 1) * pitch + width * texel : width * texel;
  if (!width || width > MOST_TEXELS || height > MOST_TEXELS || pitch > UINT32_MAX)
    throw CallFailed{failed(cudaErrorInvalidValue, caller)};
  if (reinterpret_cast<u64>(memory) % ALIGNMENT || pitch % (height ? PITCH_ALIGNMENT : 1))
    refuse({TEXTURE_MISALIGNED, {{"function", caller}}});
  if (!sink_find(memory, bytes, place))
    refuse({SOURCE_OUTSIDE, {{"function", caller}, {"bytes", bytes}}});
  t.address = reinterpret_cast<u64>(memory);
  t.dimensions = height ? 2 : 1;
  t.extents[0] = u32(width);
  t.extents[1] = height ? u32(height) : 1;
  t.pitch = u32(pitch);
}

void use_resource(Texture& t, const cudaResourceDesc& r, const char* caller) {
  if (r.resType == cudaResourceTypeArray) {
    use_array(t, r.res.array.array, caller);
  } else if (r.resType == cudaResourceTypeLinear) {
    const auto& [memory, desc, bytes] = r.res.linear;
    describe(t, desc, caller);
    use_memory(t, memory, bytes / (size_t(t.channels) * t.element), 0, 0, caller);
  } else if (r.resType == cudaResourceTypePitch2D) {
    const auto& [memory, desc, width, height, pitch] = r.res.pitch2D;
    describe(t, desc, caller);
    use_memory(t, memory, width, std::max<size_t>(height, 1), pitch, caller);
  } else {
    refuse({NOT_SIMULATED, {{"function", caller}, {"what", "a mipmapped array"}}});
  }
}

void sample_as(Texture& t, const cudaResourceDesc& r, const cudaTextureDesc& d,
               const char* caller) {
  bool border = false;
  for (int axis = 0; axis < 3; ++axis) {
    const bool used = axis < t.dimensions, bordered = d.addressMode[axis] == cudaAddressModeBorder;
    if (used && d.addressMode[axis] > cudaAddressModeBorder)
      throw CallFailed{failed(cudaErrorInvalidValue, caller)};
    t.modes[axis] = used || bordered ? u8(d.addressMode[axis]) : u8(cudaAddressModeClamp);
    border |= used && bordered;
  }
  const bool coloured = std::any_of(d.borderColor, d.borderColor + 4, [](float c) { return c; });
  if (d.sRGB || (border && coloured))
    refuse({NOT_SIMULATED, {{"function", caller}, {"what", "sRGB or a border that is not 0"}}});
  t.reads_normalized = d.readMode == cudaReadModeNormalizedFloat && t.type != 2;
  if (t.reads_normalized && t.element == 4) throw CallFailed{failed(cudaErrorInvalidValue, caller)};
  if (r.resType == cudaResourceTypeLinear) return;  // which has no filter and no address modes
  t.linear = d.filterMode == cudaFilterModeLinear;
  t.normalized = d.normalizedCoords != 0;
  if (t.linear && t.type != 2 && !t.reads_normalized)
    refuse({FILTERS_INTEGERS, {{"function", caller}}});
}

u64 make_object(const Texture& t, const Made& made) {
  Place place;
  void* const memory = sink_allocate_workspace(sizeof t, false, nullptr);
  if (sink_find(memory, sizeof t, place)) put(place, &t, {sizeof t});
  const u64 handle = reinterpret_cast<u64>(memory);
  objects[handle] = made;
  return handle;
}

Made& made_of(u64 handle, const char* caller) {
  const auto found = objects.find(handle);
  if (found == objects.end()) refuse({NOT_AN_OBJECT, {{"function", caller}}});
  return found->second;
}

cudaError_t destroy(u64 handle, const char* caller) {
  if (!handle) return cudaSuccess;
  made_of(handle, caller);
  objects.erase(handle);
  return cudaFree(reinterpret_cast<void*>(handle));
}

}  // namespace

extern "C" {

cudaError_t cudaCreateTextureObject(cudaTextureObject_t* made, const cudaResourceDesc* resource,
                                    const cudaTextureDesc* texture,
                                    const cudaResourceViewDesc* view) {
  return answer(__func__, [&](const char* caller) {
    if (view) refuse({NOT_SIMULATED, {{"function", caller}, {"what", "a resource view"}}});
    Texture t{};
    use_resource(t, *resource, caller);
    sample_as(t, *resource, *texture, caller);
    *made = make_object(t, {*resource, *texture});
    return cudaSuccess;
  });
}
RUNTIME(cudaDestroyTextureObject, (cudaTextureObject_t handle), destroy(handle, caller))
RUNTIME(cudaGetTextureObjectResourceDesc, (cudaResourceDesc * desc, cudaTextureObject_t handle),
        give(desc, made_of(handle, caller).resource))
RUNTIME(cudaGetTextureObjectTextureDesc, (cudaTextureDesc * desc, cudaTextureObject_t handle),
        give(desc, made_of(handle, caller).texture))

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* made, const cudaResourceDesc* resource) {
  return answer(__func__, [&](const char* caller) {
    if (resource->resType != cudaResourceTypeArray) return failed(cudaErrorInvalidValue, caller);
    Texture t{};
    use_resource(t, *resource, caller);
    t.surface = 1;
    *made = make_object(t, {*resource, {}});
    return cudaSuccess;
  });
}
RUNTIME(cudaDestroySurfaceObject, (cudaSurfaceObject_t handle), destroy(handle, caller))
RUNTIME(cudaGetSurfaceObjectResourceDesc, (cudaResourceDesc * desc, cudaSurfaceObject_t handle),
        give(desc, made_of(handle, caller).resource))
}
