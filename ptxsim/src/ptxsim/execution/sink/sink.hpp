// The sink of `ptxsim exec`: a library in the place of libcudart.so, by which a program has ptxsim
// do at once what it asks of the device.
//
// - channel.cpp: messages to ptxsim's process, and its answers
// - modules.cpp: the PTX that a program registers, its kernels and variables
// - memory.cpp: device memory, which both processes share: allocations, copies
// - arrays.cpp: CUDA arrays, copies in three dimensions
// - textures.cpp: texture and surface objects
// - pools.cpp: memory pools, registered memory of the host
// - calls.cpp: calls that a recorder cannot answer
// - cublas.cpp: cuBLAS, which ptxsim's process computes
// - driver.cpp: CUDA's driver
// - host.cpp: where host code stands, and its mistakes
//
// ptxsim/execution/messages.py has the messages. Addresses and bounds are macros from there, too.
#pragma once

#include <string>

#include "runtime.hpp"

// One of the runtime's functions, which an expression answers; `caller` is its name.
#define RUNTIME(name, parameters, ...)                                                      \
  cudaError_t name parameters {                                                             \
    return answer(#name, [&]([[maybe_unused]] const char* caller) { return __VA_ARGS__; }); \
  }

template <class T>
cudaError_t give(T* where, const std::type_identity_t<T>& value) {
  if (where) *where = value;
  return where ? cudaSuccess : cudaErrorInvalidValue;
}

// --- channel.cpp
void open_channel();
void tell(const std::string& json, const void* blob = nullptr, size_t bytes = 0);
// The answer of ptxsim's process, which may do much before it answers.
std::string ask(const std::string& json, const void* blob = nullptr, size_t bytes = 0);
[[noreturn]] void give_up(const char* why);  // the program cannot go on

// --- modules.cpp
// The PTX, ended by a zero, of text or a fat binary; none in machine code.
std::string ptx_in(const void* image);
size_t register_ptx(const std::string& ptx);  // the number of the module
void open_device();                           // learns what device ptxsim stands for
extern bool modules_loaded;                   // all that are registered so far
extern size_t watched;                        // elements of device memory

// --- memory.cpp
void load_modules();  // before anything is written there: variables get their first values
unsigned char* shared_view(const void* address);  // through which host code's copies go
void put(Place target, const void* source, const Rows& rows);  // in no stream
void issue_launch(const std::string& order);  // which comes now; order: as order_on gives it
void free_all();                              // but variables

// --- pools.cpp
void unpin_all();
void* device_side(const void* host);  // of memory that both see; null: there is none

// --- arrays.cpp
struct Array {
  cudaChannelFormatDesc desc;
  cudaExtent extent;  // as it was asked for
  unsigned flags;
  size_t extents[3];  // in elements, none of them 0
  char* memory;       // of the device

  size_t texel_bytes() const;
};
const Array& array_of(cudaArray_const_t handle, const char* caller);
size_t channels_of(const cudaChannelFormatDesc& desc,
                   const char* caller);  // that a texture can have

// --- host.cpp
void catch_faults();
std::string frames_json(const Frames& frames);  // offsets in the program's own file
