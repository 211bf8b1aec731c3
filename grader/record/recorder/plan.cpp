#include <algorithm>
#include <cstring>
#include <optional>

#include "recorder.hpp"

namespace {

struct Allocation {
  uint64_t address;
  size_t bytes;
  bool live;
};

std::vector<Allocation> allocations;
size_t workspace_bytes = 0;  // of live workspaces
uint64_t next_address = FIRST_ADDRESS;
std::string memory, operations;  // the JSON so far; operations are those of this call
std::string refused;             // the JSON of what CUDA refused
std::string calls;               // the JSON of the calls before
size_t launch_count = 0, transfer_count = 0, operation_count = 0;  // of this call
bool has_work = false;                                             // this call
size_t refused_count = 0;                                          // told
std::optional<Refused> refused_launch;                             // the first of this call
Frames refused_at;
constexpr size_t FRAME = 1 << 10;  // bytes of a plan that are neither allocations nor operations

std::string base64(const unsigned char* data, size_t bytes) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes + 2) / 3 * 4);
  for (size_t i = 0; i < bytes; i += 3) {
    uint32_t group = data[i] << 16;
    if (i + 1 < bytes) group |= data[i + 1] << 8;
    if (i + 2 < bytes) group |= data[i + 2];
    text += digits[group >> 18];
    text += digits[group >> 12 & 63];
    text += i + 1 < bytes ? digits[group >> 6 & 63] : '=';
    text += i + 2 < bytes ? digits[group & 63] : '=';
  }
  return text;
}

// Bounds are named in grader/record/calls.py, which hands them to the compiler.
void bounded(size_t count, size_t most, Refusal refusal) {
  if (count > most) refuse({refusal, {}});
}

void bounded_text(size_t more) {
  const size_t used = operations.size() + memory.size() + refused.size();
  if (more > MAX_PLAN_BYTES || used + more > MAX_PLAN_BYTES - FRAME) refuse({RECORD_FULL, {}});
}

// Work of the host costs time in every call, and operations of several streams may race: for these
// a message names the line.
enum class Worker { device, host };

// `order` is a field, or empty.
void add(const std::string& operation, const std::string& order, Worker worker = Worker::device) {
  const bool traced = worker == Worker::host || order_has_streams();
  const std::string fields = traced ? order + ",\"frames\":[" + call_site() + "]" : order;
  bounded_text(operation.size() + fields.size());
  operations += (operations.empty() ? "" : ",") + operation;
  operations.insert(operations.size() - 1, fields);
  ++operation_count;
}

void add_transfer(const std::string& operation, const std::string& order,
                  Worker worker = Worker::device) {
  bounded(++transfer_count, MAX_TRANSFERS, TOO_MANY_TRANSFERS);
  add(operation, order, worker);
}

// A pointer may lie at any offset, and point a little outside its allocation.
bool near_allocation(uint64_t address, size_t& index, int64_t& delta) {
  if (address < FIRST_ADDRESS - REACH || address >= next_address) return false;
  auto after = std::upper_bound(allocations.begin(), allocations.end(), address,
                                [](uint64_t a, const Allocation& b) { return a < b.address; });
  if (after != allocations.end() && after->address - address <= REACH) ++after;
  else if (after == allocations.begin()) return false;
  const Allocation& found = *(after - 1);
  index = size_t(&found - allocations.data());
  delta = int64_t(address - found.address);
  return found.live && delta <= int64_t(found.bytes + REACH);
}

std::string pointers_in(const unsigned char* data, size_t bytes) {
  std::string found;
  for (size_t offset = 0; offset + 8 <= bytes; ++offset) {
    uint64_t word;
    std::memcpy(&word, data + offset, 8);
    size_t index;
    int64_t delta;
    if (!near_allocation(word, index, delta)) continue;
    found += std::string(found.empty() ? "" : ",") + "{\"offset\":" + number(offset) +
             ",\"allocation\":" + number(index) + ",\"delta\":" + std::to_string(delta) + "}";
    offset += 7;
  }
  return found;
}

}  // namespace

const bool sink_executes = false;
cudaError_t sink_broken = cudaSuccess;  // no kernel runs

Kernel* sink_kernel(const std::string& name, size_t) {
  const auto found = gpu.kernels.find(name);
  return found == gpu.kernels.end() ? nullptr : &found->second;
}

