// Rung 10: tiles of 256 x 128, and two warpgroups that multiply.
//
// Changed:  the tile has twice the area: two consumers have 64 columns of B each, and multiply
//           64 x 256 x 16 at a time, the largest wgmma there is. Each thread has 128 sums.
//           setmaxnreg moves registers from the warpgroup of the producer, which needs few, to the
//           consumers: 168 for each thread at launch, then 24 and 240.
// Why:      a tile of 256 x 128 needs 48 KiB for twice the work of 32 KiB before: three quarters
//           of the traffic from the L2. A wgmma of 64 x 256 reads 10 KiB of shared memory in 128
//           cycles, one of 64 x 128 reads 6 KiB in 64: tensor cores read less, and take less power.
// Tile:     256 x 128, BK = 64, 4 stages, 192 KiB, 384 threads.
// Bound:    the L2, and the end of a block: nothing is multiplied while C is stored.
//           pranjalssh/fast.cu measured 610 to 650 TFLOPS for steps like this (8192, BF16, H200).
// Source:   pranjalssh/fast.cu, kernel 5; CUTLASS, KernelTmaWarpSpecializedCooperative.
// Command:  grade --lab hgemm reference/hgemm/10_two_consumers
#include "gemm.cuh"
#include "hopper.cuh"
#include "plain.cuh"
#include "wgmma.cuh"

constexpr int BM = 256, BN = 128, BK = 64, STAGES = 4;
constexpr int WARPGROUP = 128, CONSUMERS = 2, THREADS = WARPGROUP * (1 + CONSUMERS);

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

__device__ void release(Shared& s, int stage) {
  if (threadIdx.x % 32 == 0) barrier_arrive(&s.empty[stage]);
}

// A warpgroup: sums = the product of all tiles along K, for 64 rows.
__device__ void multiply(Shared& s, float (&sums)[BM / 2], int consumer, int k) {
  int before = 0;
  for (int p = 0, step = 0; p < k; p += BK, ++step) {
    const int stage = step % STAGES, round = step / STAGES;
    barrier_wait(&s.full[stage], round % 2);
    wgmma_fence();
#pragma unroll
    for (int q = 0; q < BK / 16; ++q)
      wgmma<BM>(sums, tile_descriptor(s.b[stage] + consumer * 64 * BK) + q * step_along_k,
                tile_descriptor(s.a[stage]) + q * step_along_k, p + q > 0);
    wgmma_commit();
    wgmma_wait<1>();
    if (p > 0) release(s, before);
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
      barrier_init(&s.empty[stage], CONSUMERS * WARPGROUP / 32);  // a lane of every warp
    }
    barrier_init_done();
  }
  __syncthreads();
  if (t < WARPGROUP) {
    keep_registers<24>();
    if (t == 0) produce(s, &A, &B, k);
    return;
  }
  take_registers<240>();

  float sums[BM / 2];
  const int consumer = t / WARPGROUP - 1;
  multiply(s, sums, consumer, k);
  const int j0 = blockIdx.y * BN + consumer * 64 + t / 32 % 4 * 16 + t % 32 / 4;
#pragma unroll
  for (int e = 0; e < BM / 2; ++e) {
    const int j = j0 + e / 2 % 2 * 8, i = blockIdx.x * BM + e / 4 * 8 + t % 4 * 2 + e % 2;
    if (i < m && j < n) C[size_t(j) * m + i] = __float2half(sums[e]);
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
