// Our libcudart: what host code calls instead of CUDA's runtime. It checks each call as CUDA does
// and passes what it asks of the device on to a sink, which whoever links this provides.
//
// - launch.cpp: kernels and their launches
// - memory.cpp: allocations, copies, symbols
// - pitched.cpp: pitched and managed memory, limits of the device
// - device.cpp: answers about the device and its occupancy
// - order.cpp: streams, events, synchronisation
// - tensor_map.cpp: the driver's calls that host code asks the runtime for
// - errors.cpp: errors
// - text.cpp: what sinks write and read as text
//
// Two sinks: a recorder, which writes down what is asked and refuses what it cannot, and one that
// has it done at once (`sink_executes`). Calls run one at a time, so plain globals will do. CUDA's
// limits (MAX_THREADS and others) are macros, from ptxsim/plan/limits.py.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <iosfwd>
#include <map>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

// The device that host code sees. Clocks are in kHz, as in cudaDeviceProp.
struct Target {
  std::string name;
  int major, minor, multiprocessors, threads_per_multiprocessor, blocks_per_multiprocessor;
  int registers_per_multiprocessor, l2_bytes, clock_khz, memory_clock_khz, bus_bits;
  size_t shared_per_multiprocessor, shared_optin, shared_reserved, memory_bytes;
};

struct Kernel {
  std::string name;  // mangled
  size_t module;     // as sink_register numbers them
  int registers;
  size_t shared_static;
  int max_threads;
  dim3 cluster;                                   // as __cluster_dims__ says; all 0 without it
  std::vector<std::pair<size_t, size_t>> params;  // offset and size, from the PTX
  size_t shared_dynamic = 0;  // the most a launch may ask for; cudaFuncSetAttribute changes it
  int carveout = -1;
  bool measured = false;                       // whether registers and the next two are ptxas's
  size_t local_bytes = 0, constant_bytes = 0;  // of a thread; of its module
  bool demanding = false;                      // it may need more registers than a large block has
  bool large_clusters = false;                 // of more than 8 blocks, which not every GPU can run

  size_t param_bytes() const {
    return params.empty() ? 0 : params.back().first + params.back().second;
  }
};

struct Gpu {
  Target target;
  std::map<std::string, Kernel> kernels;  // by mangled name
};
extern Gpu gpu;  // the sink fills it in before host code runs

using Frames = std::vector<void*>;

// The rows of the sink's table of refusals, whose names are handed to the compiler.
enum Refusal { REFUSALS };

// What a sentence needs: a name in it, and what stands there. Names may be mangled.
struct Argument {
  const char* name;
  std::string text;

  Argument(const char* name, std::string text) : name(name), text(std::move(text)) {}
  Argument(const char* name, dim3 d);
  template <class Integer, class = std::enable_if_t<std::is_integral_v<Integer>>>
  Argument(const char* name, Integer value) : name(name), text(std::to_string(value)) {}
};

// Why a call is refused.
struct Refused {
  Refusal refusal;
  std::vector<Argument> args;
  const void* address = nullptr;  // of memory that it is about, as far as host code gave one
};

// What a sink throws where a call fails and host code may go on.
struct CallFailed : std::exception {
  cudaError_t error;
  explicit CallFailed(cudaError_t error) : error(error) {}
};

extern std::recursive_mutex one_call;  // at a time; a callback may make others
extern cudaError_t sink_broken;        // what a kernel ended with, and every call from then on

// Another library's call that is made of the runtime's: they have its name.
extern thread_local const char* spoken_as;
extern thread_local bool runtime_used;
struct Spoken {
  const char* before = spoken_as;
  explicit Spoken(const char* name) { spoken_as = name; }
  ~Spoken() { spoken_as = before; }
};

// Answers one of CUDA's functions, whose name is `caller`.
template <class Work>
cudaError_t answer(const char* caller, Work work) {
  const std::lock_guard<std::recursive_mutex> alone(one_call);
  if (spoken_as) caller = spoken_as;
  else runtime_used = true;
  if (sink_broken) return sink_broken;
  try {
    return work(caller);
  } catch (const CallFailed& failed) {
    return failed.error;
  }
}

