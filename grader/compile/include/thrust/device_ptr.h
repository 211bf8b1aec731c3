// Part of the grader's stand-in for Thrust; see device_vector.h.
#pragma once

#include <cstddef>
#include <new>

namespace thrust {

template <typename T>
class device_reference;

// A pointer to device memory. It can be passed around, taken apart and written through. It cannot
// be read: nothing has run while host code is recorded.
template <typename T>
class device_ptr {
 public:
  using element_type = T;
  using value_type = T;
  using difference_type = std::ptrdiff_t;

  device_ptr() = default;
  __host__ __device__ explicit device_ptr(T* pointer) : pointer_(pointer) {}

  __host__ __device__ T* get() const { return pointer_; }
  __host__ __device__ explicit operator bool() const { return pointer_ != nullptr; }
  __host__ __device__ device_reference<T> operator*() const { return device_reference<T>(*this); }
  __host__ __device__ device_reference<T> operator[](difference_type i) const {
    return *(*this + i);
  }
  __host__ __device__ device_ptr operator+(difference_type n) const {
    return device_ptr(pointer_ + n);
  }
  __host__ __device__ device_ptr operator-(difference_type n) const {
    return device_ptr(pointer_ - n);
  }
  __host__ __device__ difference_type operator-(device_ptr other) const {
    return pointer_ - other.pointer_;
  }
  __host__ __device__ bool operator==(device_ptr other) const {
    return pointer_ == other.pointer_;
  }
  __host__ __device__ bool operator!=(device_ptr other) const {
    return pointer_ != other.pointer_;
  }

 private:
  T* pointer_ = nullptr;
};

// What d_A[0] gives, so that thrust::raw_pointer_cast(&d_A[0]) works. Reading it would be a copy
// from device to host, which a submission cannot make; writing is a copy to the device.
template <typename T>
class device_reference {
 public:
  __host__ __device__ explicit device_reference(device_ptr<T> pointer) : pointer_(pointer) {}
  __host__ __device__ device_ptr<T> operator&() const { return pointer_; }
  operator T() const = delete;
  const device_reference& operator=(const T& value) const {
    if (cudaMemcpy(pointer_.get(), &value, sizeof(T), cudaMemcpyHostToDevice) != cudaSuccess)
      throw std::bad_alloc();
    return *this;
  }

 private:
  device_ptr<T> pointer_;
};

template <typename T>
__host__ __device__ T* raw_pointer_cast(device_ptr<T> pointer) {
  return pointer.get();
}

template <typename T>
__host__ __device__ T* raw_pointer_cast(T* pointer) {
  return pointer;
}

template <typename T>
__host__ __device__ device_ptr<T> device_pointer_cast(T* pointer) {
  return device_ptr<T>(pointer);
}

}  // namespace thrust
