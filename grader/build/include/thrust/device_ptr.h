// Part of the grader's stand-in for Thrust; see device_vector.h.
#pragma once

#include <cstddef>
#include <new>

namespace thrust {

namespace sgemm_grader {

// What would copy to the host does not compile.
template <typename T>
__host__ __device__ void copy_to_host() {
  static_assert(sizeof(T) == 0,
                "nothing can be copied from the device to the host in run_custom: its kernels run "
                "later, so there is nothing to read yet; use the values in a kernel");
}

}  // namespace sgemm_grader

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

// What d_A[0] gives, so that thrust::raw_pointer_cast(&d_A[0]) works. Writing it is a copy to the
// device, or on it.
template <typename T>
class device_reference {
 public:
  __host__ __device__ explicit device_reference(device_ptr<T> pointer) : pointer_(pointer) {}
  __host__ __device__ device_ptr<T> operator&() const { return pointer_; }
  device_reference(const device_reference&) = default;
  operator T() const {
    sgemm_grader::copy_to_host<T>();
    return T();
  }
  const device_reference& operator=(const T& value) const {
    return write(&value, cudaMemcpyHostToDevice);
  }
  const device_reference& operator=(const device_reference& other) const {
    return write(other.pointer_.get(), cudaMemcpyDeviceToDevice);
  }

 private:
  const device_reference& write(const T* source, cudaMemcpyKind kind) const {
    if (cudaMemcpy(pointer_.get(), source, sizeof(T), kind) != cudaSuccess) throw std::bad_alloc();
    return *this;
  }

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
