// Rung 13: for every shape the tile that should be fastest, and no shape that TMA cannot take.
//
// Changed:  25 tiles, from 256 x 128 to 16 x 64, four of them for consumers that take turns, each
//           with a tile of its own; and one of 192 x 256. A tile may be turned: A and B change
//           places, and C is stored transposed, so that either side can be short. A cluster is up
//           to eight blocks, its lines, columns and parts chosen at the launch: a line shares the
//           tile of A, a column that of B, and parts share the steps along K, and add in shared
//           memory. A model of a few figures, the clocks of a step along K and of all that a tile
//           takes besides, says which is to end first: waves times the time of a tile. Every second
//           tile goes back along K. The L2 fetches 128 bytes for a line of a tile, not 256. Tiles
//           that do not fill the last wave can be shared by all clusters, each an even part of the
//           steps along K, and producers of large tiles keep together. Each launch begins while the
//           one before it ends, and waits before it reads. Where K is no multiple of 8, A and B are
//           first copied with longer lines; where M is none, C is copied from shared memory by
//           hand.
// Why:      1024 x 1024 is 32 tiles of 256 x 128, for 132 multiprocessors; with 96 x 128 it is 88.
//           2560 x 2560 is 200, two waves of which one is half empty: with 208 x 128 it is 260. But
//           the smaller a tile, the more the L2 has to give, 7000 bytes in a clock: with clusters
//           of 4 x 2 blocks a line of A is read half as often, one of B a fourth.
//           Small products wait for the first tile and for the last barrier. So clusters lie along
//           the axes of the grid, without divisions; the compiler knows that one thread loads; and
//           no block waits for its writes: MEMBAR.ALL.GPU takes long, and comes with
//           each cluster barrier that is not relaxed. Instead each block waits for the arrivals at
//           its own barriers, and for as many bytes of sums as will come. On an H100 that and
//           narrow tiles make products drawn at random 1.2 times as fast, 1.26 of cuBLAS's speed.
//           Large products are limited by power, and what moves is power: at 8192 an H200 has 686
//           TFLOPS, 746 if all loads find their lines in the L2, and 836 without loads. So tiles
//           are large, and begin where the lines are that were read last. At 16384 clusters that
//           drift apart read 14 GB from memory, those that keep together 7 GB. In turns the tensor
//           cores do not stand still while C is stored, but a tile of B serves one consumer. TMA
//           wants lines that begin at multiples of 16 bytes. To copy both matrices takes their size
//           twice in traffic, a fifth of the product's time at 4097, and wgmma does the rest.
// Tuning:   -DHGEMM_CHOICE=N takes one kernel for all, -DHGEMM_VARIANT=N one tile of the table in
//           variants.cuh, -DHGEMM_BAND=N sets the lines of a band, -DHGEMM_BF16 the type.
//           benchmarks/research/beside_cublas.py times them.
// Tile:     variants.cuh has all; BK = 64.
// Bound:    power where the product is large; the L2 up to 2048; the time until the first tiles
//           arrive where it is small.
// Source:   CUTLASS, sm90 tile heuristics, "pingpong" and stream-K kernels; the model is rung 32's
//           of reference/sgemm.
// Command:  grade --lab hgemm reference/hgemm/13_dispatch
#include <algorithm>
#include <iterator>
#include <utility>

#include "clocks.cuh"
#include "gemm.cuh"
#include "launches.cuh"
#include "pad.cuh"

#ifndef HGEMM_VARIANT
template <size_t... VARIANT>
Way choose(int m, int n, int k, std::index_sequence<VARIANT...>) {
  const Way each[] = {way_shared<Wide>(m, n, k), way_shared<Variant<0>>(m, n, k),
                      way<Variant<VARIANT>>(m, n, k)...};
#ifdef HGEMM_CHOICE
  const int choice = HGEMM_CHOICE;
#else
  const auto choice = std::min_element(std::begin(each), std::end(each)) - each;
#endif
  return each[choice];
}
#endif

void multiply_matrices(const Element* A, const Element* B, Element* C, int m, int n, int k) {
#ifdef HGEMM_VARIANT
  launch<Variant<HGEMM_VARIANT>>(A, B, C, m, n, k, PAIR, false);
#else
  static int last[3] = {};  // a choice takes as long as the smallest products
  static Way way;
  if (m != last[0] || n != last[1] || k != last[2]) {
    way = choose(m, n, k, std::make_index_sequence<std::tuple_size_v<Variants>>());
    last[0] = m, last[1] = n, last[2] = k;
  }
  way.launch(A, B, C, m, n, k, way.cluster, way.turned);
#endif
}

template <>
void run_custom<Element>(thrust::device_vector<Element>& d_A, thrust::device_vector<Element>& d_B,
                         thrust::device_vector<Element>& d_C, const int m, const int n,
                         const int k) {
  const Element *A = d_A.data().get(), *B = d_B.data().get();
  Element* C = d_C.data().get();
  const int padded = tiles(k, LINE_UNIT) * LINE_UNIT;
  if (padded != k) {
    Element* const copies = workspace<Element>((size_t(m) + n) * padded);
    A = padded_lines(A, copies, m, k, padded);
    B = padded_lines(B, copies + size_t(m) * padded, n, k, padded);
  }
  multiply_matrices(A, B, C, m, n, padded);
}
