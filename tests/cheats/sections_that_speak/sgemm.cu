// Sections with a meaning for linkers: warnings that claim a missing interface, options, libraries
// to load, an interpreter, an executable stack.
// Stopped by: no decision depends on the linker's messages
// CPU: AC
// GPU: AC no gain
#include "gemm.cuh"

asm(R"(.section .gnu.warning.sgemm_grader_entry,"",@progbits
.string "undefined reference to `_Z10run_customIfEvRN6thrust13device_vectorIT_EES4_S4_iii'"
.section .gnu.warning.cudaFree,"",@progbits
.string "\nnvcc fatal   : no room\n/usr/bin/ld: final link failed: No space left on device"
.section .drectve,"",@progbits
.ascii "-plugin ./evil.so -T ./evil.ld -rpath ."
.section .deplibs,"MS",@progbits,1
.string "libcublas.so"
.section .interp,"a",@progbits
.string "./evil"
.section .gnu.linkonce.t.sgemm_grader_entry,"ax",@progbits
ret
.section .note.GNU-stack,"x",@progbits
.text
)");
__attribute__((section(".fini_array"), used)) static void* nothing[] = {nullptr};

__global__ void gemm(const float* A, const float* B, float* C, int m, int n, int k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= m || j >= n) return;
  float sum = 0.0f;
  for (int p = 0; p < k; ++p) sum += A[(size_t)i * k + p] * B[p + (size_t)j * k];
  C[i + (size_t)j * m] = sum;
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  float *A = d_A.data().get(), *B = d_B.data().get(), *C = d_C.data().get();
  gemm<<<dim3((m + 31) / 32, (n + 7) / 8), dim3(32, 8)>>>(A, B, C, m, n, k);
}
