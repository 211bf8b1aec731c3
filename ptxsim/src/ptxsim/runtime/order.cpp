// Streams, events and what the host waits for: which operations of a call come after which.
//
// The order is CUDA's: that of each stream; of the default stream with every stream that was not
// made cudaStreamNonBlocking; of events; and of the host, which issues nothing before its waits are
// over. Calls of run_custom come one after the other: the caller synchronizes before it reads C.
#include <algorithm>
#include <optional>
#include <set>

#include "runtime.hpp"

namespace {

using Operations = std::set<size_t>;  // places in this call

struct Stream {
  bool blocking = true;
  Operations last;  // what its next operation comes after
};

const cudaStream_t DEFAULT = nullptr;

std::map<cudaStream_t, Stream> streams;    // the default one, too, as soon as any is used
std::map<cudaEvent_t, Operations> events;  // what each stood behind when it was recorded
std::map<cudaEvent_t, double> recorded;    // when that was
Operations latest;                         // that no later operation comes after
Operations seen;                           // that a query found done
// What each operation comes after, until the host has waited for it, or asked for it till then.
std::map<size_t, Operations> ahead;
constexpr size_t MOST_AHEAD = 1 << 16;  // of a program that never waits
bool side_by_side = false;              // there are streams that do not wait for each other
std::map<Operations, int> asked;        // how many queries about these found them under way
struct LastLaunch {
  size_t place;
  cudaStream_t stream;
};
std::optional<LastLaunch> last_launch;  // null as soon as anything else is done with a stream
bool waited = false;
size_t last_wait = 0;  // of the host, if it has waited

template <typename Handle>
cudaError_t new_handle(Handle* handle) {
  static uintptr_t next = 0x1000;
  *handle = reinterpret_cast<Handle>(next += 16);
  return cudaSuccess;
}

cudaError_t new_stream(cudaStream_t* stream, unsigned flags) {
  new_handle(stream);
  static bool another = false;
  const bool blocking = !(flags & cudaStreamNonBlocking);
  side_by_side |= another || !blocking;
  another = true;
  streams[*stream] = {blocking, blocking ? streams[DEFAULT].last : Operations()};
  return cudaSuccess;
}

bool is_default(cudaStream_t stream) { return stream == DEFAULT || stream == cudaStreamLegacy; }

// All streams that wait for what this one does next.
std::vector<Stream*> followers(cudaStream_t handle) {
  const Stream fresh = {true, streams[DEFAULT].last};
  if (!is_default(handle)) return {&streams.try_emplace(handle, fresh).first->second};
  std::vector<Stream*> blocking;
  for (auto& [_, stream] : streams)
    if (stream.blocking) blocking.push_back(&stream);
  return blocking;
}

// What an operation comes after that is now issued to this stream.
Operations behind(cudaStream_t handle) {
  Operations after = seen;
  for (const Stream* stream : followers(handle))
    after.insert(stream->last.begin(), stream->last.end());
  return after;
}

// The next operation comes after these: as a field of the plan, or nothing when these are all.
std::string noted(const Operations& after) {
  const size_t place = sink_place();
  for (auto each = latest.begin(); each != latest.end();)
    each = after.count(*each) || (waited && *each == last_wait) ? latest.erase(each) : ++each;
  const bool all = latest.empty();
  latest.insert(place);
  ahead[place] = after;
  if (ahead.size() > MOST_AHEAD) ahead.erase(ahead.begin());
  if (all) return "";
  std::string distances;
  for (const size_t each : after)
    distances += (distances.empty() ? "" : ",") + std::to_string(place - each);
  return ",\"after\":[" + distances + "]";
}

void host_waits_for_next() {
  waited = true;
  last_wait = sink_place();
}

// These have ended, and all that they come after.
void finish(const Operations& done) {
  std::vector<size_t> left(done.begin(), done.end());
  while (!left.empty()) {
    const auto found = ahead.extract(left.back());
    left.pop_back();
    if (found) left.insert(left.end(), found.mapped().begin(), found.mapped().end());
  }
}

cudaError_t wait(const Operations& after) {
  finish(after);
  const std::string order = noted(after);
  host_waits_for_next();
  sink_synchronise(order);
  return cudaSuccess;
}

void see(const Operations& done) {
  finish(done);
  seen.insert(done.begin(), done.end());
}

// A GPU may be still at work however often a program asks, so one that does not look at the answer
// must not be taken to have waited. Whoever asks until the answer is yes has.
cudaError_t query(const Operations& done) {
  constexpr int ANSWERS = 8;  // that say no
  last_launch.reset();
  const auto under_way = [](size_t place) { return ahead.count(place) > 0; };
  const bool known = std::none_of(done.begin(), done.end(), under_way);
  if (!known && asked[done]++ < ANSWERS) return cudaErrorNotReady;
  see(done);
  return cudaSuccess;
}

}  // namespace

std::string order_on(cudaStream_t stream, bool host_waits) {
  const std::string order = noted(behind(stream));
  for (Stream* each : followers(stream)) each->last = {sink_place()};
  if (host_waits) {
    finish({sink_place()});
    host_waits_for_next();
  }
  return order;
}

bool order_launch(cudaStream_t stream) {
  if (is_default(stream)) stream = DEFAULT;
  const size_t place = sink_place();
  const bool follows =
      last_launch && last_launch->place + 1 == place && last_launch->stream == stream;
  last_launch = {place, stream};
  return follows;
}

bool order_has_streams() { return streams.size() > 1; }
bool order_may_differ() { return side_by_side; }
void order_host_sees(cudaStream_t stream) { see(behind(stream)); }

void order_wait_for_device() {
  latest = {sink_place()};
  seen.clear();
  ahead.clear();
  for (auto& [_, stream] : streams) stream.last.clear();
  host_waits_for_next();
}

void order_end_call() {
  latest.clear();
  seen.clear();
  ahead.clear();
  asked.clear();
  events.clear();
  last_launch.reset();
  for (auto& [_, stream] : streams) stream.last.clear();
  waited = false;
}

extern "C" {

cudaError_t cudaDeviceSynchronize() {
  return answer(__func__, [&](const char*) {
    order_wait_for_device();
    sink_synchronise("");
    return cudaSuccess;
  });
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return answer(__func__, [&](const char*) { return new_stream(stream, 0); });
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return answer(__func__, [&](const char*) { return new_stream(stream, flags); });
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return answer(__func__, [&](const char*) { return new_stream(stream, flags); });
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return answer(__func__, [&](const char*) { return wait(behind(stream)); });
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return answer(__func__, [&](const char*) { return query(behind(stream)); });
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return answer(__func__, [&](const char*) {
    last_launch.reset();
    for (Stream* each : followers(stream))
      each->last.insert(events[event].begin(), events[event].end());
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return answer(__func__, [&](const char*) { return new_handle(event); });
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return answer(__func__, [&](const char*) { return new_handle(event); });
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return answer(__func__, [&](const char*) {
    last_launch.reset();  // kernels do not overlap across an event
    events[event] = behind(stream);
    recorded[event] = sink_clock();
    return cudaSuccess;
  });
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return cudaEventRecord(event, stream);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return answer(__func__, [&](const char*) { return wait(events[event]); });
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return answer(__func__, [&](const char*) { return query(events[event]); });
}
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
// The header may rename this one (_v2); the definition follows it.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t first, cudaEvent_t last) {
  return answer(__func__, [&](const char*) {
    sink_elapsed();
    *milliseconds = float(recorded[last] - recorded[first]);
    return cudaSuccess;
  });
}
}
