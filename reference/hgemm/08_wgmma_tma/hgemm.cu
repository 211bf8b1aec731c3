// Rung 08: tiles by TMA, products by wgmma: the two instructions that make Hopper.
//
// Changed:  a warpgroup, 128 threads, multiplies 64 x 128 x 16 with one instruction, and takes both
//           tiles straight from shared memory: no ldmatrix, no fragments in registers. One thread
//           asks TMA for a whole tile, by a tensor map that the host made, and the tile arrives
//           swizzled as wgmma reads it. An mbarrier counts the bytes that have arrived.
// Why:      mma.sync keeps no more than about 62 % of this GPU's tensor cores busy; only wgmma
//           reaches their peak. Loads cost no registers and hardly an instruction, and edges cost
//           nothing: what lies outside a matrix arrives as zero, and still counts.
// Roles:    C is column-major, so it is C^T = B^T * A^T that is computed, row-major: columns of B
//           are the rows of the product. Pairs of sums then lie side by side in C.
// Tile:     128 x 128, BK = 64 (a line of 128 bytes, one swizzle), 32 KiB, 128 threads.
// Bound:    the L2, for tiles of 128 x 128. A block waits while a tile is on its way, but three
//           blocks fit a multiprocessor (154 registers a thread), and others multiply meanwhile.
//           pranjalssh/fast.cu, whose second kernel is this step, measured 300 TFLOPS at 8192 in
//           BF16 on an H200; cuBLAS reached 795.
// Source:   pranjalssh/fast.cu, "Outperforming cuBLAS on H100" (2024); NVIDIA, PTX ISA,
//           "Asynchronous Warpgroup Level Matrix Instructions".
// Command:  grade --lab hgemm reference/hgemm/08_wgmma_tma
#include "gemm.cuh"
#include "hopper.cuh"
#include "plain.cuh"
#include "wgmma.cuh"

constexpr int BM = 128, BN = 128, BK = 64, THREADS = 128;

// maps: A as m lines of k, B as n lines of k
__global__ void __launch_bounds__(THREADS)
    hgemm(const __grid_constant__ CUtensorMap A, const __grid_constant__ CUtensorMap B, __half* C,
          int m, int n, int k) {
  __shared__ alignas(1024) __half a[BM * BK], b[BN * BK];
  __shared__ Barrier arrived;
  const int t = threadIdx.x, i0 = blockIdx.x * BM, j0 = blockIdx.y * BN;
  if (t == 0) {
    barrier_init(&arrived, 1);
    barrier_init_done();
  }
  __syncthreads();

  float sums[2][BM / 2];  // two products of 64 rows
  for (int p = 0, step = 0; p < k; p += BK, ++step) {
    if (t == 0) {
      barrier_expect(&arrived, sizeof a + sizeof b);
      tma_load(a, &A, p, i0, &arrived);
      tma_load(b, &B, p, j0, &arrived);
    }
    barrier_wait(&arrived, step % 2);
    wgmma_fence();
#pragma unroll
    for (int q = 0; q < BK / 16; ++q)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        wgmma<BM>(sums[half], tile_descriptor(b + half * 64 * BK) + q * step_along_k,
                  tile_descriptor(a) + q * step_along_k, p + q > 0);
    wgmma_commit();
    wgmma_wait<0>();
    __syncthreads();  // before the tiles are overwritten
  }

  const int row = t / 32 * 16 + t % 32 / 4, column = t % 4 * 2;
#pragma unroll
  for (int half = 0; half < 2; ++half)
#pragma unroll
    for (int e = 0; e < BM / 2; ++e) {
      const int j = j0 + half * 64 + row + e / 2 % 2 * 8, i = i0 + e / 4 * 8 + column + e % 2;
      if (i < m && j < n) C[size_t(j) * m + i] = __float2half(sums[half][e]);
    }
}

template <>
void run_custom<__half>(thrust::device_vector<__half>& d_A, thrust::device_vector<__half>& d_B,
                        thrust::device_vector<__half>& d_C, const int m, const int n, const int k) {
  const __half *A = d_A.data().get(), *B = d_B.data().get();
  __half* C = d_C.data().get();
  if (k % 8) return launch_plain(A, B, C, m, n, k);
  const dim3 grid((m + BM - 1) / BM, (n + BN - 1) / BN);
  hgemm<<<grid, THREADS>>>(tensor_map(A, m, k, BM), tensor_map(B, n, k, BN), C, m, n, k);
}
