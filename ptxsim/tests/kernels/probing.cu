// Kernels of launches that are too large to simulate. A line with WRONG leaves its memory.
#include <cooperative_groups.h>
#include <cuda_pipeline.h>

__device__ float At[1 << 16], Behind[1 << 20];
__device__ int Count, Offsets[1 << 20];
__constant__ int Stride = 1 << 20;

#define ROW (blockIdx.y * 16 + threadIdx.y)
#define COLUMN (blockIdx.x * 16 + threadIdx.x)
#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

extern "C" {

// --- an index of 32 bits, and its right twins

__global__ void int_index(float* a, float* c, int n) {
  const int i = ROW, j = COLUMN;
  if (i < n && j < n) c[i * n + j] = a[0];  // WRONG
}

__global__ void int_offset(float* a, float* c, int n) {
  const int i = ROW, j = COLUMN;
  char* const bytes = reinterpret_cast<char*>(c);
  if (i < n && j < n) *reinterpret_cast<float*>(bytes + int(4u * (i * n + j))) = a[0];  // WRONG
}

__global__ void reads_by_int(float* a, float* c, int n) {
  const int i = ROW, j = COLUMN;
  if (i < n && j < n) a[0] = c[i * n + j];  // WRONG
}

__global__ void adds_by_int(float* a, float* c, int n) {
  const int i = ROW, j = COLUMN;
  if (i < n && j < n) atomicAdd(&c[i * n + j], a[0]);  // WRONG
}

__global__ void copies_by_int(float* a, float* c, int n) {
  __shared__ float s[16][16];
  const int i = ROW, j = COLUMN;
  if (i < n && j < n)
    __pipeline_memcpy_async(&s[threadIdx.y][threadIdx.x], &c[i * n + j], 4);  // WRONG
  __pipeline_commit();
  __pipeline_wait_prior(0);
  a[0] = s[threadIdx.y][threadIdx.x];
}

__global__ void wide_index(float* a, float* c, int n) {
  const int i = ROW, j = COLUMN;
  if (i >= n || j >= n) return;
  float* const mine = c + (size_t)i * n + j;
  *mine = a[0];
  atomicAdd(mine, *mine);
}

// --- variables

__global__ void fixed_array(float* a, float* c, int n) {
  const int i = INDEX;
  if (i < n) At[i] = c[i % 4];  // WRONG
}

__global__ void large_array(float* a, float* c, int n) {
  const int i = INDEX;
  if (i < n) Behind[i] = At[i % (1 << 16)];
}

__global__ void strides(float* a, float* c, int n) { c[INDEX * Stride] = a[0]; }  // WRONG

// --- the last block alone

__global__ void last_block(float* a, float* c, int n) {
  if (blockIdx.x == gridDim.x - 1) c[n] = a[0];  // WRONG
}

// --- addresses that depend on what memory holds

__global__ void histogram(int* a, int* c, int n) { atomicAdd(&c[a[INDEX % n]], 1); }

__global__ void tickets(int* a, int* c, int n) { c[atomicAdd(&Count, 1)] = a[0]; }

__global__ void counts(int* a, int* c, int n) { atomicAdd(&a[0], 1); }

__global__ void uses_counts(int* a, int* c, int n) { c[a[0] - n] = 1; }  // all blocks counted

__global__ void offsets(int* a, int* c, int n) { Offsets[INDEX] = INDEX + 1; }

__global__ void uses_offsets(int* a, int* c, int n) { c[Offsets[n - 1 - INDEX] - 1] = 1; }

// --- blocks that need others

__global__ void waits_for_the_one_before(int* a, int* c, int n) {
  volatile int* const flags = a;
  if (threadIdx.x == 0 && blockIdx.x) {
    while (!flags[blockIdx.x - 1]) {}
    c[flags[blockIdx.x - 1] - 1] = 1;
    __threadfence();
  }
  flags[blockIdx.x] = blockIdx.x + 1;
}

__global__ void meets_the_grid(int* a, int* c, int n) {
  Offsets[blockIdx.x] = a[blockIdx.x] = blockIdx.x + 1;
  cooperative_groups::this_grid().sync();
  c[a[gridDim.x - 1 - blockIdx.x] - 1] = 1;
  c[Offsets[gridDim.x - 1 - blockIdx.x] - 1] = 1;
}

// --- an address that is no pointer of the plan: c lies n bytes behind a

__global__ void from_a_to_c(char* a, float* c, size_t n) {
  *reinterpret_cast<float*>(a + n) = 1.0f;  // WRONG where that is not in c
}
}
