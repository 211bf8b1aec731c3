#include <cstring>

#include "recorder.hpp"

namespace {

// One pending <<<grid, block, shared, stream>>>; they nest when an argument launches something.
struct Configuration {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
  Frames frames;
};

std::vector<Configuration> pending;
std::map<const void*, Kernel*> kernels;

std::string text(dim3 d) {
  return "(" + std::to_string(d.x) + ", " + std::to_string(d.y) + ", " + std::to_string(d.z) + ")";
}

// What CUDA would return, and why; an empty string when the launch is legal.
struct Refusal {
  cudaError_t error;
  std::string why;
};

// The blocks of a cooperative launch wait for each other, so all must run at the same time.
Refusal judge_cooperative(const Kernel& kernel, dim3 grid, uint64_t threads, size_t shared) {
  const uint64_t fit = uint64_t(blocks_per_multiprocessor(kernel, int(threads), shared)) *
                       request.target.multiprocessors;
  const uint64_t rest = uint64_t(grid.y) * grid.z;  // with grid.x it may exceed 64 bits
  if (grid.x <= fit / rest) return {cudaSuccess, ""};
  return {cudaErrorCooperativeLaunchTooLarge,
          "in a cooperative launch all blocks run at the same time; " + std::to_string(fit) +
              " blocks fit on the " + request.target.name + ", " +
              (rest == 1 ? std::to_string(grid.x) : text(grid)) + " were launched"};
}

Refusal judge(const Kernel& kernel, dim3 grid, dim3 block, size_t shared, bool cooperative) {
  const uint64_t threads = uint64_t(block.x) * block.y * block.z;
  if (!grid.x || !grid.y || !grid.z)
    return {cudaErrorInvalidConfiguration, "the grid " + text(grid) + " has a zero"};
  if (grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535)
    return {cudaErrorInvalidConfiguration,
            "the grid " + text(grid) + " exceeds (2147483647, 65535, 65535)"};
  if (!block.x || !block.y || !block.z)
    return {cudaErrorInvalidConfiguration, "the block " + text(block) + " has a zero"};
  if (threads > 1024 || block.z > 64)
    return {cudaErrorInvalidConfiguration,
            "the block " + text(block) + " exceeds 1024 threads, or 64 in z"};
  if (threads > uint64_t(kernel.max_threads))
    return {cudaErrorInvalidValue, "the block " + text(block) +
                                       " exceeds the kernel's launch bound of " +
                                       std::to_string(kernel.max_threads) + " threads"};
  const size_t total = kernel.shared_static + shared;
  if (total > request.target.shared_optin)
    return {cudaErrorInvalidValue, std::to_string(total) + " bytes of shared memory exceed the " +
                                       std::to_string(request.target.shared_optin) +
                                       " that a block can have on " + request.target.name};
  if (shared > kernel.shared_dynamic)
    return {cudaErrorInvalidValue,
            std::to_string(shared) +
                " bytes of dynamic shared memory exceed the kernel's limit of " +
                std::to_string(kernel.shared_dynamic) +
                ": raise cudaFuncAttributeMaxDynamicSharedMemorySize with cudaFuncSetAttribute"};
  const uint64_t warps = (threads + 31) / 32;
  const uint64_t registers = warps * ((uint64_t(kernel.registers) * 32 + 255) / 256 * 256);
  if (registers > 65536)
    return {cudaErrorLaunchOutOfResources, std::to_string(threads) + " threads of " +
                                               std::to_string(kernel.registers) +
                                               " registers exceed the 65536 that a block can have"};
  return cooperative ? judge_cooperative(kernel, grid, threads, shared) : Refusal{cudaSuccess, ""};
}

constexpr uint64_t PORTABLE_CLUSTER = 8, MOST_OF_A_CLUSTER = 16;  // blocks

bool differ(dim3 one, dim3 other) {
  return one.x != other.x || one.y != other.y || one.z != other.z;
}

// asked: by the launch, 0 where it says nothing.
Refusal judge_cluster(const Kernel& kernel, dim3 grid, dim3 asked) {
  const dim3 cluster = asked.x ? asked : kernel.cluster;
  if (asked.x && kernel.cluster.x && differ(asked, kernel.cluster))
    return {cudaErrorInvalidClusterSize, "its __cluster_dims__ are " + text(kernel.cluster) +
                                             ", the launch asks for clusters of " + text(asked)};
  if (!cluster.x) return {cudaSuccess, ""};
  const uint64_t blocks = uint64_t(cluster.x) * cluster.y * cluster.z;
  if (!blocks || blocks > MOST_OF_A_CLUSTER)
    return {blocks ? cudaErrorInvalidClusterSize : cudaErrorInvalidConfiguration,
            "a cluster of " + text(cluster) + " blocks"};
  if (blocks > PORTABLE_CLUSTER && !kernel.large_clusters)
    return {cudaErrorInvalidClusterSize,
            "clusters of more than 8 blocks, here " + text(cluster) +
                ", need cudaFuncAttributeNonPortableClusterSizeAllowed with cudaFuncSetAttribute"};
  if (grid.x % cluster.x || grid.y % cluster.y || grid.z % cluster.z)
    return {cudaErrorInvalidConfiguration,
            "the grid " + text(grid) + " is no multiple of its clusters, " + text(cluster)};
  if (blocks > 1 && request.target.major < 9)
    return {cudaErrorInvalidValue, request.target.name + " has no clusters of blocks"};
  return {cudaSuccess, ""};
}

// What the attributes of a launch ask for. cluster: all 0 where they say nothing.
struct Asked {
  bool cooperative = false, programmatic = false;
  dim3 cluster{0, 0, 0};
};

cudaError_t launch(const Kernel& kernel, dim3 grid, dim3 block, void** arguments, size_t shared,
                   cudaStream_t stream, const Asked& asked = {}) {
  Refusal refusal = judge(kernel, grid, block, shared, asked.cooperative);
  if (refusal.error == cudaSuccess) refusal = judge_cluster(kernel, grid, asked.cluster);
  if (refusal.error != cudaSuccess)
    refuse("RE", std::string(cudaGetErrorName(refusal.error)) + ": kernel " + kernel.name +
                     " cannot be launched: " + refusal.why);
  std::vector<unsigned char> block_of_params(kernel.param_bytes());
  for (size_t i = 0; i < kernel.params.size(); ++i)
    std::memcpy(&block_of_params[kernel.params[i].first], arguments[i], kernel.params[i].second);
  plan_launch(kernel, grid, block, shared, block_of_params, stream, asked.cooperative,
              asked.programmatic, asked.cluster.x ? asked.cluster : dim3(1, 1, 1));
  launch_site.clear();
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

std::string why_refused(int id) {
  switch (id) {
    case 5:
    case 11: return "of clusters only cudaLaunchAttributeClusterDimension is";
    case 14: return "use cudaFuncSetAttribute";
    case 7: return "use cudaLaunchAttributeProgrammaticStreamSerialization";
    default:
      return "of launch attributes only those for cooperative, clustered and programmatic launches "
             "are";
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
                           request.target.major >= PROGRAMMATIC_SINCE;
    else if (attribute.id == cudaLaunchAttributeClusterDimension)
      asked.cluster = {attribute.val.clusterDim.x, attribute.val.clusterDim.y,
                       attribute.val.clusterDim.z};
    else if (attribute.id != cudaLaunchAttributeIgnore &&
             attribute.id != cudaLaunchAttributePriority)  // as of streams: all run as one
      refuse("FE", std::string(caller) + " with the attribute " + attribute_name(attribute.id) +
                       " is not supported: " + why_refused(attribute.id));
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
  if (!threads || threads > 1024) return 0;
  const uint64_t each = blocks_per_multiprocessor(kernel, int(threads), config.dynamicSmemBytes);
  const uint64_t all = request.target.multiprocessors;
  return int(all / OF_A_GPC * (OF_A_GPC * each / size) + all % OF_A_GPC * each / size);
}

}  // namespace

Frames launch_site;

Kernel& kernel_of(const void* function, const char* caller) {
  const auto found = kernels.find(function);
  if (found == kernels.end())
    refuse("RE", std::string(caller) +
                     " returned cudaErrorInvalidDeviceFunction: not a __global__ function");
  return *found->second;
}

extern "C" {

// The first call of all, before constructors of the host code's own, which may call anything.
void** __cudaRegisterFatBinary(void*) {
  stub_unresolved(__builtin_return_address(0));
  static void* handle;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) { return 1; }

void __cudaRegisterFunction(void**, const char* function, char*, const char* name, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  const auto found = request.kernels.find(name);
  if (found != request.kernels.end()) kernels[function] = &found->second;
}
// Under CUDA 13 a kernel is launched by a handle; ours is the host function itself.
cudaError_t __cudaGetKernel(cudaKernel_t* handle, const void* function) {
  *handle = static_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, CUstream_st* stream) {
  pending.push_back({grid, block, shared, stream, call_stack()});
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  if (pending.empty())
    return failed(cudaErrorInvalidConfiguration, "a kernel called without <<<>>>");
  const Configuration& top = pending.back();
  *grid = top.grid;
  *block = top.block;
  *shared = top.shared;
  *static_cast<cudaStream_t*>(stream) = top.stream;
  launch_site = top.frames;
  pending.pop_back();
  return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                             size_t shared, cudaStream_t stream) {
  return launch(kernel_of(function, __func__), grid, block, arguments, shared, stream);
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               size_t shared, cudaStream_t stream) {
  return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}
cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block,
                                        void** arguments, size_t shared, cudaStream_t stream) {
  Asked asked;
  asked.cooperative = true;
  return launch(kernel_of(function, __func__), grid, block, arguments, shared, stream, asked);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                void** arguments) {
  return launch(kernel_of(function, __func__), config->gridDim, config->blockDim, arguments,
                config->dynamicSmemBytes, config->stream, asked_by(*config));
}

cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* function,
                                           const cudaLaunchConfig_t* config) {
  const Kernel& kernel = kernel_of(function, __func__);
  const dim3 asked = asked_by(*config, __func__).cluster;
  const Refusal refusal = judge_cluster(kernel, config->gridDim, asked);
  if (refusal.error != cudaSuccess) return failed(refusal.error, __func__);
  const dim3 cluster = asked.x ? asked : kernel.cluster;
  const uint64_t size = cluster.x ? uint64_t(cluster.x) * cluster.y * cluster.z : 1;
  *clusters = clusters_at_a_time(kernel, *config, size);
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxPotentialClusterSize(int* size, const void* function,
                                                 const cudaLaunchConfig_t* config) {
  const Kernel& kernel = kernel_of(function, __func__);
  if (request.target.major < 9) return failed(cudaErrorInvalidValue, __func__);
  const dim3 own = kernel.cluster;  // what it declares is the only size that it has
  uint64_t most = own.x                   ? uint64_t(own.x) * own.y * own.z
                  : kernel.large_clusters ? MOST_OF_A_CLUSTER
                                          : PORTABLE_CLUSTER;
  while (most && !clusters_at_a_time(kernel, *config, most)) most = own.x ? 0 : most / 2;
  *size = int(most);
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  Kernel& kernel = kernel_of(function, __func__);
  if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
    if (value < 0 || kernel.shared_static + value > request.target.shared_optin)
      return failed(cudaErrorInvalidValue, __func__);
    kernel.shared_dynamic = value;
    return cudaSuccess;
  }
  if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) {
    if (value < -1 || value > 100) return failed(cudaErrorInvalidValue, __func__);
    kernel.carveout = value;
    return cudaSuccess;
  }
  if (attribute == cudaFuncAttributeNonPortableClusterSizeAllowed) {
    kernel.large_clusters = value != 0;
    return cudaSuccess;
  }
  refuse("FE",
         "cudaFuncSetAttribute with attribute " + std::to_string(attribute) + " is not supported");
}

cudaError_t cudaFuncSetCacheConfig(const void* function, cudaFuncCache) {
  kernel_of(function, __func__);
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  const Kernel& kernel = kernel_of(function, __func__);
  const Target& target = request.target;
  std::memset(attributes, 0, sizeof *attributes);
  attributes->sharedSizeBytes = kernel.shared_static;
  attributes->maxThreadsPerBlock = kernel.max_threads;
  attributes->numRegs = kernel.registers;
  attributes->ptxVersion = attributes->binaryVersion = target.major * 10 + target.minor;
  attributes->maxDynamicSharedSizeBytes = int(kernel.shared_dynamic);
  attributes->preferredShmemCarveout = kernel.carveout;
  return cudaSuccess;
}
}
