// Tensor maps: what cuTensorMapEncodeTiled makes in host code and TMA instructions read.
//
// NVIDIA does not document its 128 bytes, so these are our own. Whoever stands in for the driver
// (tensor_maps.py, runtime/tensor_map.cpp) encodes with `encode`, which has that call's conditions.
#pragma once

#include <cstdint>
#include <cstring>

namespace sim {

constexpr uint64_t TENSOR_MAP_MAGIC = 0x70616d726f736e74;
constexpr uint32_t TENSOR_MAP_BYTES = 128, MOST_DIMENSIONS = 5;

// As CUtensorMapDataType numbers them.
constexpr uint8_t ELEMENT_BYTES[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
constexpr uint32_t ELEMENT_TYPES = sizeof ELEMENT_BYTES;
constexpr bool is_floating(uint32_t type) { return type >= 6; }
constexpr bool is_tf32(uint32_t type) { return type >= 11; }

constexpr uint32_t SPANS[] = {0, 32, 64, 128};  // bytes, by swizzle

struct TensorMap {
  uint64_t magic = TENSOR_MAP_MAGIC;
  uint64_t address = 0;
  uint64_t strides[MOST_DIMENSIONS] = {};  // bytes; the first is that of an element
  uint64_t extents[MOST_DIMENSIONS] = {};  // elements; what is not there is 1
  uint16_t box[MOST_DIMENSIONS] = {};      // elements, before the element strides
  uint8_t steps[MOST_DIMENSIONS] = {};     // element strides
  uint8_t rank = 0, type = 0, swizzle = 0, fills_nan = 0, promotion = 0;

  uint32_t element() const { return ELEMENT_BYTES[type]; }
  // Elements of a box along a dimension, as they lie in shared memory.
  uint32_t count(uint32_t dimension) const {
    return (box[dimension] + steps[dimension] - 1u) / steps[dimension];
  }
  uint32_t row_bytes() const { return count(0) * element(); }
  // From a row of the box to the next in shared memory: a swizzle gives each row its whole span.
  uint32_t pitch() const { return swizzle ? SPANS[swizzle] : row_bytes(); }
  uint64_t box_bytes() const {  // up to 2^43, more than any block has
    uint64_t bytes = element();
    for (uint32_t d = 0; d < rank; ++d) bytes *= count(d);
    return bytes;
  }
  // Whether these bytes, which may come from anywhere, are a map that can be used.
  bool sound() const {
    if (magic != TENSOR_MAP_MAGIC || !rank || rank > MOST_DIMENSIONS || type >= ELEMENT_TYPES ||
        swizzle > 3 || address % 16)
      return false;
    for (uint32_t d = 0; d < MOST_DIMENSIONS; ++d)
      if (!box[d] || box[d] > 256 || !steps[d] || steps[d] > 8 || !extents[d] ||
          extents[d] > uint64_t{1} << 32 || strides[d] >= uint64_t{1} << 40)
        return false;
    return row_bytes() % 16 == 0 && steps[0] == 1 && row_bytes() <= pitch();
  }
};
static_assert(sizeof(TensorMap) <= TENSOR_MAP_BYTES);

// What cuTensorMapEncodeTiled is given; `strides` has rank - 1 entries.
struct TensorMapRequest {
  uint32_t type, rank;
  uint64_t address;
  const uint64_t *extents, *strides;
  const uint32_t *box, *steps;
  uint32_t interleave, swizzle, promotion, fill;
};

// Writes the map, or returns why there is none; null when it did.
inline const char* encode(const TensorMapRequest& from, TensorMap& to) {
  if (from.type >= ELEMENT_TYPES) return "the data type is none of CUtensorMapDataType";
  if (!from.rank || from.rank > MOST_DIMENSIONS) return "tensorRank must be 1 to 5";
  if (!from.extents || (from.rank > 1 && !from.strides) || !from.box || !from.steps)
    return "globalDim, globalStrides, boxDim or elementStrides is null";
  if (from.interleave) return "only CU_TENSOR_MAP_INTERLEAVE_NONE is supported";
  if (from.swizzle > 3) return "only swizzles of 32, 64 and 128 bytes are supported";
  if (from.promotion > 3 || from.fill > 1) return "l2Promotion or oobFill has no such value";
  if (!from.address || from.address % 16) return "globalAddress must be a multiple of 16";
  if (from.fill && !is_floating(from.type))
    return "oobFill is NaN, but the data type is not of floating point";
  TensorMap map;
  map.address = from.address;
  map.rank = uint8_t(from.rank);
  map.type = uint8_t(from.type);
  map.swizzle = uint8_t(from.swizzle);
  map.fills_nan = uint8_t(from.fill);
  map.promotion = uint8_t(from.promotion);
  for (uint32_t d = 0; d < MOST_DIMENSIONS; ++d) {
    const bool there = d < from.rank;
    if (there && (!from.extents[d] || from.extents[d] > uint64_t{1} << 32))
      return "every globalDim must be 1 to 2^32";
    if (there && (!from.box[d] || from.box[d] > 256)) return "every boxDim must be 1 to 256";
    if (there && (!from.steps[d] || from.steps[d] > 8)) return "every elementStride must be 1 to 8";
    if (there && d && (from.strides[d - 1] % 16 || from.strides[d - 1] >= uint64_t{1} << 40))
      return "every globalStride must be a multiple of 16 bytes and less than 2^40";
    map.extents[d] = there ? from.extents[d] : 1;
    map.box[d] = there ? uint16_t(from.box[d]) : uint16_t(1);
    // Without interleaving the first element stride is ignored.
    map.steps[d] = there && d ? uint8_t(from.steps[d]) : uint8_t(1);
    map.strides[d] = !d ? map.element() : there ? from.strides[d - 1] : 0;
  }
  const uint32_t inner = from.box[0] * map.element();
  if (inner % 16) return "boxDim[0] must be a multiple of 16 bytes";
  if (from.swizzle && inner > SPANS[from.swizzle])
    return "boxDim[0] in bytes must not exceed the span of the swizzle (32, 64 or 128)";
  to = map;
  return nullptr;
}

// Where 16 bytes that belong at `address` lie: swizzling exchanges the quads of 16 bytes within
// each 32, 64 or 128 bytes, by the address's bits from 128 bytes on.
constexpr uint32_t swizzled(uint32_t address, uint32_t bits) {
  return address ^ (address >> 3 & ((1u << bits) - 1) << 4);
}

}  // namespace sim
