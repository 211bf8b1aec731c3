// Local arrays and variables whose mistakes nvcc optimises away: table local_arrays.txt.
struct Padded {
  char c;
  int i;
  double d;
};
struct Mixed {
  int first;
  float middle[4];
  int last;
};

__device__ __noinline__ Padded padded(int i) {
  Padded made;
  made.c = i;
  made.i = i;
  return made;
}
__device__ __noinline__ float total(const float* from, int count) {
  float sum = 0;
  for (int i = 0; i < count; ++i) sum += from[i];
  return sum;
}
__device__ __noinline__ float half_of(float4 v) { return v.x + v.y; }
__device__ bool never() { return false; }

__global__ void between(const float* x, float* y, int n) {
  float a[4], b[2];
  double c[5];
  for (int i = 0; i < 5; ++i) c[i] = x[i];
  for (int i = 0; i < n; ++i) b[i] = x[i];
  for (int i = 0; i < 4; ++i) a[i] = b[i & 1] + c[i];
  y[threadIdx.x] = a[n & 3];
}

__global__ void halves(const float* x, float* y, int n) {
  short a[6], b[6];
  for (int i = 0; i < 6; ++i) a[i] = b[i] = x[i];
  y[threadIdx.x] = a[n] + b[0];
}

__global__ void pointers(const float* x, float* y, int n) {
  float a[4], b[4];
  Mixed s;
  for (float& v : a) v = x[n];
  for (float* p = b; p != b + 4; ++p) *p = x[n + 1];
  for (float& v : s.middle) v = 1;
  s.middle[n & 3] = 2;
  s.last = 1;
  y[threadIdx.x] = total(&a[2], 2) + total(&b[2], 2) + total(s.middle + 2, n) + s.last;
}

__global__ void copies(const float* x, float* y, int n) {
  float some[4], all[4];
  for (int i = 0; i < n; ++i) some[i] = x[i];
  for (int i = 0; i < 4; ++i) all[i] = some[i];
  const Padded p = padded(n), q = p;
  float4 v;
  v.x = all[0];
  v.y = 2;
  const float4 u = v;
  y[threadIdx.x] = all[1] + q.i + half_of(u);
}

__global__ void sums(const float* x, float* y, int n) {
  float sum[4];
  for (int k = 0; k < n; ++k)
    for (int i = 0; i < 4; ++i) sum[i] += x[k * 4 + i];
  y[threadIdx.x] = n ? sum[threadIdx.x & 3] : 0;
}

__global__ void stage(const float* x, float* y, int n) {
  __shared__ float s[2][32];
  int stage;
  s[0][threadIdx.x] = x[threadIdx.x];
  for (int i = 1; i < n; ++i) {
    stage = i & 1;
    s[stage][threadIdx.x] = x[threadIdx.x];
  }
  __syncthreads();
  y[threadIdx.x] = s[stage][31 - threadIdx.x];
}

__global__ void not_simulated(const float* x, float* y, int n) {
  if (never()) asm volatile("tcgen05.wait::ld.sync.aligned;");
  y[threadIdx.x] = x[n];
}
