// CUDA's driver, for programs that call it: each call is the runtime's, by another name. Modules
// are loaded from PTX; a CUfunction is the address of a kernel, which the runtime's calls take,
// too.
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

#include "sink.hpp"

namespace {

bool initialised = false;
thread_local CUcontext current = nullptr;
constexpr CUdevice DEVICE = 0;

struct Module {
  size_t number;
  std::map<std::string, std::pair<void*, size_t>> variables{};
};
std::map<const void*, Module>& modules() {
  static auto* const made = new std::map<const void*, Module>;
  return *made;
}

void** places(CUdeviceptr* at) { return reinterpret_cast<void**>(at); }
void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }
CUcontext context() { return reinterpret_cast<CUcontext>(&initialised); }  // there is one

CUresult result_of(CUresult result) { return result; }
// Most have the runtime's numbers.
CUresult result_of(cudaError_t error) {
  switch (error) {
    case cudaErrorInvalidConfiguration:
    case cudaErrorInvalidPitchValue:
    case cudaErrorInvalidSymbol:
    case cudaErrorInvalidMemcpyDirection: return CUDA_ERROR_INVALID_VALUE;
    case cudaErrorInvalidDeviceFunction: return CUDA_ERROR_INVALID_HANDLE;
    default: return CUresult(error);
  }
}

// Does `work` in the name of the driver's function. The runtime makes what it needs by itself.
template <class Work>
CUresult call(bool needs_context, const char* name, Work work) {
  const std::string spoken = std::string(name).substr(0, std::string(name).find("_v"));
  const Spoken as(spoken.c_str());
  return result_of(answer(name, [&](const char* caller) {
    if (!initialised && !runtime_used) refuse({NO_DRIVER, {{"function", caller}}});
    if (needs_context && !current && !runtime_used) refuse({NO_CONTEXT, {{"function", caller}}});
    return cudaError_t(result_of(work(caller)));
  }));
}

Module& module_of(CUmodule module, const char* caller) {
  const auto found = modules().find(module);
  if (found == modules().end()) refuse({NO_MODULE, {{"function", caller}}});
  return found->second;
}

cudaError_t load(CUmodule* made, const void* image, const char* caller) {
  const std::string ptx = ptx_in(image);
  if (ptx.empty()) refuse({NO_PTX, {{"function", caller}}});
  auto* const key = new char;
  Module& module = modules().try_emplace(key, Module{register_ptx(ptx)}).first->second;
  std::istringstream in(ask("{\"type\":\"variables\",\"module\":" + number(module.number) + "}"));
  size_t bytes;
  for (std::string name; in >> name >> bytes;)
    module.variables[name] = {sink_variable(name, module.number, bytes), bytes};
  *made = reinterpret_cast<CUmodule>(key);
  return cudaSuccess;
}

cudaError_t load_file(CUmodule* made, const char* path, const char* caller) {
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse({NO_FILE, {{"function", caller}, {"path", path}}});
  const std::string image(std::istreambuf_iterator<char>(file), {});
  return load(made, image.c_str(), caller);
}

cudaError_t find_kernel(CUfunction* function, CUmodule from, const char* name, const char* caller) {
  Module& module = module_of(from, caller);
  load_modules();
  Kernel* const kernel = sink_kernel(name, module.number);
  if (!kernel) refuse({NO_SUCH_NAME, {{"function", caller}, {"name", name}}});
  register_kernel(kernel, name, module.number);
  *function = reinterpret_cast<CUfunction>(kernel);
  return cudaSuccess;
}

cudaError_t find_variable(CUdeviceptr* address, size_t* bytes, CUmodule from, const char* name,
                          const char* caller) {
  Module& module = module_of(from, caller);
  const auto found = module.variables.find(name);
  if (found == module.variables.end())
    refuse({NO_SUCH_NAME, {{"function", caller}, {"name", name}}});
  load_modules();
  if (address) *address = reinterpret_cast<CUdeviceptr>(found->second.first);
  if (bytes) *bytes = found->second.second;
  return cudaSuccess;
}

