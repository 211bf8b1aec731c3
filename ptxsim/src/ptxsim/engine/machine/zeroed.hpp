// Vectors of zeros, which take no memory before something is written there.
#pragma once

#include <cstdlib>
#include <new>
#include <utility>
#include <vector>

namespace sim {

template <class T> struct Zeros {
  using value_type = T;

  Zeros() = default;
  template <class U> Zeros(const Zeros<U>&) {}
  bool operator==(const Zeros&) const = default;

  T* allocate(size_t count) {
    if (void* const made = std::calloc(count, sizeof(T))) return static_cast<T*>(made);
    throw std::bad_alloc();
  }
  void deallocate(T* made, size_t) { std::free(made); }

  template <class U> void construct(U*) {}  // it is all zeros
  template <class U, class First, class... More> void construct(U* at, First&& first,
                                                                More&&... more) {
    ::new (static_cast<void*>(at)) U(std::forward<First>(first), std::forward<More>(more)...);
  }
};

// It may grow but once: one that is cleared, or assigned {}, keeps its memory as it is.
template <class T> using Zeroed = std::vector<T, Zeros<T>>;

template <class T> void release(Zeroed<T>& held) { Zeroed<T>().swap(held); }

}  // namespace sim
