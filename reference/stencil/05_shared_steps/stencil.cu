// Rung 5: four steps in shared memory.
//
// Changed:  a block loads a tile of 64 × 64 cells of a plane and does four steps there. With each
//           step one more row and column on each side goes stale, so 56 × 56 cells are right at the
//           end; blocks overlap by the others. A thread has sixteen cells of a column in registers,
//           and takes from shared memory what lies beside them. Boxes are done as in rung 4: most
//           cells of such a tile would go stale there.
// Why:      four steps for one pass over DRAM. Cells that several blocks compute make it 1.3 times
//           as many updates. Neighbours above and below are the thread's own, so an update has two
//           loads from shared memory and one store instead of five and one.
// Bound:    shared memory.
// Command:  grade --lab stencil reference/stencil/05_shared_steps
#include "stencil.cuh"

#include "one_step.cuh"

constexpr int EDGE = 64, STEPS = 4, ROWS = 16, USED = EDGE - 2 * STEPS;

__global__ void __launch_bounds__(EDGE* EDGE / ROWS)
    several(const float* from, float* to, int nx, int ny, float alpha) {
  __shared__ float tile[EDGE][EDGE];
  const int i = threadIdx.x, j = threadIdx.y * ROWS;
  const int x = blockIdx.x * USED - STEPS + i, y = blockIdx.y * USED - STEPS + j;
  const bool free = x > 0 && x < nx - 1 && i > 0 && i < EDGE - 1;
  float u[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    const bool there = x >= 0 && x < nx && y + r >= 0 && y + r < ny;
    u[r] = there ? from[size_t(y + r) * nx + x] : 0;
  }
#pragma unroll 1
  for (int t = 0; t < STEPS; ++t) {
#pragma unroll
    for (int r = 0; r < ROWS; ++r) tile[j + r][i] = u[r];
    __syncthreads();
    float above = j > 0 ? tile[j - 1][i] : 0;
    const float last = j + ROWS < EDGE ? tile[j + ROWS][i] : 0;
    if (free) {
#pragma unroll
      for (int r = 0; r < ROWS; ++r) {
        const float old = u[r], below = r < ROWS - 1 ? u[r + 1] : last;
        const float sum = tile[j + r][i - 1] + tile[j + r][i + 1] + above + below;
        if (y + r > 0 && y + r < ny - 1) u[r] = old + alpha * (sum - 4 * old);
        above = old;
      }
    }
    __syncthreads();
  }
  if (i < STEPS || i >= EDGE - STEPS || x >= nx) return;
#pragma unroll
  for (int r = 0; r < ROWS; ++r)
    if (j + r >= STEPS && j + r < EDGE - STEPS && y + r < ny) to[size_t(y + r) * nx + x] = u[r];
}

template <>
void run_custom<float>(thrust::device_vector<float>& in, thrust::device_vector<float>& out,
                       thrust::device_vector<float>& scratch, int nx, int ny, int nz, int steps,
                       float alpha) {
  const int most = nz == 1 ? STEPS : 1;
  int launches = steps / most + steps % most;
  const dim3 grid((nx + USED - 1) / USED, (ny + USED - 1) / USED), block(EDGE, EDGE / ROWS);
  const float* from = in.data().get();
  for (int left = steps; left > 0; --launches) {
    float* to = (launches % 2 ? out : scratch).data().get();
    const int size = left >= most ? most : 1;
    if (size == 1) one_step::launch(from, to, nx, ny, nz, alpha);
    if (size > 1) several<<<grid, block>>>(from, to, nx, ny, alpha);
    from = to;
    left -= size;
  }
}