cudaError_t sink_pin(void*, size_t, const char*) { return cudaSuccess; }
cudaError_t sink_unpin(void*, const char*) { return cudaSuccess; }
void sink_measure(Kernel&) {}  // it was, before
void* sink_variable(const std::string&, size_t, size_t) { return nullptr; }
void sink_share(void*, size_t) {}
double sink_clock() { return 0; }  // a recording takes no time
void sink_elapsed() {}

void sink_asked() {}

void sink_read(void*, Place, const Rows&, bool, cudaStream_t) {
  refuse({DEVICE_TO_HOST, {{"function", "cudaMemcpy"}}});
}

std::vector<void*> plan_begin(const Size& size) {
  std::vector<void*> vectors;
  for (size_t i = 0; i < request.vectors.size(); ++i) {
    const auto& [name, bytes] = request.vectors[i];
    vectors.push_back(sink_allocate(name, bytes * size.counts[i]));
  }
  return vectors;
}

void* sink_allocate(const std::string& name, size_t bytes, const std::string& symbol) {
  bounded(allocations.size() + 1, MAX_ALLOCATIONS, TOO_MANY_ALLOCATIONS);
  const uint64_t address = next_address, room = FIRST_ADDRESS + ARENA_BYTES - address;
  if (bytes > room || room - bytes < 2 * STRIDE) refuse({MEMORY_OF_NO_GPU, {}});
  const std::string json = "{\"name\":" + json_text(name) + ",\"address\":" + number(address) +
                           ",\"size\":" + number(bytes) +
                           (symbol.empty() ? "" : ",\"symbol\":" + json_text(symbol)) + "}";
  bounded_text(json.size());
  memory += (memory.empty() ? "" : ",") + json;
  allocations.push_back({address, bytes, true});
  next_address += (bytes + STRIDE / 2 + STRIDE - 1) / STRIDE * STRIDE;
  return reinterpret_cast<void*>(address);
}

void* sink_allocate_workspace(size_t bytes, bool ordered, cudaStream_t stream) {
  static size_t workspaces = 0;
  workspace_bytes += bytes;
  void* address = sink_allocate("workspace " + number(++workspaces), bytes);
  add("{\"type\":\"allocate\",\"allocation\":" + number(allocations.size() - 1) +
          ",\"ordered\":" + truth(ordered) + "}",
      ordered ? order_on(stream) : "", Worker::host);
  return address;
}

size_t sink_workspace_bytes() { return workspace_bytes; }

void sink_free(size_t allocation, bool ordered, cudaStream_t stream, const char* caller) {
  if (allocation < request.vectors.size())
    refuse(
        {GRADERS_MEMORY, {{"function", caller}, {"operand", request.vectors[allocation].first}}});
  if (!ordered) order_wait_for_device();
  allocations[allocation].live = false;
  workspace_bytes -= allocations[allocation].bytes;
  add("{\"type\":\"free\",\"allocation\":" + number(allocation) + ",\"ordered\":" + truth(ordered) +
          "}",
      ordered ? order_on(stream) : "", Worker::host);
}

void sink_synchronise(const std::string& order) {
  add_transfer("{\"type\":\"synchronise\"}", order, Worker::host);
}

bool sink_find(const void* pointer, size_t bytes, Place& place) {
  const uint64_t address = reinterpret_cast<uint64_t>(pointer);
  if (address < FIRST_ADDRESS || address >= next_address) return false;
  const auto after =
      std::upper_bound(allocations.begin(), allocations.end(), address,
                       [](uint64_t a, const Allocation& b) { return a < b.address; });
  const Allocation& found = *(after - 1);  // the first one starts at FIRST_ADDRESS
  const uint64_t delta = address - found.address;
  if (!found.live || delta > found.bytes || bytes > found.bytes - delta) return false;
  place = {size_t(&found - allocations.data()), delta};
  return true;
}

bool sink_freed(const void* pointer) {
  const uint64_t address = reinterpret_cast<uint64_t>(pointer);
  return std::any_of(allocations.begin(), allocations.end(), [address](const Allocation& each) {
    return !each.live && address >= each.address && address - each.address < each.bytes;
  });
}

