// Rung 13: for every shape the tile that should be fastest, and no shape that TMA cannot take.
//
// Changed:  shapes of the same kernel, 256 x 128, 192 x 128, 144 x 128, 128 x 128 and 128 x 64, one
//           whose consumers take turns, each with a tile of its own, and one of 192 x 256. A model
//           of a few figures for each, the clocks of a step along K and of all that a tile takes
//           besides, says which is to end first: waves times the time of a tile. Every second tile
//           goes back along K. Tiles that do not fill the last wave can be shared by all clusters,
//           each an even part of the steps along K, and producers of large tiles keep together. A
//           product of one wave does without clusters. Each launch begins while the one before it
//           ends, and waits before it reads. Where K is no multiple of 8, A and B are first copied
//           with longer lines; where M is none, C is stored plainly.
// Why:      1024 x 1024 is 32 tiles of 256 x 128, for 132 multiprocessors; with 128 x 64 it is 128.
//           5120 x 5120 is 800, six waves and 8 tiles: an H100 has 655 TFLOPS with the last shared
//           evenly, and had 600 with 192 x 256, its last wave shared by halves.
//           Large products are limited by power, and what moves is power: at 8192 an H200 has 686
//           TFLOPS, 746 if all loads find their lines in the L2, and 836 without loads. So tiles
//           are large, and begin where the lines are that were read last. At 16384 clusters that
//           drift apart read 14 GB from memory, those that keep together 7 GB. In turns the tensor
//           cores do not stand still while C is stored, but a tile of B serves one consumer. A
//           fourth stage, in half of C's room, brings 3 to 6 % from 2560 to 3072. TMA wants lines
//           that begin at multiples of 16 bytes. To copy both matrices takes their size twice in
//           traffic, a fifth of the product's time at 4097, and wgmma does the rest.
// Tuning:   -DHGEMM_CHOICE=N takes one kernel for all, -DHGEMM_VARIANT=N one shape of the table in
//           variants.cuh, -DHGEMM_BAND=N sets the lines of a band, -DHGEMM_BF16 the type.
//           benchmarks/beside_cublas.py times them.
// Tile:     192 x 256, 3 stages; 256 x 128, 4; 192 x 128, 5; 144 x 128, 5; 128 x 128, 6, without
//           clusters; 128 x 64, one consumer, 8; 192 x 128 in turns, 5; clusters of 2 or none;
//           BK = 64.
// Bound:    power where the product is large; below 2048 the time until the first tiles arrive.
// Source:   CUTLASS, sm90 tile heuristics, "pingpong" and stream-K kernels; the model is rung 32's
//           of reference/sgemm.
// Command:  grade --lab hgemm reference/hgemm/13_dispatch
#include <algorithm>
#include <iterator>

#include "clocks.cuh"
#include "gemm.cuh"
#include "launches.cuh"
#include "pad.cuh"

template <int VARIANT>
using Variant = std::tuple_element_t<VARIANT, Variants>;

void multiply_matrices(const Element* A, const Element* B, Element* C, int m, int n, int k) {
#ifdef HGEMM_VARIANT
  launch<Variant<HGEMM_VARIANT>>(A, B, C, m, n, k);
#else
  const double each[] = {clocks<Variant<0>>(m, n, k),
                         clocks<Variant<1>>(m, n, k),
                         clocks<Variant<2>>(m, n, k),
                         clocks<Variant<3>>(m, n, k),
                         clocks<Narrow>(m, n, k),
                         clocks_in_turns(m, n, k),
                         clocks_wide(m, n, k),
                         clocks_shared<Wide>(m, n, k),
                         clocks_shared<Variant<0>>(m, n, k),
                         clocks_shared<Variant<5>>(m, n, k)};
#ifdef HGEMM_CHOICE
  const int choice = HGEMM_CHOICE;
#else
  const auto choice = std::min_element(std::begin(each), std::end(each)) - each;
#endif
  switch (choice) {
    case 0: return launch_alone_or_not<Variant<0>>(A, B, C, m, n, k);
    case 1: return launch_alone_or_not<Variant<1>>(A, B, C, m, n, k);
    case 2: return launch_alone_or_not<Variant<2>>(A, B, C, m, n, k);
    case 3: return launch_alone_or_not<Variant<3>>(A, B, C, m, n, k);
    case 4: return launch<Narrow>(A, B, C, m, n, k);
    case 5: return launch_in_turns(A, B, C, m, n, k);
    case 6: return launch_shared<Wide>(A, B, C, m, n, k, false);
    case 7: return launch_shared<Wide>(A, B, C, m, n, k, true);
    case 8: return launch_shared<Variant<0>>(A, B, C, m, n, k, true);
    default: return launch_shared<Variant<5>>(A, B, C, m, n, k, true);
  }
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
