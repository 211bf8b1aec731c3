// Rung 07 (a trap): all nine products of three BF16 parts.
//
// Changed:  DEPTH is 5, so that no product of parts is left out.
// Why:      cuBLAS's emulation of FP32 on Blackwell is called BF16x9. The three products more are
//           below 2^-24 of the whole: on Hopper they bring no digit that a sum in FP32 could hold,
//           and cost half as much time again.
// Tile:     as rung 06.
// Bound:    a ninth of the BF16 peak.
// Source:   NVIDIA, cuBLAS documentation, "Floating Point Emulation".
// Command:  grade --lab sgemm-tensor reference/sgemm-tensor/07_nine_bf16
#include <cuda_bf16.h>

#include "gemm.cuh"
#include "product.cuh"
#include "workspace.cuh"

using BF16 = Split<__nv_bfloat16, 3, 5, 64, 3>;

// A block splits one line of A, or after the last of A one of B, of k numbers to `length`.
__global__ void split(const float* A, const float* B, __nv_bfloat16* a, __nv_bfloat16* b, int m,
                      int n, int k, int length) {
  const bool of_a = blockIdx.x < m;
  const int line = of_a ? blockIdx.x : blockIdx.x - m;
  const float* from = (of_a ? A : B) + size_t(line) * k;
  __nv_bfloat16* const to = (of_a ? a : b) + size_t(line) * length;
  const size_t apart = size_t(of_a ? m : n) * length;  // one part from the next
  for (int p = threadIdx.x; p < length; p += blockDim.x) {
    float rest = p < k ? from[p] : 0.0f;
#pragma unroll
    for (int part = 0; part < BF16::PARTS; ++part) {
      const __nv_bfloat16 most = __float2bfloat16(rest);
      to[part * apart + p] = most;
      rest -= __bfloat162float(most);
    }
  }
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n, const int k) {
  const int length = (k + 7) / 8 * 8;
  __nv_bfloat16* const a = workspace<__nv_bfloat16>(BF16::PARTS * (size_t(m) + n) * length);
  __nv_bfloat16* const b = a + BF16::PARTS * size_t(m) * length;
  split<<<m + n, 256>>>(d_A.data().get(), d_B.data().get(), a, b, m, n, k, length);
  launch_product<BF16>(a, b, d_C.data().get(), m, n, length);
}
