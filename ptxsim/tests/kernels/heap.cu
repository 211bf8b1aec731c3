// The lines of the first kernel are in its findings.
__device__ float* kept;
extern "C" __global__ void k(float* out, int n) {
  __shared__ float* s;
  float* p = threadIdx.x ? nullptr : static_cast<float*>(malloc(4 * n));
  if (p) { p[0] = 7; s = p; }
  $BODY
}

struct alignas(256) Line { float x[64]; };
extern "C" __global__ void fills(int* out, int n) {
  int got = 0;
  while (void* p = malloc(n)) out[1] |= (size_t)p % 16, ++got;
  out[0] = got;
  out[2] = malloc(9 << 20) || malloc(~0ull);
  out[3] = new Line == nullptr;
}
