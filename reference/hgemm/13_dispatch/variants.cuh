// The shapes that were thought of: the first four are used, the others are there to be timed.
#pragma once

#include <tuple>

#include "product.cuh"

using Variants = std::tuple<    // BM, blocks of 64 columns of B for each consumer, consumers,
                                // stages, blocks of a cluster, pieces of C
    Shape<256, 1, 2, 4, 2>,     // 0: 256 x 128
    Shape<128, 1, 2, 6, 1>,     // 1: 128 x 128
    Shape<128, 1, 1, 8, 2>,     // 2: 128 x 64, one consumer
    Shape<192, 1, 2, 4, 2>,     // 3: 192 x 128
    Shape<256, 1, 2, 3, 2, 4>,  // 4: 0 with a stage less, and more pieces
    Shape<256, 1, 2, 3, 2>,     // 5: 0 with a stage less
    Shape<256, 1, 2, 4, 1>,     // 6: 0 without clusters
    Shape<128, 2, 2, 4, 2>,     // 7: 128 x 256, each wgmma of 64 x 128
    Shape<128, 2, 2, 4, 1>,     // 8: 7 without clusters
    Shape<192, 2, 2, 3, 2>,     // 9: 192 x 256
    Shape<192, 2, 2, 3, 2, 3>,  // 10: 9 with a piece more
    Shape<128, 1, 2, 6, 2>,     // 11: 1 in clusters
    Shape<64, 1, 2, 8, 1>,      // 12: 64 x 128
    Shape<64, 1, 2, 8, 2>,      // 13: 12 in clusters
    Shape<128, 1, 1, 8, 1>,     // 14: 2 without clusters
    Shape<64, 1, 1, 12, 1>>;    // 15: 64 x 64, one consumer
