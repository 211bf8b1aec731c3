#include <algorithm>
#include <cstring>
#include <deque>

#include "runtime.hpp"

namespace {

// One pending <<<grid, block, shared, stream>>>; they nest when an argument launches something.
struct Configuration {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
  Frames frames;
};

// Of a thread, and there until the process has ended.
std::vector<Configuration>& pending() {
  thread_local auto* const made = new std::vector<Configuration>;
  return *made;
}
struct Registered {
  std::string name;
  size_t module;
};
std::map<const void*, Registered> kernels;  // by host function

bool is_empty(dim3 d) { return !d.x || !d.y || !d.z; }

// Why CUDA refuses a launch, and what it returns; cudaSuccess when the launch is legal.
struct Ruling {
  cudaError_t error = cudaSuccess;
  Refused why{};
};

uint64_t registers_of_warp(const Kernel& kernel) {
  return (uint64_t(kernel.registers) * 32 + REGISTER_UNIT - 1) / REGISTER_UNIT * REGISTER_UNIT;
}

// The blocks of a cooperative launch wait for each other, so all must run at the same time.
Ruling judge_cooperative(const Kernel& kernel, dim3 grid, uint64_t threads, size_t shared) {
  const uint64_t fit = uint64_t(blocks_per_multiprocessor(kernel, int(threads), shared)) *
                       gpu.target.multiprocessors;
  const uint64_t rest = uint64_t(grid.y) * grid.z;  // with grid.x it may exceed 64 bits
  if (grid.x <= fit / rest) return {};
  const Argument launched = rest == 1 ? Argument{"launched", grid.x} : Argument{"launched", grid};
  return {cudaErrorCooperativeLaunchTooLarge,
          {COOPERATIVE_TOO_LARGE, {{"fit", fit}, {"gpu", gpu.target.name}, launched}}};
}

Ruling judge(const Kernel& kernel, dim3 grid, dim3 block, size_t shared, bool cooperative) {
  const uint64_t threads = uint64_t(block.x) * block.y * block.z;
  if (is_empty(grid)) return {cudaErrorInvalidConfiguration, {EMPTY_GRID, {{"grid", grid}}}};
  if (grid.x > MAX_GRID_X || grid.y > MAX_GRID_YZ || grid.z > MAX_GRID_YZ)
    return {cudaErrorInvalidConfiguration, {GRID_TOO_LARGE, {{"grid", grid}}}};
  if (is_empty(block)) return {cudaErrorInvalidConfiguration, {EMPTY_BLOCK, {{"block", block}}}};
  if (threads > MAX_THREADS)
    return {cudaErrorInvalidConfiguration,
            {BLOCK_TOO_LARGE, {{"block", block}, {"threads", threads}}}};
  if (block.z > MAX_BLOCK_Z)
    return {cudaErrorInvalidConfiguration,
            {BLOCK_TOO_DEEP, {{"block", block}, {"threads", block.z}}}};
  if (threads > uint64_t(kernel.max_threads))
    return {cudaErrorInvalidValue,
            {OVER_LAUNCH_BOUND, {{"block", block}, {"most", kernel.max_threads}}}};
  const size_t total = kernel.shared_static + shared, most = gpu.target.shared_optin;
  if (total > most)
    return {cudaErrorInvalidValue,
            {SHARED_TOO_LARGE, {{"bytes", total}, {"most", most}, {"gpu", gpu.target.name}}}};
  if (shared > kernel.shared_dynamic)
    return {cudaErrorInvalidValue,
            {SHARED_NOT_RAISED, {{"bytes", shared}, {"most", kernel.shared_dynamic}}}};
  const uint64_t warps = (threads + 31) / 32;
  if (warps * registers_of_warp(kernel) > MAX_REGISTERS)
    return {cudaErrorLaunchOutOfResources,
            {TOO_MANY_REGISTERS, {{"threads", threads}, {"registers", kernel.registers}}}};
  return cooperative ? judge_cooperative(kernel, grid, threads, shared) : Ruling{};
}

bool differ(dim3 one, dim3 other) {
  return one.x != other.x || one.y != other.y || one.z != other.z;
}

// asked: by the launch, 0 where it says nothing.
Ruling judge_cluster(const Kernel& kernel, dim3 grid, dim3 asked) {
  const dim3 cluster = asked.x ? asked : kernel.cluster;
  const Argument size{"cluster", cluster};
  if (asked.x && kernel.cluster.x && differ(asked, kernel.cluster))
    return {cudaErrorInvalidClusterSize, {CLUSTERS_DIFFER, {{"own", kernel.cluster}, size}}};
  if (!cluster.x) return {};
  const uint64_t blocks = uint64_t(cluster.x) * cluster.y * cluster.z;
  if (!blocks) return {cudaErrorInvalidConfiguration, {CLUSTER_SIZE, {size}}};
  if (blocks > MAX_CLUSTER) return {cudaErrorInvalidClusterSize, {CLUSTER_SIZE, {size}}};
  if (blocks > PORTABLE_CLUSTER && !kernel.large_clusters)
    return {cudaErrorInvalidClusterSize, {CLUSTER_NOT_PORTABLE, {size}}};
  if (grid.x % cluster.x || grid.y % cluster.y || grid.z % cluster.z)
    return {cudaErrorInvalidConfiguration, {PART_OF_A_CLUSTER, {{"grid", grid}, size}}};
  if (blocks > 1 && gpu.target.major < 9)
    return {cudaErrorInvalidValue, {NO_CLUSTERS, {{"gpu", gpu.target.name}}}};
  return {};
}

// What the attributes of a launch ask for. cluster: all 0 where they say nothing.
struct Asked {
  bool cooperative = false, programmatic = false;
  dim3 cluster{0, 0, 0};
};

cudaError_t launch(Kernel& kernel, dim3 grid, dim3 block, void** arguments, size_t shared,
                   cudaStream_t stream, const Asked& asked = {}) {
  // Any kernel has registers for so many threads, one with a launch bound for as many as it says.
  constexpr uint64_t FEW_THREADS = 256;
  if (kernel.demanding && uint64_t(block.x) * block.y * block.z > FEW_THREADS) sink_measure(kernel);
  Ruling ruling = judge(kernel, grid, block, shared, asked.cooperative);
  if (ruling.error == cudaSuccess) ruling = judge_cluster(kernel, grid, asked.cluster);
  if (ruling.error != cudaSuccess) {
    ruling.why.args.insert(ruling.why.args.end(),
                           {{"kernel", kernel.name}, {"error", cudaGetErrorName(ruling.error)}});
    // Tail kernels often have nothing to do. A GPU does nothing then, and programs go on.
    if (!is_empty(grid) && !is_empty(block)) refuse(ruling.why);
    sink_refused(ruling.why);
    launch_site().clear();
    return failed(ruling.error, ruling.why);
  }
  std::vector<unsigned char> block_of_params(kernel.param_bytes());
  for (size_t i = 0; i < kernel.params.size(); ++i)
    std::memcpy(&block_of_params[kernel.params[i].first], arguments[i], kernel.params[i].second);
  sink_launch(kernel, grid, block, shared, block_of_params, stream, asked.cooperative,
              asked.programmatic, asked.cluster.x ? asked.cluster : dim3(1, 1, 1));
  launch_site().clear();
  return cudaSuccess;
}

// Names of the toolkits from CUDA 11.8 on; the numbers never change.
std::string attribute_name(int id) {
  switch (id) {
    case 1: return "cudaLaunchAttributeAccessPolicyWindow";
    case 3: return "cudaLaunchAttributeSynchronizationPolicy";
    case 4: return "cudaLaunchAttributeClusterDimension";
    case 5: return "cudaLaunchAttributeClusterSchedulingPolicyPreference";
    case 6: return "cudaLaunchAttributeProgrammaticStreamSerialization";
    case 7: return "cudaLaunchAttributeProgrammaticEvent";
    case 8: return "cudaLaunchAttributePriority";
    case 9: return "cudaLaunchAttributeMemSyncDomainMap";
    case 10: return "cudaLaunchAttributeMemSyncDomain";
    case 11: return "cudaLaunchAttributePreferredClusterDimension";
    case 12: return "cudaLaunchAttributeLaunchCompletionEvent";
    case 13: return "cudaLaunchAttributeDeviceUpdatableKernelNode";
    case 14: return "cudaLaunchAttributePreferredSharedMemoryCarveout";
    default: return "number " + std::to_string(id);
  }
}

Refusal why_refused(int id) {
  switch (id) {
    case 5:
    case 11: return CLUSTER_ATTRIBUTE;
    case 14: return CARVEOUT_ATTRIBUTE;
    case 7: return EVENT_ATTRIBUTE;
    default: return LAUNCH_ATTRIBUTE;
  }
}

// GPUs before compute capability 9.0 take the attribute and run one kernel after the other.
constexpr int PROGRAMMATIC_SINCE = 9;

Asked asked_by(const cudaLaunchConfig_t& config, const char* caller = "cudaLaunchKernelEx") {
  Asked asked;
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const cudaLaunchAttribute& attribute = config.attrs[i];
    if (attribute.id == cudaLaunchAttributeCooperative)
      asked.cooperative = attribute.val.cooperative;
    else if (attribute.id == cudaLaunchAttributeProgrammaticStreamSerialization)
      asked.programmatic = attribute.val.programmaticStreamSerializationAllowed &&
                           gpu.target.major >= PROGRAMMATIC_SINCE;
    else if (attribute.id == cudaLaunchAttributeClusterDimension)
      asked.cluster = {attribute.val.clusterDim.x, attribute.val.clusterDim.y,
                       attribute.val.clusterDim.z};
    else if (attribute.id != cudaLaunchAttributeIgnore &&
             attribute.id != cudaLaunchAttributePriority)  // as of streams: all run as one
      refuse({why_refused(attribute.id),
              {{"function", caller}, {"attribute", attribute_name(attribute.id)}}});
  }
  return asked;
}

