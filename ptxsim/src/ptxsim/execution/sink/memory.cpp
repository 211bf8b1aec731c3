// Device memory lies at the same addresses in the program and on the device. The program may not
// touch it there, unless it is shared; its copies go through a second view.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "sink.hpp"

extern int shared_memory;

namespace {

struct Allocation {
  uint64_t address;
  size_t bytes;
  bool live, variable;
};

std::vector<Allocation> allocations;  // by address, which is the order in which they were made
size_t allocated = 0;                 // bytes of live ones
uint64_t next_address = FIRST_ADDRESS;
unsigned char* view = nullptr;

void map_memory() {
  if (view) return;
  void* const there = reinterpret_cast<void*>(FIRST_ADDRESS);
  const int flags = MAP_SHARED | MAP_NORESERVE;
  if (mmap(there, ARENA_BYTES, PROT_NONE, flags | MAP_FIXED_NOREPLACE, shared_memory, 0) != there)
    give_up("the addresses of device memory are in use in this program");
  void* const second = mmap(nullptr, ARENA_BYTES, PROT_READ | PROT_WRITE, flags, shared_memory, 0);
  if (second == MAP_FAILED) give_up("there is too little address space for device memory");
  view = static_cast<unsigned char*>(second);
}

const Allocation* around(const void* pointer) {
  const uint64_t address = reinterpret_cast<uint64_t>(pointer);
  const auto after =
      std::upper_bound(allocations.begin(), allocations.end(), address,
                       [](uint64_t a, const Allocation& b) { return a < b.address; });
  return after == allocations.begin() ? nullptr : &*(after - 1);
}

// What it is: JSON.
void* allocate(const std::string& what, size_t bytes, bool variable) {
  map_memory();
  const uint64_t room = FIRST_ADDRESS + ARENA_BYTES - next_address;
  if (bytes > room || room - bytes < 2 * STRIDE) refuse({MEMORY_OF_NO_GPU, {}});
  const uint64_t address = next_address;
  next_address += (bytes + STRIDE / 2 + STRIDE - 1) / STRIDE * STRIDE;
  allocations.push_back({address, bytes, true, variable});
  tell("{\"type\":" + what + ",\"address\":" + number(address) + ",\"size\":" + number(bytes) +
       ",\"frames\":" + frames_json(site()) + "}");
  return reinterpret_cast<void*>(address);
}

void* address_of(Place place) {
  return reinterpret_cast<void*>(allocations[place.allocation].address + place.delta);
}

// A message about rows, which begin `pitch` bytes from each other.
std::string about(const char* type, Place place, const Rows& rows, size_t pitch,
                  const std::string& more = "") {
  return std::string("{\"type\":\"") + type +
         "\",\"address\":" + number(reinterpret_cast<uint64_t>(address_of(place))) +
         ",\"size\":" + number(rows.bytes) + ",\"rows\":" + number(rows.count) +
         ",\"pitch\":" + number(pitch) + more + "}";
}

// Tells ptxsim's process what a call wrote, and lets it look at that if it watches elements.
void tell_written(const char* type, Place place, const Rows& rows, const std::string& more = "") {
  const std::string waits = ",\"waits\":true,\"frames\":" + (watched ? frames_json(site()) : "");
  const std::string said =
      about(type, place, rows, rows.target_pitch, watched ? more + waits : more);
  if (watched) ask(said);
  else tell(said);
}

void define(Place place, size_t bytes) { tell(about("define", place, {bytes}, 0)); }

// What a copy or a memset does with memory, if it is of the device or shared with it.
struct Part {
  const void* address;
  size_t bytes, rows, pitch;
  bool writes;
};

Part source_part(const void* address, const Rows& rows) {
  return {address, rows.bytes, rows.count, rows.source_pitch, false};
}
Part target_part(const void* address, const Rows& rows) {
  return {address, rows.bytes, rows.count, rows.target_pitch, true};
}

size_t operations = 0;  // so far

// Says what the operation that comes now is ordered after, if streams may run side by side. waits:
// the host does, for its end. order: as order_on gives it.
void issue(const char* what, const std::string& order, bool waits,
           const std::vector<Part>& parts = {}) {
  ++operations;
  if (!order_may_differ()) return;
  std::string used;
  for (const Part& each : parts)
    if (in_device_range(each.address))
      used += (used.empty() ? "{\"address\":" : ",{\"address\":") +
              number(reinterpret_cast<uint64_t>(each.address)) + ",\"size\":" + number(each.bytes) +
              ",\"rows\":" + number(each.rows) + ",\"pitch\":" + number(each.pitch) +
              ",\"writes\":" + truth(each.writes) + "}";
  tell(std::string("{\"type\":\"issue\",\"what\":\"") + what + "\"" +
       (order.empty() ? ",\"after\":null" : order) + ",\"waits\":" + truth(waits) + ",\"parts\":[" +
       used + "],\"frames\":" + frames_json(site()) + "}");
}

void issue_on(cudaStream_t stream, const char* what, bool waits, const std::vector<Part>& parts) {
  issue(what, order_may_differ() ? order_on(stream, waits) : "", waits, parts);
}

}  // namespace

const bool sink_executes = true;
bool modules_loaded = false;

