// Sums that hold too much, too little, or something else.

// how: 0 right, 1 every second warp's part is missing, 2 the last element twice, 3 each block's
// first element in the place of its last, 4 squares
__global__ void sums(const float* in, float* out, int n, int how) {
  __shared__ float part[128];
  const int i = blockIdx.x * 128 + threadIdx.x;
  float mine = i < n ? in[i] : 0.0f;
  if (how == 1 && threadIdx.x / 32 % 2) mine = 0.0f;
  if (how == 2 && i == n - 1) mine *= 2.0f;
  if (how == 3 && threadIdx.x == 127 && i < n) mine = in[i - 127];
  if (how == 4) mine *= mine;
  part[threadIdx.x] = mine;
  __syncthreads();
  for (int s = 64; s > 0; s /= 2) {
    if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(out, part[0]);
}

// The mean of an element and its neighbours; off: the left one is taken from there.
__global__ void smooth(const float* in, float* out, int n, int off) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i >= n) return;
  const float left = i + off >= 0 ? in[i + off] : 0.0f, right = i + 1 < n ? in[i + 1] : 0.0f;
  out[i] = 0.25f * left + 0.5f * in[i] + 0.25f * right + 3.0f;
}
