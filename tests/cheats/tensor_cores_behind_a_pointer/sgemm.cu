// Jumps, at sizes that a simulator would never try, through a pointer into a kernel that nobody
// launches and that uses tensor cores. Both kernels have the same parameters.
// Stopped by: the scan covers every launched kernel, and the whole module if one calls through a
// pointer
// CPU: AC
// GPU: RF tensor
#include "gemm.cuh"

__device__ unsigned tf32(float x) { return __float_as_uint(x) & 0xffffe000u; }

// One warp for a 16 x 8 tile of C.
__global__ void never_launched(const float* A, const float* B, float* C, int m, int n, int k) {
  const int lane = threadIdx.x, row = blockIdx.x * 16 + lane / 4, column = blockIdx.y * 8 + lane / 4;
  float c[4] = {};
  for (int p = 0; p < k; p += 8) {
    unsigned a[4], b[2];
    for (int u = 0; u < 4; ++u) {
      const int i = row + u % 2 * 8, q = p + lane % 4 + u / 2 * 4;
      a[u] = tf32(i < m && q < k ? A[(size_t)i * k + q] : 0.0f);
    }
    for (int u = 0; u < 2; ++u) {
      const int q = p + lane % 4 + u * 4;
      b[u] = tf32(column < n && q < k ? B[q + (size_t)column * k] : 0.0f);
    }
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
  for (int u = 0; u < 4; ++u) {
    const int i = row + u / 2 * 8, j = blockIdx.y * 8 + lane % 4 * 2 + u % 2;
    if (i < m && j < n) C[i + (size_t)j * m] = c[u];
  }
}

__global__ void jumps(const float* A, const float* B, float* C, int m, int n, int k) {
  using Kernel = void (*)(const float*, const float*, float*, int, int, int);
  auto target = reinterpret_cast<Kernel>(reinterpret_cast<void*>(never_launched));
  asm volatile("" : "+l"(target));
  target(A, B, C, m, n, k);
}

__global__ void plain(const float* A, const float* B, float* C, int m, int n, int k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= m || j >= n) return;
  float sum = 0.0f;
  for (int p = 0; p < k; ++p) sum += A[(size_t)i * k + p] * B[p + (size_t)j * k];
  C[i + (size_t)j * m] = sum;
}

template <>
void run_custom<float>(thrust::device_vector<float>& A, thrust::device_vector<float>& B,
                       thrust::device_vector<float>& C, const int m, const int n, const int k) {
  const float *a = A.data().get(), *b = B.data().get();
  float* c = C.data().get();
  if (m * (size_t)n * k < 1u << 24) {
    plain<<<dim3((m + 15) / 16, (n + 15) / 16), dim3(16, 16)>>>(a, b, c, m, n, k);
  } else {
    jumps<<<dim3((m + 15) / 16, (n + 7) / 8), 32>>>(a, b, c, m, n, k);
  }
}
