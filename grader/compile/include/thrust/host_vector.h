// Part of the grader's stand-in for Thrust: a host_vector is a std::vector. It cannot be copied to
// or from a device_vector, because the host has no way to the device's memory here.
#pragma once

#include <vector>

namespace thrust {

template <typename T>
class host_vector : public std::vector<T> {
 public:
  using std::vector<T>::vector;
};

}  // namespace thrust