void load_modules() {
  if (!modules_loaded) ask("{\"type\":\"load\"}");
  modules_loaded = true;
}

unsigned char* shared_view(const void* address) {
  return view + (reinterpret_cast<uint64_t>(address) - FIRST_ADDRESS);
}

bool in_device_range(const void* address) {
  const uint64_t value = reinterpret_cast<uint64_t>(address);
  return value >= FIRST_ADDRESS && value - FIRST_ADDRESS < ARENA_BYTES;
}

void* sink_variable(const std::string& name, size_t module, size_t bytes) {
  return allocate("\"variable\",\"name\":" + json_text(name) + ",\"module\":" + number(module),
                  bytes, true);
}

void* sink_allocate_workspace(size_t bytes, bool, cudaStream_t) {
  load_modules();
  allocated += bytes;
  return allocate("\"allocate\"", bytes, false);
}

size_t sink_workspace_bytes() { return allocated; }

void sink_free(size_t allocation, bool ordered, cudaStream_t stream, const char* caller) {
  Allocation& freed = allocations[allocation];
  if (freed.variable) refuse({NOT_AN_ALLOCATION, {{"function", caller}}});
  const auto all = reinterpret_cast<const void*>(freed.address);
  if (ordered) issue_on(stream, "free", false, {{all, freed.bytes, 1, 0, true}});
  else order_wait_for_device(), issue("wait", "", true);
  const size_t page = size_t(sysconf(_SC_PAGESIZE));
  const size_t pages = (freed.bytes + page - 1) / page * page;
  void* const there = reinterpret_cast<void*>(freed.address);
  madvise(shared_view(there), pages, MADV_REMOVE);
  mprotect(there, pages, PROT_NONE);
  freed.live = false;
  allocated -= freed.bytes;
  tell("{\"type\":\"free\",\"address\":" + number(freed.address) +
       ",\"frames\":" + frames_json(site()) + "}");
}

void free_all() {
  for (size_t k = 0; k < allocations.size(); ++k)
    if (allocations[k].live && !allocations[k].variable) sink_free(k, false, nullptr, "");
}

bool sink_find(const void* address, size_t bytes, Place& place) {
  const Allocation* const found = around(address);
  if (!found || !found->live) return false;
  const uint64_t delta = reinterpret_cast<uint64_t>(address) - found->address;
  if (delta > found->bytes || bytes > found->bytes - delta) return false;
  place = {size_t(found - allocations.data()), delta};
  return true;
}

bool sink_freed(const void* address) {
  const Allocation* const found = around(address);
  return found && !found->live &&
         reinterpret_cast<uint64_t>(address) - found->address < found->bytes;
}

void sink_share(void* address, size_t bytes) {
  mprotect(address, std::max<size_t>(bytes, 1), PROT_READ | PROT_WRITE);
  if (modules_loaded)  // a variable holds something anyway
    tell("{\"type\":\"share\",\"address\":" + number(reinterpret_cast<uint64_t>(address)) +
         ",\"size\":" + number(bytes) + ",\"rows\":1,\"pitch\":0}");
}

void put(Place target, const void* source, const Rows& rows) {
  copy_in_rows(shared_view(address_of(target)), source, rows);
  tell_written("define", target, rows);
}

void sink_memset(Place place, int value, const Rows& rows, cudaStream_t stream) {
  load_modules();
  issue_on(stream, "memset", false, {target_part(address_of(place), rows)});
  for (size_t row = 0; row < rows.count; ++row)
    std::memset(shared_view(address_of(place)) + row * rows.target_pitch, value, rows.bytes);
  tell_written("define", place, rows);
}

void sink_copy(Place source, Place target, const Rows& rows, cudaStream_t stream) {
  load_modules();
  issue_on(stream, "copy", false,
           {source_part(address_of(source), rows), target_part(address_of(target), rows)});
  copy_in_rows(shared_view(address_of(target)), shared_view(address_of(source)), rows);
  const auto from = reinterpret_cast<uint64_t>(address_of(source));
  tell_written("copy", target, rows,
               ",\"source\":" + number(from) + ",\"source_pitch\":" + number(rows.source_pitch));
}

void sink_write(Place target, const void* source, const Rows& rows, bool blocking,
                cudaStream_t stream) {
  load_modules();
  issue_on(stream, "copy", blocking,
           {source_part(source, rows), target_part(address_of(target), rows)});
  put(target, source, rows);
}

// Into memory that is not pinned every copy is done when the call returns.
void sink_read(void* target, Place source, const Rows& rows, bool blocking, cudaStream_t stream) {
  load_modules();
  issue_on(stream, "copy", blocking || !in_device_range(target),
           {source_part(address_of(source), rows), target_part(target, rows)});
  // What leaves the device has to hold something.
  tell(about("read", source, rows, rows.source_pitch, ",\"frames\":" + frames_json(site())));
  copy_in_rows(target, shared_view(address_of(source)), rows);
}

void sink_synchronise(const std::string& order) { issue("wait", order, true); }
void issue_launch(const std::string& order) { issue("launch", order, false); }
size_t sink_place() { return operations; }

void sink_elapsed() {
  static bool told = false;
  if (!std::exchange(told, true)) tell("{\"type\":\"elapsed\"}");
}

double sink_clock() {
  using namespace std::chrono;
  return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}
