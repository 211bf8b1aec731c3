// Rung 7: two steps of a box in one pass.
//
// Changed:  boxes walk up z as planes walk down y, two steps at a time. Eight warps share the
//           planes that come in: they wait in shared memory, where cp.async puts them three planes
//           ahead.
// Why:      DRAM moves a box once for two steps. A warp has two rows, and needs six of the plane
//           that comes in: if it loaded them for itself, each cell would be loaded three times;
//           from shared memory it is 1.3 times. Three steps would make a warp compute twice the
//           cells that it keeps.
// Bound:    instructions; DRAM is not far below.
// Command:  grade --lab stencil reference/stencil/07_box
#include "stencil.cuh"

#include "box.cuh"
#include "one_step.cuh"
#include "plane.cuh"

template <>
void run_custom<float>(thrust::device_vector<float>& in, thrust::device_vector<float>& out,
                       thrust::device_vector<float>& scratch, int nx, int ny, int nz, int steps,
                       float alpha) {
  const int most = nz == 1 ? 8 : 2;
  int launches = steps / most;
  for (int rest = steps % most; rest > 0; rest /= 2) launches += rest % 2;  // 4, 2 and 1
  const float* from = in.data().get();
  for (int left = steps, size = most; left > 0; --launches) {
    while (size > left) size /= 2;
    float* to = (launches % 2 ? out : scratch).data().get();
    if (size == 1) one_step::launch(from, to, nx, ny, nz, alpha);
    if (size == 2 && nz > 1) box::launch(from, to, nx, ny, nz, alpha);
    if (size == 2 && nz == 1) plane::launch<2>(from, to, nx, ny, alpha);
    if (size == 4) plane::launch<4>(from, to, nx, ny, alpha);
    if (size == 8) plane::launch<8>(from, to, nx, ny, alpha);
    from = to;
    left -= size;
  }
}
