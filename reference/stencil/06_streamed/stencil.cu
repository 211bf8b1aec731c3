// Rung 6: eight steps on the way through registers.
//
// Changed:  a warp walks down a strip of a plane. A row that comes in makes the one above it a step
//           older, that one the next, and so on: the row that goes out is eight steps old. There
//           are no tiles and no barriers, only shuffles along x. Boxes are done as in rung 4.
// Why:      of 128 columns 16 are computed twice, and a few rows where a strip begins. An update
//           takes five arithmetic instructions and half a shuffle; in rung 5 it has three accesses
//           to shared memory besides. A row is needed by the row above, by itself and by the row
//           below: as it comes in it goes into all three sums and is forgotten, so that of each
//           step two registers for each cell are enough.
// Bound:    instructions; DRAM is not far below.
// Command:  grade --lab stencil reference/stencil/06_streamed
#include "stencil.cuh"

#include "one_step.cuh"
#include "plane.cuh"

template <>
void run_custom<float>(thrust::device_vector<float>& in, thrust::device_vector<float>& out,
                       thrust::device_vector<float>& scratch, int nx, int ny, int nz, int steps,
                       float alpha) {
  const int most = nz == 1 ? 8 : 1;
  int launches = steps / most;
  for (int rest = steps % most; rest > 0; rest /= 2) launches += rest % 2;  // 4, 2 and 1
  const float* from = in.data().get();
  for (int left = steps, size = most; left > 0; --launches) {
    while (size > left) size /= 2;
    float* to = (launches % 2 ? out : scratch).data().get();
    if (size == 1) one_step::launch(from, to, nx, ny, nz, alpha);
    if (size == 2) plane::launch<2>(from, to, nx, ny, alpha);
    if (size == 4) plane::launch<4>(from, to, nx, ny, alpha);
    if (size == 8) plane::launch<8>(from, to, nx, ny, alpha);
    from = to;
    left -= size;
  }
}