void sink_launch(const Kernel& kernel, dim3 grid, dim3 block, size_t shared,
                 const std::vector<unsigned char>& params, cudaStream_t stream, bool cooperative,
                 bool programmatic, dim3 cluster) {
  bounded(++launch_count, MAX_LAUNCHES, TOO_MANY_LAUNCHES);
  has_work = true;
  const bool overlaps = order_launch(stream) && programmatic;
  add("{\"type\":\"launch\",\"kernel\":" + json_text(kernel.name) + ",\"grid\":" + triple(grid) +
          ",\"block\":" + triple(block) + ",\"shared_bytes\":" + number(shared) + ",\"params\":\"" +
          base64(params.data(), params.size()) + "\",\"pointers\":[" +
          pointers_in(params.data(), params.size()) + "],\"carveout\":" +
          std::to_string(kernel.carveout) + ",\"stack_bytes\":" + number(device_stack_bytes()) +
          ",\"cooperative\":" + truth(cooperative) + ",\"programmatic\":" + truth(overlaps) +
          ",\"cluster\":" + triple(cluster) + "}",
      order_on(stream));
}

void sink_memset(Place place, int value, const Rows& rows, cudaStream_t stream) {
  has_work = true;
  add_transfer("{\"type\":\"memset\",\"allocation\":" + number(place.allocation) +
                   ",\"delta\":" + number(place.delta) + ",\"value\":" + number(value & 255) +
                   ",\"size\":" + number(rows.bytes) + "}",
               order_on(stream));
}

void sink_copy(Place source, Place target, const Rows& rows, cudaStream_t stream) {
  has_work = true;
  add_transfer(
      "{\"type\":\"copy\",\"source\":" + number(source.allocation) +
          ",\"source_delta\":" + number(source.delta) + ",\"target\":" + number(target.allocation) +
          ",\"target_delta\":" + number(target.delta) + ",\"size\":" + number(rows.bytes) +
          ",\"rows\":" + number(rows.count) + ",\"source_pitch\":" + number(rows.source_pitch) +
          ",\"target_pitch\":" + number(rows.target_pitch) + "}",
      order_on(stream));
}

// `target` is the first fields, which say where the bytes go.
static void add_write(const std::string& target, const void* source, size_t bytes, bool blocking,
                      cudaStream_t stream) {
  bounded_text(bytes);
  const auto data = static_cast<const unsigned char*>(source);
  add_transfer("{" + target + ",\"data\":\"" + base64(data, bytes) + "\",\"pointers\":[" +
                   pointers_in(data, bytes) + "],\"blocking\":" + truth(blocking) + "}",
               order_on(stream, blocking), blocking ? Worker::host : Worker::device);
}

void sink_write(Place target, const void* source, const Rows& rows, bool blocking,
                cudaStream_t stream) {
  add_write("\"type\":\"write\",\"allocation\":" + number(target.allocation) +
                ",\"delta\":" + number(target.delta),
            source, rows.bytes, blocking, stream);
}

void sink_symbol(const std::string& symbol, size_t delta, const void* source, size_t bytes,
                 bool blocking, cudaStream_t stream) {
  add_write("\"type\":\"symbol\",\"symbol\":" + json_text(symbol) + ",\"delta\":" + number(delta),
            source, bytes, blocking, stream);
}

void sink_refused(const Refused& what, size_t bytes) {
  if (bytes == 0 && !refused_launch) {
    refused_launch = what;
    refused_at = site();
  }
  const std::string call = "{\"refused\":" + json(what) + ",\"bytes\":" + number(bytes) +
                           ",\"frames\":[" + call_site() + "]}";
  if (refused_count == MAX_REFUSED || refused.find(call) != std::string::npos) return;
  bounded_text(call.size());
  refused += (refused.empty() ? "" : ",") + call;
  ++refused_count;
}

size_t sink_place() { return operation_count; }

void plan_end_call() {
  if (!has_work && refused_launch) refuse(*refused_launch, refused_at);
  if (!has_work) refuse({NO_KERNEL, {}}, {});
  has_work = false;
  refused_launch.reset();
  calls += (calls.empty() ? "[" : ",[") + operations + "]";
  operations.clear();
  launch_count = transfer_count = operation_count = 0;
  order_end_call();
}

std::string plan_json() {
  return "{\"recorded\":{\"allocations\":[" + memory + "],\"calls\":[" + calls + "],\"refused\":[" +
         refused + "]}}";
}
