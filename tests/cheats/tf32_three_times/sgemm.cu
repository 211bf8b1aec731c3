// Splits each FP32 number into two TF32 numbers and multiplies three times on tensor cores: as
// exact as FP32, and forbidden.
// Stopped by: tensor-core instructions are found in PTX and in SASS
// CPU: RF tensor
// GPU: RF tensor
#include "gemm.cuh"

__device__ unsigned tf32(float x) { return __float_as_uint(x) & 0xffffe000u; }

__device__ void multiply(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// One warp for a 16 x 8 tile of C.
__global__ void gemm(const float* A, const float* B, float* C, int m, int n, int k) {
  const int lane = threadIdx.x, row = blockIdx.x * 16 + lane / 4, column = blockIdx.y * 8 + lane / 4;
  float c[4] = {};
  for (int p = 0; p < k; p += 8) {
    float a[4], b[2];
    for (int u = 0; u < 4; ++u) {
      const int i = row + u % 2 * 8, q = p + lane % 4 + u / 2 * 4;
      a[u] = i < m && q < k ? A[(size_t)i * k + q] : 0.0f;
    }
    for (int u = 0; u < 2; ++u) {
      const int q = p + lane % 4 + u * 4;
      b[u] = column < n && q < k ? B[q + (size_t)column * k] : 0.0f;
    }
    unsigned high_a[4], low_a[4], high_b[2], low_b[2];
    for (int u = 0; u < 4; ++u) {
      high_a[u] = tf32(a[u]);
      low_a[u] = tf32(a[u] - __uint_as_float(high_a[u]));
    }
    for (int u = 0; u < 2; ++u) {
      high_b[u] = tf32(b[u]);
      low_b[u] = tf32(b[u] - __uint_as_float(high_b[u]));
    }
    multiply(c, low_a, high_b);
    multiply(c, high_a, low_b);
    multiply(c, high_a, high_b);
  }
  for (int u = 0; u < 4; ++u) {
    const int i = row + u / 2 * 8, j = blockIdx.y * 8 + lane % 4 * 2 + u % 2;
    if (i < m && j < n) C[i + (size_t)j * m] = c[u];
  }
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  float *A = d_A.data().get(), *B = d_B.data().get(), *C = d_C.data().get();
  gemm<<<dim3((m + 15) / 16, (n + 7) / 8), 32>>>(A, B, C, m, n, k);
}
