// Part of the grader's stand-in for Thrust: a host_vector is a std::vector. It can be copied to a
// device_vector but not from one: the host cannot read the device's memory here.
#pragma once

#include <vector>

#include <thrust/device_ptr.h>

namespace thrust {

template <typename T>
class device_vector;

template <typename T>
class host_vector : public std::vector<T> {
 public:
  using std::vector<T>::vector;
  host_vector() = default;

  template <typename U>
  host_vector(const device_vector<U>&) {
    sgemm_grader::copy_to_host<U>();
  }
  template <typename U>
  host_vector& operator=(const device_vector<U>&) {
    sgemm_grader::copy_to_host<U>();
    return *this;
  }
  template <typename U>
  host_vector(device_ptr<U>, device_ptr<U>) {
    sgemm_grader::copy_to_host<U>();
  }
};

}  // namespace thrust
