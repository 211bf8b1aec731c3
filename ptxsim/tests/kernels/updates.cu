// What to change: elements that several threads read, change and write; missing barriers; loops.
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

// A barrier is missing; the last kernel lacks none.
extern "C" __global__ void reads_too_early(const int* in, int* out) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  for (int i = 0; i < in[3]; ++i) {
    s[t] = in[t] + i;  // STORED
    atomicAdd(out, s[63 - t]);  // LOADED
    __syncthreads();
  }
}

extern "C" __global__ void overwrites_too_early(const int* in, int* out) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  for (int i = 0; i < in[3]; ++i) {
    s[t] = in[t] + i;  // NEXT
    __syncthreads();
    atomicAdd(out, s[63 - t]);  // LAST
  }
}

extern "C" __global__ void waits_twice(const int* in, int* out) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  for (int i = 0; i < in[3]; ++i) {
    s[t] = in[t] + i;
    __syncthreads();
    atomicAdd(out, s[63 - t]);
    __syncthreads();
  }
}

// No place in the branch is one to which all threads come.
extern "C" __global__ void within_a_branch(const int* in, int* out) {
  __shared__ int s[48];
  const int t = threadIdx.x;
  if (t < 48) {
    s[t] = in[t];
    atomicAdd(out, s[47 - t]);
  }
}

extern "C" __global__ void spins_on_a_plain_load(const int* in, int* out) {
  if (threadIdx.x == 0) {
    atomicAdd(out, 1);
    while (*out < gridDim.x) {}
  }
}

extern "C" __global__ void spins_on_a_volatile_load(const int* in, int* out) {
  if (threadIdx.x == 0) {
    atomicAdd(out, 1);
    while (*(volatile int*)out < gridDim.x) {}
  }
}

extern "C" __global__ void never_ends(const int* in, int* out) {
  for (int i = 0; i < in[3]; i += in[0]) out[i + threadIdx.x] = 1;
}
