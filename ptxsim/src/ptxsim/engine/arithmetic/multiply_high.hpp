#pragma once

#include "../types.hpp"

namespace sim {

using i128 = __int128;
using u128 = unsigned __int128;

// The upper half of a product.
inline u32 multiply_high(u32 a, u32 b) { return u64(a) * b >> 32; }
inline i32 multiply_high(i32 a, i32 b) { return i64(a) * b >> 32; }
inline u64 multiply_high(u64 a, u64 b) { return u128(a) * b >> 64; }
inline i64 multiply_high(i64 a, i64 b) { return i128(a) * b >> 64; }
inline u16 multiply_high(u16 a, u16 b) { return u32(a) * b >> 16; }
inline i16 multiply_high(i16 a, i16 b) { return i32(a) * b >> 16; }

}  // namespace sim
