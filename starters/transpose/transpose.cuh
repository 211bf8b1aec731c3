// The interface of the lab: the transpose of a matrix in single precision.
//
//   in   rows × columns, row-major: element (i, j) is in[i * columns + j]
//   out  columns × rows, row-major: out[j * rows + i] = in[i * columns + j]
//
// Specialise run_custom for float in transpose.cu. The vectors are already on the device; take the
// pointers for your kernel with in.data().get().
#pragma once

#include <thrust/device_vector.h>

template <typename T>
void run_custom(thrust::device_vector<T>& in, thrust::device_vector<T>& out, int rows, int columns);
