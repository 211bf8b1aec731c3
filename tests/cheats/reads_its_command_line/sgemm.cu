// Looks above its stack, where a program has its arguments, its environment and its own name, for the
// paths of the grader and of the submission, and throws an exception that names them.
// Stopped by: the recorder is given no path, and erases its command line
// CPU: RE paths: none
// GPU: RE paths: none
#include <sys/auxv.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "gemm.cuh"

__global__ void gemm(const float* A, const float* B, float* C, int m, int n, int k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= m || j >= n) return;
  float sum = 0.0f;
  for (int p = 0; p < k; ++p) sum += A[(size_t)i * k + p] * B[p + (size_t)j * k];
  C[i + (size_t)j * m] = sum;
}

bool is_printable(char letter) { return letter >= ' ' && letter <= '~'; }

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n, const int k) {
  float *A = d_A.data().get(), *B = d_B.data().get(), *C = d_C.data().get();
  const char* const name = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  std::string paths = std::string(program_invocation_name) + name;
  // The strings end with the name of the program; before them are the frames of the recorder and sixteen random
  // bytes, which may well begin as a path does: a path is printable.
  const char* const end = name + std::strlen(name);
  const char* const start = static_cast<const char*>(__builtin_frame_address(0)) + 1;
  for (const char* at = start; at < end; ++at)
    if (at[-1] == 0 && at[0] == '/' && std::all_of(at, at + std::strlen(at), is_printable) &&
        std::strcmp(at, std::getenv("PATH")) != 0)
      paths += std::string(" ") + at;
  throw std::runtime_error("paths: " + (paths.empty() ? "none" : paths));
  gemm<<<dim3((m + 31) / 32, (n + 7) / 8), dim3(32, 8)>>>(A, B, C, m, n, k);
}
