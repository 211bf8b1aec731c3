// The interface of the lab: C = A·B in single precision.
//
//   A  m×k, row-major:     A[i * k + p]
//   B  k×n, row-major:     B[p * n + j]
//   C  m×n, row-major:     C[i * n + j]
//
// Specialise run_custom for float in sgemm.cu. The vectors are already on the device; take the
// pointers for your kernel with d_A.data().get().
#pragma once

#include <thrust/device_vector.h>

template <typename T>
void run_custom(thrust::device_vector<T>& d_A, thrust::device_vector<T>& d_B,
                thrust::device_vector<T>& d_C, const int m, const int n, const int k);
