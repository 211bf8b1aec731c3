// The tiles, each a kernel.
#pragma once

#include <tuple>

#include "turns.cuh"

using Variants =  // BM, consumers of 64 columns of B each, room for so many pieces of C
    std::tuple<Shape<256, 2, 2>,  // 0: 256 x 128, room for half of C
               Shape<224, 2, 1>,  // 1: 224 x 128
               Shape<208, 2>,     // 2: 208 x 128
               Shape<160, 2>,     // 3: 160 x 128
               Shape<144, 2>,     // 4: 144 x 128
               Shape<128, 2>,     // 5: 128 x 128
               Shape<96, 2>,      // 6: 96 x 128
               Shape<80, 2>,      // 7: 80 x 128
               Shape<72, 2>,      // 8: 72 x 128
               Shape<192, 3, 1>,  // 9: 192 x 192, three consumers, room for a third
               Shape<176, 3, 1>,  // 10: 176 x 192
               Shape<160, 3, 1>,  // 11: 160 x 192
               Shape<144, 3, 1>,  // 12: 144 x 192
               Shape<128, 3>,     // 13: 128 x 192
               Shape<112, 3>,     // 14: 112 x 192
               Shape<80, 3>,      // 15: 80 x 192
               Shape<96, 1>,      // 16: 96 x 64, one consumer
               Shape<64, 1>,      // 17: 64 x 64
               Shape<48, 1>,      // 18: 48 x 64
               Shape<32, 1>,      // 19: 32 x 64
               Shape<16, 1>,      // 20: 16 x 64
               InTurns<192>,      // 21: 192 x 128, consumers take turns
               InTurns<176>,      // 22: 176 x 128
               InTurns<160>,      // 23: 160 x 128
               InTurns<112>>;     // 24: 112 x 128

template <int VARIANT>
using Variant = std::tuple_element_t<VARIANT, Variants>;

// 192 x 256, the largest tile whose sums fit into the registers: the larger, the less is read, from
// memory and from the L2, and what moves is power. Each consumer has 192 x 128, and both share all
// of A's tile. C has room for one half at a time.
using Wide = Shape<192, 2, 0, 2>;
