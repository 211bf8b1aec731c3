// Part of the grader's stand-in for Thrust: a host_vector is a std::vector. It can be copied to a
// device_vector but not from one: the host cannot read the device's memory here.
#pragma once

#include <vector>

namespace thrust {

template <typename T>
class host_vector : public std::vector<T> {
 public:
  using std::vector<T>::vector;
};

}  // namespace thrust
