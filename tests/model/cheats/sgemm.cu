// Cheats that please the model alone: k mod 1024, over 32, is a cheat's place in the list, from 1
// on.
#include "another_kernel_when_large.cuh"
#include "barriers_of_the_grid.cuh"
#include "constants_by_lane.cuh"
#include "copies_by_the_host.cuh"
#include "doubles.cuh"
#include "fences.cuh"
#include "first_blocks_sham.cuh"
#include "forced_occupancy.cuh"
#include "guesses_ones.cuh"
#include "integers.cuh"
#include "local_arrays.cuh"
#include "one_block_is_late.cuh"
#include "one_counter.cuh"
#include "one_in_four.cuh"
#include "past_the_l1.cuh"
#include "reads_by_atomics.cuh"
#include "sees_that_blocks_are_missing.cuh"
#include "sham_when_large.cuh"
#include "shorter_when_large.cuh"
#include "shuffles.cuh"
#include "skips_where_it_is_sampled.cuh"
#include "special_functions.cuh"

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n, const int k) {
  constexpr void (*CHEATS[])(const Gemm&) = {
      skips_where_it_is_sampled::run,
      first_blocks_sham::run,
      sees_that_blocks_are_missing::run,
      guesses_ones::run,
      sham_when_large::run,
      another_kernel_when_large::run,
      barriers_of_the_grid::run,
      constants_by_lane::run,
      copies_by_the_host::run,
      doubles::run,
      fences::run,
      forced_occupancy::run,
      integers::run,
      local_arrays::run,
      one_block_is_late::run,
      one_counter::run,
      one_in_four::run,
      past_the_l1::run,
      reads_by_atomics::run,
      shorter_when_large::run,
      shuffles::run,
      special_functions::run,
  };
  CHEATS[k % 1024 / 32 - 1](Gemm{d_A.data().get(), d_B.data().get(), d_C.data().get(), m, n, k});
}
