#include <cstdio>
#include <cstring>
#include <sstream>

#include "sink.hpp"

namespace {

// As nvcc lays them out: a fat binary, of which one part is PTX. Those that are to be linked stand
// in a list, up to a null.
struct Wrapper {
  uint32_t magic, version;
  const unsigned char* data;
  const unsigned char* const* linked;
};
constexpr uint32_t TO_BE_LINKED = 2;  // version
constexpr uint32_t WRAPPER = 0x466243b1, FAT_BINARY = 0xba55ed50, MACHINE_CODE = 0x464c457f;
constexpr size_t HEADER = 16, SIZE_AT = 8, KIND_AT = 0, HEAD_AT = 4, LENGTH_AT = 8, ARCH_AT = 28,
                 FLAGS_AT = 40;
constexpr uint16_t PTX = 1;
constexpr uint64_t COMPRESSED = 0xa000;

template <class Value>
Value read(const unsigned char* at) {
  Value value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

std::map<std::pair<size_t, std::string>, Kernel> kernels;  // by module and name
size_t module_count = 0;

// The PTX in a fat binary, which a zero byte ends: the newest that the device can run, or else the
// first.
std::string ptx_of(const unsigned char* data) {
  const unsigned char* part = data + HEADER;
  const unsigned char* const end = part + read<uint64_t>(data + SIZE_AT);
  const uint32_t own = uint32_t(gpu.target.major * 10 + gpu.target.minor);
  std::string found;
  uint32_t best = 0;
  while (part < end) {
    const uint32_t head = read<uint32_t>(part + HEAD_AT), arch = read<uint32_t>(part + ARCH_AT);
    const uint64_t length = read<uint64_t>(part + LENGTH_AT);
    const bool readable = !(read<uint64_t>(part + FLAGS_AT) & COMPRESSED);
    if (read<uint16_t>(part + KIND_AT) == PTX && readable &&
        (found.empty() || (arch <= own && arch > best))) {
      const auto ptx = reinterpret_cast<const char*>(part + head);
      found = std::string(ptx, strnlen(ptx, length)) + '\0';
      best = arch <= own ? arch : 0;
    }
    part += head + length;
  }
  return found;
}

}  // namespace

Gpu gpu;
cudaError_t sink_broken = cudaSuccess;
size_t watched = 0;

void open_device() {
  std::istringstream in(ask("{\"type\":\"device\"}"));
  in >> gpu.target >> watched;
}

size_t sink_register(const void* fat_binary, const void*) {
  const auto wrapper = static_cast<const Wrapper*>(fat_binary);
  std::string ptx;
  if (wrapper->version != TO_BE_LINKED) ptx = ptx_of(wrapper->data);
  else  // CUDA's own libraries bring no PTX for this device; who calls them has an undefined name
    for (auto each = wrapper->linked; *each; ++each) ptx += ptx_of(*each);
  if (ptx.empty())
    give_up(
        "a part of this program has machine code only, or compressed PTX: build it by "
        "ptxsim nvcc, with nvcc's options");
  return register_ptx(ptx);
}

size_t register_ptx(const std::string& ptx) {
  modules_loaded = false;
  tell("{\"type\":\"module\"}", ptx.data(), ptx.size());
  return module_count++;
}

std::string ptx_in(const void* image) {
  const auto bytes = static_cast<const unsigned char*>(image);
  switch (read<uint32_t>(bytes)) {
    case WRAPPER: return ptx_of(static_cast<const Wrapper*>(image)->data);
    case FAT_BINARY: return ptx_of(bytes);
    case MACHINE_CODE: return "";
    default: return static_cast<const char*>(image) + std::string(1, '\0');
  }
}

Kernel* sink_kernel(const std::string& name, size_t module) {
  const auto known = kernels.find({module, name});
  if (known != kernels.end()) return &known->second;
  std::istringstream in(ask("{\"type\":\"kernel\",\"name\":" + json_text(name) +
                            ",\"module\":" + number(module) + "}"));
  Kernel kernel{};
  kernel.name = name;
  kernel.module = module;
  size_t params = 0;
  in >> kernel.registers >> kernel.demanding >> kernel.shared_static >> kernel.max_threads >>
      kernel.cluster.x >> kernel.cluster.y >> kernel.cluster.z >> params;
  for (std::pair<size_t, size_t> each; params > 0 && in >> each.first >> each.second; --params)
    kernel.params.push_back(each);
  if (!in) return nullptr;
  if (kernel.shared_static < DEFAULT_SHARED)
    kernel.shared_dynamic = DEFAULT_SHARED - kernel.shared_static;
  return &(kernels[{module, name}] = kernel);
}

void sink_measure(Kernel& kernel) {
  if (kernel.measured) return;
  kernel.measured = true;
  std::istringstream in(ask("{\"type\":\"measure\",\"name\":" + json_text(kernel.name) +
                            ",\"module\":" + number(kernel.module) + "}"));
  in >> kernel.registers >> kernel.local_bytes >> kernel.constant_bytes;
}

// Variables have their addresses from the start.
void* sink_allocate(const std::string&, size_t, const std::string&) { return nullptr; }
void sink_symbol(const std::string&, size_t, const void*, size_t, bool, cudaStream_t) {}

void sink_launch(const Kernel& kernel, dim3 grid, dim3 block, size_t shared,
                 const std::vector<unsigned char>& params, cudaStream_t stream, bool cooperative,
                 bool, dim3 cluster) {
  issue_launch(order_may_differ() ? order_on(stream) : "");
  std::fflush(stdout);  // what a kernel prints comes behind what host code did
  const std::string answer =
      ask("{\"type\":\"launch\",\"kernel\":" + json_text(kernel.name) +
              ",\"module\":" + number(kernel.module) + ",\"grid\":" + triple(grid) +
              ",\"block\":" + triple(block) + ",\"shared_bytes\":" + number(shared) +
              ",\"stack_bytes\":" + number(device_stack_bytes()) +
              ",\"cooperative\":" + truth(cooperative) + ",\"cluster\":" + triple(cluster) +
              ",\"frames\":" + frames_json(site()) + "}",
          params.data(), params.size());
  const size_t head = answer.find('\n') + 1;  // before it: the error that the launch ended with
  std::fwrite(answer.data() + head, 1, answer.size() - head, stdout);
  std::fflush(stdout);
  launch_site().clear();
  sink_broken = cudaError_t(std::stoi(answer));
}
