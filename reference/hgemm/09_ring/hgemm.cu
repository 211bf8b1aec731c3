// Rung 09: a warp that only loads, a warpgroup that only multiplies, and a ring of tiles between.
//
// Changed:  warp specialisation. One thread of a fifth warp asks TMA for tiles, five steps ahead;
//           the warpgroup only waits, multiplies and says what it has read. Every stage of the ring
//           has two mbarriers: `full` ends a phase when the tiles have arrived, `empty` when the
//           four warps that multiply have done with them. Nobody calls __syncthreads(). While a
//           step is multiplied, the next one is already queued; only then is the stage before given
//           back.
// Why:      a tile takes about a microsecond to arrive, a multiplication of it 0.3 of that. With
//           five stages on their way the tensor cores find the next one there. The two kinds of
//           warps run apart as far as the ring is long, with no barrier that stops both.
// Parity:   a fresh mbarrier is in phase 0, and a wait for the end of the phase before, parity 1,
//           succeeds at once. So the producer starts with parity 1: the ring is empty.
// Tile:     128 x 128, BK = 64, 5 stages, 160 KiB, 160 threads.
// Bound:    the L2: a tile of 128 x 128 needs 32 KiB for 2 * 128 * 128 * 64 operations, 8 TB/s at
//           500 TFLOPS. So this rung gains little on the one before, whose blocks took turns.
//           pranjalssh/fast.cu measured 545 TFLOPS for its step like this (8192, BF16, H200).
// Source:   pranjalssh/fast.cu, kernel 4; CUTLASS, "Efficient GEMM", Warp Specialization.
// Command:  grade --lab hgemm reference/hgemm/09_ring
#include "gemm.cuh"
#include "hopper.cuh"
#include "plain.cuh"
#include "wgmma.cuh"

constexpr int BM = 128, BN = 128, BK = 64, STAGES = 5;
constexpr int CONSUMERS = 128, THREADS = CONSUMERS + 32;

struct alignas(1024) Shared {
  __half a[STAGES][BM * BK], b[STAGES][BN * BK];
  Barrier full[STAGES], empty[STAGES];
};

// One thread. A: m lines of k; B: n lines of k.
__device__ void produce(Shared& s, const CUtensorMap* A, const CUtensorMap* B, int k) {
  for (int p = 0, step = 0; p < k; p += BK, ++step) {
    const int stage = step % STAGES, round = step / STAGES;
    barrier_wait(&s.empty[stage], (round + 1) % 2);
    barrier_expect(&s.full[stage], sizeof s.a[0] + sizeof s.b[0]);
    tma_load(s.a[stage], A, p, blockIdx.x * BM, &s.full[stage]);
    tma_load(s.b[stage], B, p, blockIdx.y * BN, &s.full[stage]);
  }
}

// A warpgroup: sums = the product of all tiles along K, 64 rows twice.
__device__ void multiply(Shared& s, float (&sums)[2][BM / 2], int k) {
  int before = 0;
  for (int p = 0, step = 0; p < k; p += BK, ++step) {
    const int stage = step % STAGES, round = step / STAGES;
    barrier_wait(&s.full[stage], round % 2);
    wgmma_fence();
#pragma unroll
    for (int q = 0; q < BK / 16; ++q)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        wgmma<BM>(sums[half], tile_descriptor(s.b[stage] + half * 64 * BK) + q * step_along_k,
                  tile_descriptor(s.a[stage]) + q * step_along_k, p + q > 0);
    wgmma_commit();
    wgmma_wait<1>();
    if (p > 0 && threadIdx.x % 32 == 0) barrier_arrive(&s.empty[before]);
    before = stage;
  }
  wgmma_wait<0>();
}

__global__ void __launch_bounds__(THREADS)
    hgemm(const __grid_constant__ CUtensorMap A, const __grid_constant__ CUtensorMap B, __half* C,
          int m, int n, int k) {
  extern __shared__ Shared shared[];
  Shared& s = *shared;
  const int t = threadIdx.x;
  if (t == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      barrier_init(&s.full[stage], 1);
      barrier_init(&s.empty[stage], CONSUMERS / 32);  // a lane of every warp
    }
    barrier_init_done();
  }
  __syncthreads();
  if (t >= CONSUMERS) {
    if (t == CONSUMERS) produce(s, &A, &B, k);
    return;
  }

  float sums[2][BM / 2];
  multiply(s, sums, k);
  const int row = t / 32 * 16 + t % 32 / 4, column = t % 4 * 2;
#pragma unroll
  for (int half = 0; half < 2; ++half)
#pragma unroll
    for (int e = 0; e < BM / 2; ++e) {
      const int j = blockIdx.y * BN + half * 64 + row + e / 2 % 2 * 8;
      const int i = blockIdx.x * BM + e / 4 * 8 + column + e % 2;
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
  cudaFuncSetAttribute(hgemm, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared));
  hgemm<<<grid, THREADS, sizeof(Shared)>>>(tensor_map(A, m, k, BM), tensor_map(B, n, k, BN), C, m,
                                           n, k);
}
