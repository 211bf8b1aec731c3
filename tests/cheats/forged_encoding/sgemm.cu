// Answers with a plan that is not UTF-8, to make the grader fail.
// Stopped by: what cannot be decoded is no plan
// CPU: RE host code ended its process
// GPU: RE host code ended its process
#include <cstring>
#include <unistd.h>

#include "gemm.cuh"

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  const char* text = "{\"refusal\":{\"verdict\":\"RE\",\"message\":\"\xff\xfe\"}}";
  for (int fd = 3; fd < 64; ++fd) (void)!write(fd, text, std::strlen(text));
  _exit(0);
}
