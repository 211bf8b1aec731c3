// Rung 5: as many threads as a row needs.
//
// Changed:  rows of up to 256 elements belong to 1 to 32 lanes of a warp, several rows to a warp;
//           longer ones to a block, as before. Rows of more than 32768 elements belong to a cluster
//           of two or three blocks on as many multiprocessors: every warp writes its sum into the
//           shared memory of all. exp is a power of 2 whose exponent is one FMA.
// Why:      at every length a row is read once, all threads have work, and enough bytes are on the
//           way. Eight values for each of many threads are better than many for few: the more warps
//           there are, the better do loads of one row and stores of another overlap.
// Bound:    DRAM.
// Older:    GPUs without clusters give such rows a block, which keeps in local memory what does not
//           fit its registers.
// Command:  grade --lab softmax reference/softmax/05_dispatch
#include "softmax.cuh"

constexpr float LOG2E = 1.44269504f, LOWEST = -1.5e38f;  // times LOG2E it is still finite

struct Sum {
  float most, value;  // most: the largest x * LOG2E; value: the sum of 2^(x * LOG2E - most)
};

template <int WIDTH>  // what one access moves; a row's beginning is aligned to it
struct alignas(4 * WIDTH) Wide {
  float x[WIDTH];
};

// 2^x. __expf would also care for what is so small that it may be 0 here.
__device__ float power(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

template <int LANES>
__device__ float largest(float own) {
#pragma unroll
  for (int apart = LANES / 2; apart > 0; apart /= 2)
    own = fmaxf(own, __shfl_xor_sync(~0u, own, apart));
  return own;
}

template <int LANES>
__device__ float total(float own) {
#pragma unroll
  for (int apart = LANES / 2; apart > 0; apart /= 2) own += __shfl_xor_sync(~0u, own, apart);
  return own;
}

// One Sum of each lane joined: every lane gets that of all.
template <int LANES>
__device__ Sum joined(Sum own) {
  const float most = largest<LANES>(own.most);
  return {most, total<LANES>(own.value * power(own.most - most))};
}

__device__ Sum join(Sum a, Sum b) {
  const float most = fmaxf(a.most, b.most);
  return {most, a.value * power(a.most - most) + b.value * power(b.most - most)};
}

// A thread's part of a row: COUNT accesses, THREADS apart. t: which of the THREADS it is.
template <int WIDTH, int COUNT, int THREADS>
struct Part {
  Wide<WIDTH> v[COUNT];

  __device__ void load(const float* row, int columns, int t) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      const int j = (i * THREADS + t) * WIDTH;
#pragma unroll
      for (float& x : v[i].x) x = -INFINITY;
      if (j < columns) v[i] = *reinterpret_cast<const Wide<WIDTH>*>(row + j);
    }
  }

  __device__ float most() const {
    float found = LOWEST;
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
#pragma unroll
      for (float x : v[i].x) found = fmaxf(found, x);
    return found;
  }

  // Turns each x into 2^(x * LOG2E - most); returns their sum.
  __device__ float raise(float most) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
#pragma unroll
      for (float& x : v[i].x) sum += x = power(fmaf(x, LOG2E, -most));
    return sum;
  }

  __device__ void store(float* row, int columns, int t, float factor) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      const int j = (i * THREADS + t) * WIDTH;
#pragma unroll
      for (float& x : v[i].x) x *= factor;
      if (j < columns) *reinterpret_cast<Wide<WIDTH>*>(row + j) = v[i];
    }
  }
};

// --- short rows: some lanes for each

constexpr int THREADS = 128;

template <int WIDTH, int COUNT, int LANES>
__global__ void by_lanes(const float* in, float* out, int rows, int columns) {
  const int row = blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES, t = threadIdx.x % LANES;
  const int length = row < rows ? columns : 0;
  Part<WIDTH, COUNT, LANES> part;
  part.load(in + size_t(row) * columns, length, t);
  const float sum = total<LANES>(part.raise(largest<LANES>(part.most()) * LOG2E));
  part.store(out + size_t(row) * columns, length, t, __fdividef(1, sum));
}

// --- longer ones: a block for each, or a cluster

