// The interface of the lab: heat that spreads through a grid, several steps, in single precision.
//
//   in       nx · ny · nz cells, x fastest: cell (x, y, z) is in[(z * ny + y) * nx + x]
//   out      as many: the grid after all steps
//   scratch  as many, for whatever your kernels like: nobody reads it
//
// In one step a cell u with the neighbours n becomes u + alpha * (sum of n - count of n * u). There
// are six neighbours; four, all of them in the plane, if nz is 1. Cells on the edge of the grid
// never change: x is 0 or nx - 1, y is 0 or ny - 1, or, unless nz is 1, z is 0 or nz - 1.
//
// Specialise run_custom for float in stencil.cu. The vectors are already on the device; take the
// pointers for your kernel with in.data().get().
#pragma once

#include <thrust/device_vector.h>

template <typename T>
void run_custom(thrust::device_vector<T>& in, thrust::device_vector<T>& out,
                thrust::device_vector<T>& scratch, int nx, int ny, int nz, int steps, T alpha);
