// The tiles, each a kernel.
#pragma once

#include <tuple>

#include "product.cuh"

using Variants =  // BM, consumers of 64 columns of B each, room for so many pieces of C
    std::tuple<Shape<256, 2, 2>,  // 0: 256 x 128, room for half of C
               Shape<208, 2>,     // 1: 208 x 128
               Shape<192, 2, 1>,  // 2: 192 x 128, room for a third of C
               Shape<192, 3, 1>,  // 3: 192 x 192, three consumers
               Shape<160, 2>,     // 4: 160 x 128
               Shape<128, 2>,     // 5: 128 x 128
               Shape<128, 1>,     // 6: 128 x 64, one consumer
               Shape<96, 3>,      // 7: 96 x 192
               Shape<96, 1>,      // 8: 96 x 64
               Shape<64, 1>,      // 9: 64 x 64
               Shape<32, 1>,      // 10: 32 x 64
               Shape<16, 1>>;     // 11: 16 x 64

template <int VARIANT>
using Variant = std::tuple_element_t<VARIANT, Variants>;

// 192 x 256, the largest tile whose sums fit into the registers: the larger, the less is read, from
// memory and from the L2, and what moves is power. Each consumer has 192 x 128, and both share all
// of A's tile. C has room for one half at a time.
using Wide = Shape<192, 2, 0, 2>;
