// The shapes that were thought of: the first four are used, with and without clusters, the others
// are there to be timed.
#pragma once

#include <tuple>

#include "product.cuh"

using Variants =  // BM, consumers of 64 columns of B each, stages, blocks of a cluster
    std::tuple<Shape<256, 2, 4, 2, 1, 2>,  // 0: 256 x 128, room for half of C
               Shape<128, 2, 6, 1>,        // 1: 128 x 128
               Shape<128, 1, 8, 2>,        // 2: 128 x 64, one consumer
               Shape<192, 2, 5, 2, 1, 1>,  // 3: 192 x 128, room for a third of C
               Shape<256, 2, 4, 1, 1, 2>,  // 4: 0 without clusters
               Shape<128, 1, 8, 1>,        // 5: 2 without clusters
               Shape<192, 2, 5, 1, 1, 1>,  // 6: 3 without clusters
               Shape<128, 2, 6, 2>,        // 7: 1 in clusters
               Shape<64, 2, 8, 1>,         // 8: 64 x 128
               Shape<64, 2, 8, 2>,         // 9: 8 in clusters
               Shape<64, 1, 12, 1>>;       // 10: 64 x 64, one consumer

// 192 x 256, the largest tile whose sums fit into the registers: the larger, the less is read, from
// memory and from the L2, and what moves is power. Each consumer has 192 x 128, and both share all
// of A's tile. C has room for one half at a time.
using Wide = Shape<192, 2, 3, 2, 2>;

// 144 x 128, where it fills waves that 128 x 128 and 192 x 128 do not.
using Narrow = Shape<144, 2, 5, 2>;
