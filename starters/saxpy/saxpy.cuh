// The interface of the lab: y = alpha·x + y in single precision, in place.
//
//   x      n elements, n from 1 on
//   y      n elements, which your kernel replaces: y[i] = alpha * x[i] + y[i]
//   alpha  one number
//
// Specialise run_custom for float in saxpy.cu. The vectors are already on the device; take the
// pointers for your kernel with x.data().get().
#pragma once

#include <thrust/device_vector.h>

template <typename T>
void run_custom(thrust::device_vector<T>& x, thrust::device_vector<T>& y, int n, T alpha);