// --- the sink: what whoever links this provides
extern const bool sink_executes;  // at once: host code may read what it gets from the device
// Called first of all, when a library of host code registers its kernels; `within` lies in it. The
// number of the module, in which names are looked up: another may have the same.
size_t sink_register(const void* fat_binary, const void* within);
Kernel* sink_kernel(const std::string& name, size_t module);  // mangled; null: there is none
void sink_measure(Kernel& kernel);  // by ptxas, where the sink has not done it before
// The address of a variable that host code registers, or null where it is given when asked for.
void* sink_variable(const std::string& name, size_t module, size_t bytes);
void sink_share(void* address, size_t bytes);  // device memory, with host code
// Lets kernels see memory of the host's own, and no longer.
cudaError_t sink_pin(void* host, size_t bytes, const char* caller);
cudaError_t sink_unpin(void* host, const char* caller);
double sink_clock();  // milliseconds, by which events are apart
void sink_elapsed();  // notes that host code asks how far they are
// Ends the call, or host code's work, here or where `frames` say.
[[noreturn]] void refuse(const Refused& refused);
[[noreturn]] void refuse(const Refused& refused, const Frames& frames);
Frames call_stack();
Frames site();  // of the launch or the call that is being recorded
bool in_device_range(const void* address);
struct Place { size_t allocation, delta; };
void* sink_allocate(const std::string& name, size_t bytes, const std::string& symbol = "");
// Operations take the stream that they are issued to. `ordered` ones wait for their turn in it.
void* sink_allocate_workspace(size_t bytes, bool ordered, cudaStream_t stream);
size_t sink_workspace_bytes();  // of live workspaces
// Refuses what is not host code's to free, in the name of `caller`.
void sink_free(size_t allocation, bool ordered, cudaStream_t stream, const char* caller);
void sink_synchronise(const std::string& order);  // as order_on gives it
// The live allocation that holds [address, address + bytes]; false when there is none.
bool sink_find(const void* address, size_t bytes, Place& place);
bool sink_freed(const void* address);  // inside an allocation that was freed
void sink_launch(const Kernel& kernel, dim3 grid, dim3 block, size_t shared,
                 const std::vector<unsigned char>& params, cudaStream_t stream, bool cooperative,
                 bool programmatic, dim3 cluster);
// Rows of `bytes`; pitches are from the start of one to the next.
struct Rows { size_t bytes, count = 1, source_pitch = 0, target_pitch = 0; };
// Several rows only where the sink executes.
void sink_memset(Place place, int value, const Rows& rows, cudaStream_t stream);
void sink_copy(Place source, Place target, const Rows& rows, cudaStream_t stream);
// To host memory; only where the sink executes.
void sink_read(void* target, Place source, const Rows& rows, bool blocking, cudaStream_t stream);
void sink_asked();  // host code has asked for the last error, and there is one
// From host memory; several rows only where the sink executes. blocking: the host waits for the
// device before it goes on.
void sink_write(Place target, const void* source, const Rows& rows, bool blocking,
                cudaStream_t stream);
// To a variable that has no address yet.
void sink_symbol(const std::string& symbol, size_t delta, const void* source, size_t bytes,
                 bool blocking, cudaStream_t stream);
// What CUDA refuses of a call that goes on. bytes: of memory that was asked for.
void sink_refused(const Refused& refused, size_t bytes = 0);
size_t sink_place();  // of the next operation in this call

// --- memory.cpp
// Checks the direction, and that all rows lie within allocations.
cudaError_t copy_rows(void* target, const void* source, const Rows& rows, cudaMemcpyKind kind,
                      bool blocking, cudaStream_t stream, const char* caller);
cudaError_t fill(void* address, int value, const Rows& rows, cudaStream_t stream,
                 const char* caller);
void copy_in_rows(void* target, const void* source, const Rows& rows);

// --- launch.cpp
// Where the <<<>>> stands that this thread is launching, else empty.
Frames& launch_site();
size_t module_of(void** handle);  // as __cudaRegisterFatBinary gave it
// `function` stands for a kernel from now on.
void register_kernel(const void* function, const char* name, size_t module);
Kernel& kernel_of(const void* function, const char* caller);
Kernel& measured_kernel(const void* function, const char* caller);

// --- device.cpp
// Blocks of one multiprocessor; 0 when a block of so many threads cannot run at all.
int blocks_per_multiprocessor(const Kernel& kernel, int threads, size_t dynamic);

// --- pitched.cpp
bool is_managed(const void* address);
bool is_pinned(const void* address);  // what is_managed, by cudaMallocHost
size_t device_stack_bytes();          // of a thread, as cudaDeviceSetLimit left it

// --- order.cpp
// What the next operation, on this stream, comes after: a field of it in JSON, or "" for all
// others.
std::string order_on(cudaStream_t stream, bool host_waits = false);
// Notes that the next operation is a launch; whether what was done last in this call, by whatever
// stream, is a launch into the same one. Only such a launch may begin before that one has ended.
bool order_launch(cudaStream_t stream);
bool order_has_streams();  // others than the default stream
bool order_may_differ();   // from the program's: some streams do not wait for each other
void order_host_sees(cudaStream_t stream);  // that all is done that it was asked for
void order_wait_for_device();               // the host does, in the next operation
void order_end_call();

// --- tensor_map.cpp
void* entry_point(const std::string& symbol);  // of the driver; null: it has none

// --- text.cpp
std::string number(uint64_t value);
std::string truth(bool value);
std::string triple(dim3 d);
std::string json_text(const std::string& text);
std::istream& operator>>(std::istream& in, Target& target);  // its name in the first line

// --- errors.cpp
cudaError_t failed(cudaError_t error, const char* function);  // remembers it as the last error
cudaError_t failed(cudaError_t error, const Refused& refused);
void forget_error();
void driver_failed(const Refused& refused);  // the same for the driver, whose errors do not last
std::string json(const Refused& refused);
std::string last_failure_json();  // null, or what failed last
