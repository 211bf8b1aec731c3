// Elements that several threads read, change and write.
extern "C" __global__ void histogram(const int* in, int* out) {
  __shared__ int bins[16];
  const int t = threadIdx.x;
  if (t < 16) bins[t] = 0;
  __syncthreads();
  bins[in[t] & 15]++;
  __syncthreads();
  if (t < 16) out[t] = bins[t];
}

extern "C" __global__ void total_of_warps(const int* in, int* out) {
  if (threadIdx.x % 32 == 0) out[0] += in[threadIdx.x];
}

extern "C" __global__ void total_of_blocks(const int* in, int* out) {
  if (threadIdx.x == 0) out[0] += in[blockIdx.x];
}

// Each thread changes its own element; a barrier is missing between the rounds.
extern "C" __global__ void tree(const int* in, int* out) {
  __shared__ int sums[64];
  const int t = threadIdx.x;
  sums[t] = in[t];
  __syncthreads();
  for (int d = 32; d > 0; d /= 2)
    if (t < d) sums[t] += sums[t + d];
  if (t == 0) out[0] = sums[0];
}
