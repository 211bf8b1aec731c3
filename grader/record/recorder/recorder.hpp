// The recorder loads a submission's host code, calls its entry point three times per problem size
// and writes down what run_custom asks of ptxsim's stand-in for CUDA's runtime, whose sink plan.cpp
// is.
//
// - main.cpp: reads the request, forks one child per size, relays the replies
// - cage.cpp: leaves a child nothing but its memory and the pipe for its reply
// - private_memory.cpp: replaces what is mapped from files by copies
// - child.cpp: the life of one child: loads the host code, calls it, tells how it ended
// - unresolved.cpp, threads.cpp: calls of what nobody defines, and of what nobody may have
// - plan.cpp: what is recorded, as the JSON of grader.record.calls.Recorded
//
// Everything below is one process per problem size, with one thread: plain globals will do.
// Bounds and addresses (MAX_LAUNCHES, FIRST_ADDRESS and others) are macros from record/calls.py.
#pragma once

#include <linux/filter.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime.hpp"

// One size of the problem: the vectors that run_custom is given, and its other arguments.
struct Size {
  std::vector<size_t> counts;  // elements of each vector
  std::vector<int> dims;
  std::vector<uint64_t> scalars;  // the bytes of each, filled up with zeros
};

// What every child may know. The sizes are not in it: each child gets its own, in its memory alone.
struct Request {
  std::string host_code;            // the library, as its file holds it
  std::vector<sock_filter> filter;  // of system calls; empty where the kernel has none
  double seconds;                   // for one size; time in which others run instead is not counted
  double wall_seconds;
  std::vector<std::pair<std::string, size_t>> vectors;  // name, and bytes of an element
  size_t dims, scalars;                                 // arguments that are no vectors
};

extern Request request;

// --- main.cpp
bool send_all(int fd, const char* data, size_t bytes);

// --- private_memory.cpp
bool own_all_memory();

// --- cage.cpp
// For the rest of this process's life. `reply` becomes REPLY_FD; what is printed goes `nowhere`.
void lock_down(int reply, int nowhere);

// --- child.cpp
[[noreturn]] void run_child(const Size& size);
// The innermost frames in the host library, as its offsets, with commas between them.
std::string call_site();

// --- unresolved.cpp
[[noreturn]] void refuse_call(const std::string& function);  // mangled
void stub_unresolved(const void* within);                    // a library of host code

// --- plan.cpp
std::vector<void*> plan_begin(const Size& size);  // the addresses of its vectors
void plan_end_call();  // refuses a call without launches, memsets and copies on the device
std::string plan_json();