// SIZE blocks of a cluster have a row. Every warp's sum goes to all of them.
template <int SIZE, int THREADS>
__device__ Sum joined_in_cluster(Sum own) {
  constexpr int WARPS = THREADS / 32;
  __shared__ Sum of_warp[SIZE][WARPS];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if constexpr (SIZE == 1) {
    if (lane == 0) of_warp[0][warp] = own;
    __syncthreads();
    return joined<WARPS>(of_warp[0][lane % WARPS]);
  } else {
#if __CUDA_ARCH__ >= 900
    __cluster_barrier_wait();  // for the arrival in by_block: the others have begun
    Sum* place = &of_warp[blockIdx.x % SIZE][warp];
    if (lane < SIZE) *static_cast<Sum*>(__cluster_map_shared_rank(place, lane)) = own;
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
#endif
    Sum both = of_warp[0][lane];
#pragma unroll
    for (int rank = 1; rank < SIZE; ++rank) both = join(both, of_warp[rank][lane]);
    return joined<32>(both);
  }
}

template <int WIDTH, int COUNT, int SIZE, int THREADS>
__global__ void __launch_bounds__(THREADS) by_block(const float* in, float* out, int columns) {
#if __CUDA_ARCH__ >= 900
  if (SIZE > 1) __cluster_barrier_arrive_relaxed();
#endif
  const size_t row = size_t(blockIdx.x / SIZE) * columns;
  const int t = blockIdx.x % SIZE * THREADS + threadIdx.x;
  Part<WIDTH, COUNT, SIZE * THREADS> part;
  part.load(in + row, columns, t);
  Sum own;
  own.most = largest<32>(part.most()) * LOG2E;
  own.value = total<32>(part.raise(own.most));
  const Sum all = joined_in_cluster<SIZE, THREADS>(own);
  part.store(out + row, columns, t, power(own.most - all.most) * __fdividef(1, all.value));
}

// --- which of them

struct Rows {
  const float* in;
  float* out;
  int rows, columns;

  // Takes them if some lanes with ITEMS values each suffice for a row.
  template <int WIDTH, int ITEMS, int LANES>
  bool fit_lanes() const {
    if (columns > ITEMS * LANES) return false;
    constexpr int AT_ONCE = THREADS / LANES;
    const int blocks = (rows + AT_ONCE - 1) / AT_ONCE;
    by_lanes<WIDTH, ITEMS / WIDTH, LANES><<<blocks, THREADS>>>(in, out, rows, columns);
    return true;
  }

  template <int WIDTH, int ITEMS, int SPAN, int SIZE = 1>
  bool fit_blocks() const {
    if (columns > ITEMS * SPAN * SIZE) return false;
    cudaLaunchAttribute cluster;
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {SIZE, 1, 1};
    cudaLaunchConfig_t launch = {};
    launch.gridDim = dim3(rows * SIZE), launch.blockDim = dim3(SPAN);
    launch.attrs = &cluster, launch.numAttrs = SIZE > 1;
    cudaLaunchKernelEx(&launch, by_block<WIDTH, ITEMS / WIDTH, SIZE, SPAN>, in, out, columns);
    return true;
  }

  template <int W>
  void softmax() const {
    if (fit_lanes<W, 4, 1>() || fit_lanes<W, 4, 2>() || fit_lanes<W, 4, 4>()) return;
    if (fit_lanes<W, 4, 8>() || fit_lanes<W, 4, 16>()) return;
    if (fit_lanes<W, 8, 16>() || fit_lanes<W, 8, 32>()) return;
    if (fit_blocks<W, 8, 64>() || fit_blocks<W, 8, 128>() || fit_blocks<W, 8, 256>()) return;
    if (fit_blocks<W, 8, 512>() || fit_blocks<W, 16, 512>()) return;
    if (fit_blocks<W, 16, 1024>() || fit_blocks<W, 32, 1024>()) return;
    int device, capability;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&capability, cudaDevAttrComputeCapabilityMajor, device);
    if (capability < 9) fit_blocks<W, 100, 1024>();
    else if (!fit_blocks<W, 32, 1024, 2>()) fit_blocks<W, 36, 1024, 3>();
  }
};

template <>
void run_custom<float>(thrust::device_vector<float>& in, thrust::device_vector<float>& out,
                       int rows, int columns) {
  const Rows all = {in.data().get(), out.data().get(), rows, columns};
  columns % 4 == 0 ? all.softmax<4>() : all.softmax<1>();
}
