// The shapes that were thought of: the first four are used, with and without clusters, the others
// are there to be timed.
#pragma once

#include <tuple>

#include "product.cuh"

using Variants = std::tuple<  // BM, consumers of 64 columns of B each, stages, blocks of a cluster
    Shape<256, 2, 3, 2>,      // 0: 256 x 128
    Shape<128, 2, 6, 1>,      // 1: 128 x 128
    Shape<128, 1, 8, 2>,      // 2: 128 x 64, one consumer
    Shape<192, 2, 4, 2>,      // 3: 192 x 128
    Shape<256, 2, 3, 1>,      // 4: 0 without clusters
    Shape<128, 1, 8, 1>,      // 5: 2 without clusters
    Shape<192, 2, 4, 1>,      // 6: 3 without clusters
    Shape<128, 2, 6, 2>,      // 7: 1 in clusters
    Shape<64, 2, 8, 1>,       // 8: 64 x 128
    Shape<64, 2, 8, 2>,       // 9: 8 in clusters
    Shape<64, 1, 12, 1>>;     // 10: 64 x 64, one consumer
