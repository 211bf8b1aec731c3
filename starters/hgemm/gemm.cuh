// The interface of the lab: C = A·B in half precision (FP16).
//
//   A  m×k, row-major:     A[i * k + p]
//   B  k×n, column-major:  B[p + j * k]
//   C  m×n, column-major:  C[i + j * m]
//
// Specialise run_custom for __half or cute::half_t in hgemm.cu. The vectors are already on the
// device; take the pointers for your kernel with d_A.data().get().
#pragma once

#include <cuda_fp16.h>
#include <thrust/device_vector.h>

template <typename T>
void run_custom(thrust::device_vector<T>& d_A, thrust::device_vector<T>& d_B,
                thrust::device_vector<T>& d_C, const int m, const int n, const int k);