// The parameters in a buffer of the program's own.
std::optional<std::vector<void*>> from_buffer(const Kernel& kernel, void** extra) {
  char* buffer = nullptr;
  size_t bytes = 0;
  for (; extra && *extra; extra += 2)
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = static_cast<char*>(extra[1]);
    else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) bytes = *static_cast<size_t*>(extra[1]);
  if (bytes < kernel.param_bytes() || (bytes && !buffer)) return {};
  std::vector<void*> arguments;
  arguments.reserve(kernel.params.size());
  for (const auto& [offset, _] : kernel.params) arguments.push_back(buffer + offset);
  return arguments;
}

cudaError_t launch(CUfunction function, dim3 grid, dim3 block, unsigned shared, CUstream stream,
                   void** params, void** extra, const char* caller, bool together = false) {
  std::optional<std::vector<void*>> own;
  if (!params) own = from_buffer(kernel_of(function, caller), extra);
  if (!params && !own)
    refuse({FAILED, {{"function", caller}, {"error", "CUDA_ERROR_INVALID_VALUE"}}});
  if (own) params = own->data();
  return together ? cudaLaunchCooperativeKernel(function, grid, block, params, shared, stream)
                  : cudaLaunchKernel(function, grid, block, params, shared, stream);
}

cudaError_t attribute_of(int* value, CUfunction_attribute attribute, CUfunction function,
                         const char* caller) {
  cudaFuncAttributes a;
  const cudaError_t error = cudaFuncGetAttributes(&a, function);
  if (error) return error;
  const auto listed = [](auto... all) { return std::array{int(all)...}; };
  const auto values = listed(a.maxThreadsPerBlock, a.sharedSizeBytes, a.constSizeBytes,
                             a.localSizeBytes, a.numRegs, a.ptxVersion, a.binaryVersion,
                             a.cacheModeCA, a.maxDynamicSharedSizeBytes, a.preferredShmemCarveout);
  if (unsigned(attribute) >= std::size(values))
    refuse({ATTRIBUTE, {{"function", caller}, {"attribute", int(attribute)}}});
  *value = values[attribute];
  return cudaSuccess;
}

template <class Value>
cudaError_t fill(CUdeviceptr to, Value value, size_t count) {
  const std::vector<Value> values(count, value);
  return cudaMemcpy(pointer(to), values.data(), count * sizeof value, cudaMemcpyHostToDevice);
}

cudaError_t copy_rows(const CUDA_MEMCPY2D& c) {
  if (c.srcMemoryType == CU_MEMORYTYPE_ARRAY || c.dstMemoryType == CU_MEMORYTYPE_ARRAY)
    refuse({DRIVER_CALL, {{"function", "cuMemcpy2D of arrays"}}});
  const bool from_host = c.srcMemoryType == CU_MEMORYTYPE_HOST;
  const bool to_host = c.dstMemoryType == CU_MEMORYTYPE_HOST;
  const size_t source_pitch = c.srcPitch ? c.srcPitch : c.WidthInBytes;
  const size_t target_pitch = c.dstPitch ? c.dstPitch : c.WidthInBytes;
  const auto source = static_cast<const char*>(from_host ? c.srcHost : pointer(c.srcDevice));
  const auto target = static_cast<char*>(to_host ? c.dstHost : pointer(c.dstDevice));
  return cudaMemcpy2D(target + c.dstY * target_pitch + c.dstXInBytes, target_pitch,
                      source + c.srcY * source_pitch + c.srcXInBytes, source_pitch, c.WidthInBytes,
                      c.Height, cudaMemcpyDefault);
}

}  // namespace

// Functions whose later versions have other names are called by the newest.
void* entry_point(const std::string& symbol) {
  for (const char* version : {"_v4", "_v3", "_v2", ""})
    if (void* const found = dlsym(RTLD_DEFAULT, (symbol + version).c_str())) return found;
  return nullptr;
}

