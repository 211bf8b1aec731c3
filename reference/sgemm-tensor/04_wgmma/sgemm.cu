// Rung 04: three products of TF32 by wgmma, from matrices that a kernel before has split.
//
// Changed:  a kernel of its own writes both parts of every number to a workspace, once. The product
//           then is what Hopper does best: TMA loads tiles of parts into a ring, and two
//           warpgroups multiply them from shared memory by wgmma, while blocks stay from tile to
//           tile (reference/hgemm, rungs 8 to 12). Sums are promoted every 32 values of k: one
//           warpgroup adds while the other multiplies.
// Why:      rung 03 splits every number once for each warp that reads it, in each block two times
//           those of A and four times those of B, and mma.sync reaches two thirds of the tensor
//           cores' rate on Hopper. The split costs 12 bytes of traffic for each number.
// Tile:     128 x 256, BK = 32, two parts, 2 stages of 96 KiB; 64 x 128 of partial sums and 128 x
//           128 of sums in the registers of a warpgroup, 240 for each thread.
// Bound:    a third of the TF32 peak.
// Command:  grade --lab sgemm-tensor reference/sgemm-tensor/04_wgmma
#include "gemm.cuh"
#include "product.cuh"
#include "workspace.cuh"

using TF32 = Split<float, 2, 2, 128, 2>;

// `x` with the 10 bits of a TF32 number's fraction; halves are rounded away from zero.
__device__ float round_to_tf32(float x) {
  return __uint_as_float((__float_as_uint(x) + 0x1000) & 0xffffe000);
}

// A block splits one line of A, or after the last of A one of B, of k numbers to `length`.
__global__ void split(const float* A, const float* B, float* a, float* b, int m, int n, int k,
                      int length) {
  const bool of_a = blockIdx.x < m;
  const int line = of_a ? blockIdx.x : blockIdx.x - m;
  const float* from = (of_a ? A : B) + size_t(line) * k;
  float* const high = (of_a ? a : b) + size_t(line) * length;
  float* const low = high + size_t(of_a ? m : n) * length;
  for (int p = threadIdx.x; p < length; p += blockDim.x) {
    const float x = p < k ? from[p] : 0.0f;
    high[p] = round_to_tf32(x);
    low[p] = x - high[p];  // of 12 bits: wgmma takes 11
  }
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n, const int k) {
  const int length = (k + 3) / 4 * 4;
  float* const a = workspace<float>(2 * (size_t(m) + n) * length);
  float* const b = a + 2 * size_t(m) * length;
  split<<<m + n, 256>>>(d_A.data().get(), d_B.data().get(), a, b, m, n, k, length);
  launch_product<TF32>(a, b, d_C.data().get(), m, n, length);
}
