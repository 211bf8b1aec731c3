// The shapes that were thought of: the first three are used, the others are there to be timed.
#pragma once

#include <tuple>

#include "product.cuh"

using Variants = std::tuple<     // BM, blocks of 64 columns of B for each consumer, consumers,
                                 // stages, blocks of a cluster, pieces of C
    Shape<256, 1, 2, 3, 2, 4>,   // 0: 256 x 128
    Shape<128, 1, 2, 6, 1>,      // 1: 128 x 128
    Shape<64, 1, 2, 8, 1>,       // 2: 64 x 128
    Shape<256, 1, 2, 4, 2>,      // 3: 0 with a stage more, and fewer pieces
    Shape<256, 1, 2, 3, 4, 4>,   // 4: 0 in clusters of four
    Shape<256, 1, 2, 4, 4>,      // 5: 3 in clusters of four
    Shape<128, 2, 2, 3, 2, 4>,   // 6: 128 x 256, each wgmma of 64 x 128
    Shape<192, 2, 2, 3, 2>,      // 7: 192 x 256
    Shape<192, 2, 2, 3, 2, 3>,   // 8: 7 with a piece more
    Shape<192, 1, 2, 4, 2>,      // 9: 192 x 128
    Shape<128, 1, 2, 6, 2>,      // 10: 1 in clusters
    Shape<64, 1, 2, 8, 2>,       // 11: 2 in clusters
    Shape<128, 1, 1, 8, 1>,      // 12: 128 x 64, one consumer
    Shape<128, 1, 1, 8, 2>,      // 13: 12 in clusters
    Shape<64, 1, 1, 12, 1>,      // 14: 64 x 64, one consumer
    Shape<256, 1, 2, 3, 1, 4>>;  // 15: 0 without clusters