// A cluster lies within a GPC. How many multiprocessors a GPC has differs between GPUs of one
// model; the largest clusters need 16.
constexpr uint64_t OF_A_GPC = 16;

// How many clusters of `size` blocks run at a time.
int clusters_at_a_time(const Kernel& kernel, const cudaLaunchConfig_t& config, uint64_t size) {
  const dim3 block = config.blockDim;
  const uint64_t threads = uint64_t(block.x) * block.y * block.z;
  if (!threads || threads > MAX_THREADS) return 0;
  const uint64_t each = blocks_per_multiprocessor(kernel, int(threads), config.dynamicSmemBytes);
  const uint64_t all = gpu.target.multiprocessors;
  return int(all / OF_A_GPC * (OF_A_GPC * each / size) + all % OF_A_GPC * each / size);
}

}  // namespace

Frames& launch_site() {
  thread_local auto* const made = new Frames;
  return *made;
}

size_t module_of(void** handle) { return reinterpret_cast<size_t>(*handle); }

void register_kernel(const void* function, const char* name, size_t module) {
  kernels[function] = {name, module};
}

Kernel& kernel_of(const void* function, const char* caller) {
  const auto found = kernels.find(function);
  Kernel* const kernel =
      found == kernels.end() ? nullptr : sink_kernel(found->second.name, found->second.module);
  if (!kernel) refuse({NOT_A_KERNEL, {{"function", caller}}});
  return *kernel;
}

