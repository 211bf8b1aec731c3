// Rung 1: a thread for each cell, a launch for each step.
//
// Changed:  the start of the ladder. threadIdx.x runs along x. Steps read and write by turns: the
//           last one writes out, the one before it scratch.
// Why:      a warp reads and writes 32 neighbours, 128 bytes in a row. A launch ends before the
//           next one begins, so no cell is read before its neighbours are ready.
// Bound:    a thread loads five cells, seven in a box, and stores one: caches answer all but one of
//           the loads, but each is an instruction, and a request to L1.
// Command:  grade --lab stencil reference/stencil/01_naive
#include "stencil.cuh"

constexpr int WIDTH = 32, HEIGHT = 8;

__global__ void step(const float* from, float* to, int nx, int ny, int nz, float alpha) {
  const int x = blockIdx.x * WIDTH + threadIdx.x, y = blockIdx.y * HEIGHT + threadIdx.y;
  const int z = blockIdx.z;
  if (x >= nx || y >= ny) return;
  const size_t plane = size_t(nx) * ny, i = z * plane + size_t(y) * nx + x;
  const bool flat = nz == 1, inner = x > 0 && x < nx - 1 && y > 0 && y < ny - 1;
  float u = from[i];
  if (inner && (flat || (z > 0 && z < nz - 1))) {
    float sum = from[i - 1] + from[i + 1] + from[i - nx] + from[i + nx];
    if (!flat) sum += from[i - plane] + from[i + plane];
    u += alpha * (sum - (flat ? 4 : 6) * u);
  }
  to[i] = u;
}

template <>
void run_custom<float>(thrust::device_vector<float>& in, thrust::device_vector<float>& out,
                       thrust::device_vector<float>& scratch, int nx, int ny, int nz, int steps,
                       float alpha) {
  const dim3 grid((nx + WIDTH - 1) / WIDTH, (ny + HEIGHT - 1) / HEIGHT, nz), block(WIDTH, HEIGHT);
  const float* from = in.data().get();
  for (int left = steps; left > 0; --left) {
    float* to = (left % 2 ? out : scratch).data().get();
    step<<<grid, block>>>(from, to, nx, ny, nz, alpha);
    from = to;
  }
}
