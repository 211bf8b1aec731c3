__global__ void tree(volatile float* out) {
  __shared__ float part[128];
  const int t = threadIdx.x;
  part[t] = t;
  __syncthreads();
#pragma unroll 1
  for (int s = 1; s < 128; s *= 2) {
    if (t % (2 * s) == 0) part[t] += part[t + s];
    __syncthreads();
  }
  if (t == 0) out[0] = part[0];
}
__global__ void whole_warps(volatile float* out) {
  const int t = threadIdx.x;
  if (t < 64) out[t] = 1;
  else out[t] = out[t] * 2;
}
__global__ void nested(volatile float* out) {
  const int t = threadIdx.x;
  if (t % 2 == 0) {
    out[t] += 1;
    if (t % 4 == 0) out[t] += 2;
    out[t] += 3;
  }
  out[t] += 4;
}
__global__ void rounds(volatile float* out) {
  const int t = threadIdx.x;
#pragma unroll 1
  for (int i = 0; i < t % 32; ++i) out[t] += i;
  out[t] += 5;
}
__global__ void leaves(volatile float* out) {
  const int t = threadIdx.x;
  if (t >= 100) return;
  out[t] += 6;
}
__global__ void chosen(volatile float* out) {
  const int t = threadIdx.x;
  switch (t % 4) {
    case 0: out[t] += 1; break;
    case 1: out[t] *= 2; break;
    case 2: out[t] /= 3; break;
    case 3: out[t] -= 4; break;
  }
}

__global__ void waits_for_a_warp(volatile float* C) {
  __shared__ volatile int done;
  done = 0;
  __syncthreads();
  if (threadIdx.x >= 32) {
    while (!done) {
    }
    return;
  }
  float sum = 0;
#pragma unroll 1
  for (int i = 0; i < 100000; ++i) sum = sum * sum + i;
  C[threadIdx.x] = sum;
  done = 1;
}

// One lane stores, then two, and so on.
__global__ void grows(volatile float* out) {
#pragma unroll 1
  for (int lanes = 1; lanes <= 32; lanes *= 2)
    if (threadIdx.x % 32 < lanes) out[31 - threadIdx.x % 32] = 1;
}
