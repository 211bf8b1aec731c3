// Rung 06: three parts of BF16, and the six of their nine products that count.
//
// Changed:  a number is the sum of three BF16 numbers of 8 bits each. Of the nine products of parts
//           those whose places add up to three or more are below 2^-24 of the whole.
// Why:      tensor cores multiply BF16 twice as fast as TF32, so six products take as long as three
//           of TF32. BF16 has the exponents of FP32: a number's parts are exact from 2^-102 up,
//           and 24 bits stay, where two TF32 parts keep 22 and a rounding.
// Tile:     128 x 256, BK = 32 in lines of 64 bytes, three parts, 3 stages of 72 KiB.
// Bound:    a sixth of the BF16 peak.
// Source:   Henry, Tang, Heinecke, "Leveraging the bfloat16 Artificial Intelligence Datatype For
//           Higher-Precision Computations", 2019.
// Command:  grade --lab sgemm-tensor reference/sgemm-tensor/06_six_bf16
#include <cuda_bf16.h>

#include "gemm.cuh"
#include "product.cuh"
#include "workspace.cuh"

using BF16 = Split<__nv_bfloat16, 3, 3, 64, 3>;

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