extern "C" {

// Those that calls of ours return, and what programs look for.
#define DRIVER_ERRORS(EACH)                                                                \
  EACH(SUCCESS), EACH(ERROR_INVALID_VALUE), EACH(ERROR_OUT_OF_MEMORY),                     \
      EACH(ERROR_NOT_INITIALIZED), EACH(ERROR_INVALID_DEVICE), EACH(ERROR_INVALID_IMAGE),  \
      EACH(ERROR_INVALID_CONTEXT), EACH(ERROR_FILE_NOT_FOUND), EACH(ERROR_INVALID_HANDLE), \
      EACH(ERROR_NOT_FOUND), EACH(ERROR_NOT_READY), EACH(ERROR_LAUNCH_OUT_OF_RESOURCES),   \
      EACH(ERROR_LAUNCH_TIMEOUT), EACH(ERROR_ASSERT), EACH(ERROR_LAUNCH_FAILED),           \
      EACH(ERROR_NOT_SUPPORTED)

CUresult cuGetErrorName(CUresult error, const char** name) {
  *name = "CUDA_ERROR_UNKNOWN";
#define NAMED(which) \
  std::pair { CUDA_##which, "CUDA_" #which }
  for (const auto& [each, own] : {DRIVER_ERRORS(NAMED)})
    if (each == error) *name = own;
#undef NAMED
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult error, const char** text) {
  return *text = cudaGetErrorString(cudaError_t(error)), CUDA_SUCCESS;
}

#define CALL(name, parameters, ...)                                                              \
  CUresult name parameters {                                                                     \
    return call(false, #name, [&]([[maybe_unused]] const char* caller) { return __VA_ARGS__; }); \
  }
#define WORK(name, parameters, ...)                                                             \
  CUresult name parameters {                                                                    \
    return call(true, #name, [&]([[maybe_unused]] const char* caller) { return __VA_ARGS__; }); \
  }

CUresult cuInit(unsigned) { return initialised = true, CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int* version) { return result_of(give(version, CUDA_VERSION)); }

CALL(cuDeviceGetCount, (int* count), give(count, 1))
CALL(cuDeviceGet, (CUdevice * device, int number),
     number == 0 ? give(device, DEVICE) : cudaErrorInvalidDevice)
CALL(cuDeviceGetName, (char* text, int bytes, CUdevice),
     (std::snprintf(text, size_t(bytes), "%s", gpu.target.name.c_str()), CUDA_SUCCESS))
CALL(cuDeviceGetUuid, (CUuuid * uuid, CUdevice), give(uuid, CUuuid{}))
CALL(cuDeviceTotalMem, (size_t* bytes, CUdevice), give(bytes, gpu.target.memory_bytes))
CALL(cuDeviceGetAttribute, (int* value, CUdevice_attribute attribute, CUdevice device),
     cudaDeviceGetAttribute(value, cudaDeviceAttr(attribute), device))
CALL(cuDeviceComputeCapability, (int* major, int* minor, CUdevice),
     (*major = gpu.target.major, give(minor, gpu.target.minor)))

CALL(cuDevicePrimaryCtxRetain, (CUcontext * made, CUdevice), give(made, context()))
CALL(cuDevicePrimaryCtxRelease, (CUdevice), CUDA_SUCCESS)
CALL(cuDevicePrimaryCtxReset, (CUdevice), cudaDeviceReset())
CALL(cuDevicePrimaryCtxSetFlags, (CUdevice, unsigned), CUDA_SUCCESS)
CALL(cuDevicePrimaryCtxGetState, (CUdevice, unsigned* flags, int* active),
     (*flags = 0, give(active, 1)))
#if CUDA_VERSION >= 13000
CALL(cuCtxCreate, (CUcontext * made, CUctxCreateParams*, unsigned, CUdevice),
     give(made, current = context()))
#else
CALL(cuCtxCreate, (CUcontext * made, unsigned, CUdevice), give(made, current = context()))
#endif
CALL(cuCtxDestroy, (CUcontext), (current = nullptr, CUDA_SUCCESS))
CALL(cuCtxSetCurrent, (CUcontext now), (current = now, CUDA_SUCCESS))
CALL(cuCtxPushCurrent, (CUcontext now), (current = now, CUDA_SUCCESS))
CALL(cuCtxPopCurrent, (CUcontext * was), (was ? void(*was = current) : void(), CUDA_SUCCESS))
CALL(cuCtxGetCurrent, (CUcontext * now), give(now, runtime_used ? context() : current))
WORK(cuCtxGetDevice, (CUdevice * device), give(device, DEVICE))
WORK(cuCtxSynchronize, (), cudaDeviceSynchronize())
WORK(cuCtxSetLimit, (CUlimit limit, size_t value), cudaDeviceSetLimit(cudaLimit(limit), value))
WORK(cuCtxGetLimit, (size_t* value, CUlimit limit), cudaDeviceGetLimit(value, cudaLimit(limit)))
WORK(cuCtxSetCacheConfig, (CUfunc_cache), CUDA_SUCCESS)
WORK(cuCtxGetStreamPriorityRange, (int* least, int* greatest),
     cudaDeviceGetStreamPriorityRange(least, greatest))

WORK(cuModuleLoad, (CUmodule * made, const char* path), load_file(made, path, caller))
WORK(cuModuleLoadData, (CUmodule * made, const void* image), load(made, image, caller))
WORK(cuModuleLoadDataEx, (CUmodule * made, const void* image, unsigned, CUjit_option*, void**),
     load(made, image, caller))
WORK(cuModuleLoadFatBinary, (CUmodule * made, const void* image), load(made, image, caller))
WORK(cuModuleUnload, (CUmodule module),
     (module_of(module, caller), modules().erase(module), CUDA_SUCCESS))
WORK(cuModuleGetFunction, (CUfunction * function, CUmodule module, const char* name),
     find_kernel(function, module, name, caller))
WORK(cuModuleGetGlobal, (CUdeviceptr * at, size_t* bytes, CUmodule module, const char* name),
     find_variable(at, bytes, module, name, caller))

WORK(cuLaunchKernel,
     (CUfunction function, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by,
      unsigned bz, unsigned shared, CUstream stream, void** params, void** extra),
     launch(function, {x, y, z}, {bx, by, bz}, shared, stream, params, extra, caller))
WORK(cuLaunchCooperativeKernel,
     (CUfunction function, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by,
      unsigned bz, unsigned shared, CUstream stream, void** params),
     launch(function, {x, y, z}, {bx, by, bz}, shared, stream, params, nullptr, caller, true))
WORK(cuLaunchHostFunc, (CUstream stream, CUhostFn work, void* data),
     cudaLaunchHostFunc(stream, work, data))
WORK(cuFuncGetAttribute, (int* value, CUfunction_attribute attribute, CUfunction function),
     attribute_of(value, attribute, function, caller))
WORK(cuFuncSetAttribute, (CUfunction function, CUfunction_attribute attribute, int value),
     cudaFuncSetAttribute(function, cudaFuncAttribute(attribute), value))
WORK(cuFuncSetCacheConfig, (CUfunction, CUfunc_cache), CUDA_SUCCESS)
WORK(cuOccupancyMaxPotentialBlockSize,
     (int* blocks, int* threads, CUfunction function, CUoccupancyB2DSize shared_of, size_t shared,
      int limit),
     cudaOccupancyMaxPotentialBlockSizeVariableSMem(
         blocks, threads, function, [&](int size) { return shared_of ? shared_of(size) : shared; },
         limit))
WORK(cuOccupancyMaxActiveBlocksPerMultiprocessor,
     (int* blocks, CUfunction function, int threads, size_t shared),
     cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared))

WORK(cuMemAlloc, (CUdeviceptr * at, size_t bytes), cudaMalloc(places(at), bytes))
WORK(cuMemAllocManaged, (CUdeviceptr * at, size_t bytes, unsigned flags),
     cudaMallocManaged(places(at), bytes, flags))
WORK(cuMemAllocPitch, (CUdeviceptr * at, size_t* pitch, size_t width, size_t height, unsigned),
     cudaMallocPitch(places(at), pitch, width, height))
WORK(cuMemHostGetDevicePointer, (CUdeviceptr * at, void* host, unsigned flags),
     cudaHostGetDevicePointer(places(at), host, flags))
WORK(cuMemFree, (CUdeviceptr at), cudaFree(pointer(at)))
WORK(cuMemAllocHost, (void** at, size_t bytes), cudaMallocHost(at, bytes))
WORK(cuMemHostAlloc, (void** at, size_t bytes, unsigned flags), cudaHostAlloc(at, bytes, flags))
WORK(cuMemFreeHost, (void* at), cudaFreeHost(at))
WORK(cuMemHostRegister, (void* at, size_t bytes, unsigned flags),
     cudaHostRegister(at, bytes, flags))
WORK(cuMemHostUnregister, (void* at), cudaHostUnregister(at))
WORK(cuMemGetInfo, (size_t* rest, size_t* total), cudaMemGetInfo(rest, total))

// Copies, and the same in a stream.
#define COPY(name, to, from, kind)                                                              \
  WORK(name, (to target, from source, size_t bytes),                                            \
       cudaMemcpy(pointer(CUdeviceptr(target)), pointer(CUdeviceptr(source)), bytes, kind))     \
  WORK(name##Async, (to target, from source, size_t bytes, CUstream stream),                    \
       cudaMemcpyAsync(pointer(CUdeviceptr(target)), pointer(CUdeviceptr(source)), bytes, kind, \
                       stream))
COPY(cuMemcpy, CUdeviceptr, CUdeviceptr, cudaMemcpyDefault)
COPY(cuMemcpyHtoD, CUdeviceptr, const void*, cudaMemcpyHostToDevice)
COPY(cuMemcpyDtoH, void*, CUdeviceptr, cudaMemcpyDeviceToHost)
COPY(cuMemcpyDtoD, CUdeviceptr, CUdeviceptr, cudaMemcpyDeviceToDevice)
#undef COPY
WORK(cuMemcpy2D, (const CUDA_MEMCPY2D* copy), copy_rows(*copy))
WORK(cuMemcpy2DUnaligned, (const CUDA_MEMCPY2D* copy), copy_rows(*copy))
WORK(cuMemcpy2DAsync, (const CUDA_MEMCPY2D* copy, CUstream), copy_rows(*copy))

#define FILL(name, type, ...)                                         \
  WORK(name, (CUdeviceptr at, type value, size_t count), __VA_ARGS__) \
  WORK(name##Async, (CUdeviceptr at, type value, size_t count, CUstream), __VA_ARGS__)
FILL(cuMemsetD8, unsigned char, cudaMemset(pointer(at), value, count))
FILL(cuMemsetD16, unsigned short, fill(at, value, count))
FILL(cuMemsetD32, unsigned, fill(at, value, count))
#undef FILL

WORK(cuStreamCreate, (CUstream * stream, unsigned flags), cudaStreamCreateWithFlags(stream, flags))
WORK(cuStreamCreateWithPriority, (CUstream * stream, unsigned flags, int priority),
     cudaStreamCreateWithPriority(stream, flags, priority))
WORK(cuStreamDestroy, (CUstream stream), cudaStreamDestroy(stream))
WORK(cuStreamSynchronize, (CUstream stream), cudaStreamSynchronize(stream))
WORK(cuStreamQuery, (CUstream stream), cudaStreamQuery(stream))
WORK(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags),
     cudaStreamWaitEvent(stream, event, flags))
WORK(cuStreamAddCallback, (CUstream stream, CUstreamCallback work, void* data, unsigned),
     (work(stream, CUDA_SUCCESS, data), CUDA_SUCCESS))
WORK(cuEventCreate, (CUevent * event, unsigned flags), cudaEventCreateWithFlags(event, flags))
WORK(cuEventRecord, (CUevent event, CUstream stream), cudaEventRecord(event, stream))
WORK(cuEventSynchronize, (CUevent event), cudaEventSynchronize(event))
WORK(cuEventQuery, (CUevent event), cudaEventQuery(event))
WORK(cuEventElapsedTime, (float* milliseconds, CUevent first, CUevent last),
     cudaEventElapsedTime(milliseconds, first, last))
WORK(cuEventDestroy, (CUevent event), cudaEventDestroy(event))
}