Kernel& measured_kernel(const void* function, const char* caller) {
  Kernel& kernel = kernel_of(function, caller);
  sink_measure(kernel);
  return kernel;
}

extern "C" {

// The first call of all, before constructors of the host code's own, which may call anything.
void** __cudaRegisterFatBinary(void* fat_binary) {
  const std::lock_guard<std::recursive_mutex> alone(one_call);  // a library may be loaded late
  static std::deque<void*> handles;  // what each points to, host code only hands back
  const size_t module = sink_register(fat_binary, __builtin_return_address(0));
  return &handles.emplace_back(reinterpret_cast<void*>(module));
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) { return 1; }

void __cudaRegisterFunction(void** module, const char* function, char*, const char* name, int,
                            uint3*, uint3*, dim3*, dim3*, int*) {
  const std::lock_guard<std::recursive_mutex> alone(one_call);
  register_kernel(function, name, module_of(module));
}
// Under CUDA 13 a kernel is launched by a handle; ours is the host function itself.
cudaError_t __cudaGetKernel(cudaKernel_t* handle, const void* function) {
  *handle = static_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, CUstream_st* stream) {
  pending().push_back({grid, block, shared, stream, call_stack()});
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  if (pending().empty()) return failed(cudaErrorInvalidConfiguration, {NOT_CONFIGURED, {}});
  const Configuration& top = pending().back();
  *grid = top.grid;
  *block = top.block;
  *shared = top.shared;
  *static_cast<cudaStream_t*>(stream) = top.stream;
  launch_site() = top.frames;
  pending().pop_back();
  return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                             size_t shared, cudaStream_t stream) {
  return answer(__func__, [&](const char* caller) {
    return launch(kernel_of(function, caller), grid, block, arguments, shared, stream);
  });
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               size_t shared, cudaStream_t stream) {
  return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}
cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block,
                                        void** arguments, size_t shared, cudaStream_t stream) {
  return answer(__func__, [&](const char* caller) {
    Asked asked;
    asked.cooperative = true;
    return launch(kernel_of(function, caller), grid, block, arguments, shared, stream, asked);
  });
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                void** arguments) {
  return answer(__func__, [&](const char* caller) {
    return launch(kernel_of(function, caller), config->gridDim, config->blockDim, arguments,
                  config->dynamicSmemBytes, config->stream, asked_by(*config));
  });
}

cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* function,
                                           const cudaLaunchConfig_t* config) {
  return answer(__func__, [&](const char* caller) {
    const Kernel& kernel = measured_kernel(function, caller);
    const dim3 asked = asked_by(*config, caller).cluster;
    const Ruling ruling = judge_cluster(kernel, config->gridDim, asked);
    if (ruling.error != cudaSuccess) return failed(ruling.error, caller);
    const dim3 cluster = asked.x ? asked : kernel.cluster;
    const uint64_t size = cluster.x ? uint64_t(cluster.x) * cluster.y * cluster.z : 1;
    *clusters = clusters_at_a_time(kernel, *config, size);
    return cudaSuccess;
  });
}
cudaError_t cudaOccupancyMaxPotentialClusterSize(int* size, const void* function,
                                                 const cudaLaunchConfig_t* config) {
  return answer(__func__, [&](const char* caller) {
    const Kernel& kernel = measured_kernel(function, caller);
    if (gpu.target.major < 9) return failed(cudaErrorInvalidValue, caller);
    const dim3 own = kernel.cluster;  // what it declares is the only size that it has
    uint64_t most = own.x                   ? uint64_t(own.x) * own.y * own.z
                    : kernel.large_clusters ? MAX_CLUSTER
                                            : PORTABLE_CLUSTER;
    while (most && !clusters_at_a_time(kernel, *config, most)) most = own.x ? 0 : most / 2;
    *size = int(most);
    return cudaSuccess;
  });
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  return answer(__func__, [&](const char* caller) {
    Kernel& kernel = kernel_of(function, caller);
    if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
      if (value < 0 || kernel.shared_static + value > gpu.target.shared_optin)
        return failed(cudaErrorInvalidValue, caller);
      kernel.shared_dynamic = value;
      return cudaSuccess;
    }
    if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) {
      if (value < -1 || value > 100) return failed(cudaErrorInvalidValue, caller);
      kernel.carveout = value;
      return cudaSuccess;
    }
    if (attribute == cudaFuncAttributeNonPortableClusterSizeAllowed) {
      kernel.large_clusters = value != 0;
      return cudaSuccess;
    }
    refuse({ATTRIBUTE, {{"function", caller}, {"attribute", int(attribute)}}});
  });
}

cudaError_t cudaFuncSetCacheConfig(const void* function, cudaFuncCache) {
  return answer(__func__, [&](const char* caller) {
    kernel_of(function, caller);
    return cudaSuccess;
  });
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  return answer(__func__, [&](const char* caller) {
    const Kernel& kernel = measured_kernel(function, caller);
    const Target& target = gpu.target;
    std::memset(attributes, 0, sizeof *attributes);
    attributes->sharedSizeBytes = kernel.shared_static;
    const uint64_t warps = MAX_REGISTERS / std::max<uint64_t>(registers_of_warp(kernel), 1);
    attributes->maxThreadsPerBlock = int(std::min<uint64_t>(warps * 32, kernel.max_threads));
    attributes->numRegs = kernel.registers;
    attributes->localSizeBytes = kernel.local_bytes;
    attributes->constSizeBytes = kernel.constant_bytes;
    attributes->ptxVersion = attributes->binaryVersion = target.major * 10 + target.minor;
    attributes->maxDynamicSharedSizeBytes = int(kernel.shared_dynamic);
    attributes->preferredShmemCarveout = kernel.carveout;
    return cudaSuccess;
  });
}
}
