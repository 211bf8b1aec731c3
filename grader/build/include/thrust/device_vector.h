// The grader's stand-in for Thrust's device_vector: what an SGEMM submission needs of it, in a
// header that nvcc reads in milliseconds where the real one takes 20 seconds.
//
// The vectors handed to run_custom are views of the grader's buffers. A vector that a submission
// makes itself owns its memory and is filled on the device, as Thrust's would be.
//
// Code may rely on what the real header includes. What nvcc includes anyway or reads in no time is
// here; grader/build/brought_headers.toml adds the rest where a submission needs it.
#pragma once

#include <cassert>
#include <cctype>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <new>
#include <type_traits>
#include <utility>

#include <thrust/device_ptr.h>

namespace thrust {

namespace sgemm_grader {

template <typename T>
__global__ void fill(T* data, std::size_t size, T value) {
  const std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < size) data[i] = value;
}

struct view {};

}  // namespace sgemm_grader

template <typename T>
class device_vector {
 public:
  using value_type = T;
  using size_type = std::size_t;
  using pointer = device_ptr<T>;
  using iterator = device_ptr<T>;

  device_vector() = default;
  explicit device_vector(size_type size, const T& value = T()) { resize(size, value); }
  device_vector(sgemm_grader::view, T* data, size_type size)
      : data_(data), size_(size), capacity_(size), owner_(false) {}
  device_vector(iterator first, iterator last) { assign(first, last); }
  template <class Vector, class = typename Vector::allocator_type>
  device_vector(const Vector& values) {
    *this = values;
  }
  device_vector(std::initializer_list<T> values) {
    take(values.begin(), values.size(), cudaMemcpyHostToDevice);
  }
  device_vector(const device_vector& other) { *this = other; }
  device_vector(device_vector&& other) { swap(other); }
  ~device_vector() { release(); }

  device_vector& operator=(const device_vector& other) {
    if (this != &other) assign(other.begin(), other.end());
    return *this;
  }
  // From a std::vector, whose header not every submission needs.
  template <class Vector, class = typename Vector::allocator_type>
  device_vector& operator=(const Vector& values) {
    take(values.data(), values.size(), cudaMemcpyHostToDevice);
    return *this;
  }
  void assign(iterator first, iterator last) {
    take(first.get(), size_type(last - first), cudaMemcpyDeviceToDevice);
  }
  device_vector& operator=(device_vector&& other) {
    swap(other);
    return *this;
  }

  pointer data() const { return pointer(data_); }
  iterator begin() const { return pointer(data_); }
  iterator end() const { return pointer(data_ + size_); }
  device_reference<T> operator[](size_type i) const { return pointer(data_)[i]; }
  size_type size() const { return size_; }
  size_type capacity() const { return capacity_; }
  bool empty() const { return size_ == 0; }

  void clear() { size_ = 0; }
  void reserve(size_type capacity) {
    if (capacity <= capacity_) return;
    T* grown = nullptr;
    check(cudaMalloc(reinterpret_cast<void**>(&grown), capacity * sizeof(T)));
    if (size_) check(cudaMemcpy(grown, data_, size_ * sizeof(T), cudaMemcpyDeviceToDevice));
    release();
    data_ = grown;
    capacity_ = capacity;
    owner_ = true;
  }
  void resize(size_type size, const T& value = T()) {
    reserve(size);
    if (size > size_) {
      const size_type added = size - size_;
      sgemm_grader::fill<<<unsigned((added + 255) / 256), 256>>>(data_ + size_, added, value);
    }
    size_ = size;
  }
  // A view stays where the grader looks, so its values are exchanged.
  void swap(device_vector& other) {
    if (!owner_ || !other.owner_) {
      const device_vector values = *this;
      *this = other;
      other = values;
      return;
    }
    const device_vector_state mine{data_, size_, capacity_, owner_};
    data_ = other.data_, size_ = other.size_, capacity_ = other.capacity_, owner_ = other.owner_;
    other.data_ = mine.data, other.size_ = mine.size;
    other.capacity_ = mine.capacity, other.owner_ = mine.owner;
  }

 private:
  struct device_vector_state {
    T* data;
    size_type size, capacity;
    bool owner;
  };

  static void check(cudaError_t error) {
    if (error != cudaSuccess) throw std::bad_alloc();
  }
  void take(const T* data, size_type size, cudaMemcpyKind kind) {
    reserve(size);
    size_ = size;
    if (size) check(cudaMemcpy(data_, data, size * sizeof(T), kind));
  }
  void release() {
    if (owner_ && data_) cudaFree(data_);
  }

  T* data_ = nullptr;
  size_type size_ = 0;
  size_type capacity_ = 0;
  bool owner_ = true;
};

}  // namespace thrust
