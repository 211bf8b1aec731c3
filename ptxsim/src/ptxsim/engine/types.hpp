// Numbers by their width and lanes.
#pragma once

#include <cstdint>

namespace sim {

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using i8 = int8_t;
using i16 = int16_t;
using i32 = int32_t;
using i64 = int64_t;

constexpr int LANES = 32;
constexpr u32 ALL = 0xffffffffu;

// Generic addresses: the top byte names the space; global addresses have it zero.
constexpr u64 SHARED_WINDOW = u64{1} << 56;
constexpr u64 LOCAL_WINDOW = u64{2} << 56;
constexpr u64 OFFSET_MASK = (u64{1} << 56) - 1;

// Whether the bytes [offset, offset + bytes) lie within [0, size). Nothing here can wrap, whatever
// the numbers: offsets come from the program and may be anything.
constexpr bool within(u64 offset, u64 bytes, u64 size) {
  return bytes <= size && offset <= size - bytes;
}
constexpr bool within(u64 address, u64 bytes, u64 start, u64 size) {
  return address >= start && within(address - start, bytes, size);
}

struct Dim { u32 x, y, z; };

}  // namespace sim
