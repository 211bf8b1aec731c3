#include <cstdio>
#include <cstring>
#include <sstream>

#include "sink.hpp"

namespace {

// As nvcc lays them out: a fat binary, of which one part is PTX.
struct Wrapper {
  uint32_t magic, version;
  const unsigned char* data;
  void* more;
};
constexpr size_t HEADER = 16, SIZE_AT = 8, KIND_AT = 0, HEAD_AT = 4, LENGTH_AT = 8;
constexpr uint16_t PTX = 1;

template <class Value>
Value read(const unsigned char* at) {
  Value value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

std::map<std::string, void*> variables;

}  // namespace

Gpu gpu;
cudaError_t sink_broken = cudaSuccess;

void open_device() {
  std::istringstream in(ask("{\"type\":\"device\"}"));
  in >> gpu.target;
}

void sink_register(const void* fat_binary, const void*) {
  const unsigned char* const data = static_cast<const Wrapper*>(fat_binary)->data;
  const unsigned char* part = data + HEADER;
  const unsigned char* const end = part + read<uint64_t>(data + SIZE_AT);
  bool found = false;
  modules_loaded = false;
  while (part < end) {
    const uint32_t head = read<uint32_t>(part + HEAD_AT);
    const uint64_t length = read<uint64_t>(part + LENGTH_AT);
    if (read<uint16_t>(part + KIND_AT) == PTX) {
      const auto ptx = reinterpret_cast<const char*>(part + head);
      tell("{\"type\":\"module\"}", ptx, strnlen(ptx, length));
      found = true;
    }
    part += head + length;
  }
  if (!found) give_up("a part of this program has no PTX: build it with ptxsim nvcc");
}

Kernel* sink_kernel(const std::string& name) {
  const auto known = gpu.kernels.find(name);
  if (known != gpu.kernels.end()) return &known->second;
  std::istringstream in(ask("{\"type\":\"kernel\",\"name\":" + json_text(name) + "}"));
  Kernel kernel{};
  kernel.name = name;
  size_t params = 0;
  in >> kernel.registers >> kernel.shared_static >> kernel.max_threads >> kernel.cluster.x >>
      kernel.cluster.y >> kernel.cluster.z >> params;
  for (std::pair<size_t, size_t> each; params > 0 && in >> each.first >> each.second; --params)
    kernel.params.push_back(each);
  if (!in) return nullptr;
  if (kernel.shared_static < DEFAULT_SHARED)
    kernel.shared_dynamic = DEFAULT_SHARED - kernel.shared_static;
  return &(gpu.kernels[name] = kernel);
}

void* sink_variable(const std::string& name, size_t bytes) {
  return variables[name] = sink_allocate(name, bytes, name);
}

void sink_symbol(const std::string& symbol, size_t delta, const void* source, size_t bytes,
                 bool blocking, cudaStream_t stream) {
  Place place;
  if (sink_find(variables[symbol], 0, place)) {
    place.delta += delta;
    sink_write(place, source, bytes, blocking, stream);
  }
}

void sink_launch(const Kernel& kernel, dim3 grid, dim3 block, size_t shared,
                 const std::vector<unsigned char>& params, cudaStream_t stream, bool cooperative,
                 bool, dim3 cluster) {
  issue_launch(order_may_differ() ? order_on(stream) : "");
  std::fflush(stdout);  // what a kernel prints comes behind what host code did
  const std::string answer = ask(
      "{\"type\":\"launch\",\"kernel\":" + json_text(kernel.name) + ",\"grid\":" + triple(grid) +
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
