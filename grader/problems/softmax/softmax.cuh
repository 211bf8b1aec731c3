// The interface of the lab: the softmax of each row of a matrix in single precision.
//
//   in   rows × columns, row-major: element (i, j) is in[i * columns + j]
//   out  the same shape: out[i, j] = exp(in[i, j]) / (the sum of exp over row i of in)
//
// Specialise run_custom for float in softmax.cu. The vectors are already on the device; take the
// pointers for your kernel with in.data().get().
#pragma once

#include <thrust/device_vector.h>

template <typename T>
void run_custom(thrust::device_vector<T>& in, thrust::device_vector<T>& out, int rows, int columns);
