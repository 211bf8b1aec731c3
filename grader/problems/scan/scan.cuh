// The interface of the lab: the inclusive prefix sums of n whole numbers.
//
//   in   n elements, n from 1 on
//   out  n elements: out[i] = in[0] + in[1] + … + in[i]
//
// Specialise run_custom for int in scan.cu. The vectors are already on the device; take the
// pointers for your kernels with in.data().get().
#pragma once

#include <thrust/device_vector.h>

template <typename T>
void run_custom(thrust::device_vector<T>& in, thrust::device_vector<T>& out, int n);
