// What sinks write in JSON, and the device as they are told of it.
#include <istream>

#include "runtime.hpp"

std::string number(uint64_t value) { return std::to_string(value); }
std::string truth(bool value) { return value ? "true" : "false"; }
std::string triple(dim3 d) {
  return "[" + number(d.x) + "," + number(d.y) + "," + number(d.z) + "]";
}

std::string json_text(const std::string& text) {
  std::string quoted = "\"";
  for (const unsigned char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c >= 0x20 && c < 0x7f ? char(c) : '?';
  }
  return quoted + '"';
}

std::istream& operator>>(std::istream& in, Target& t) {
  std::getline(in, t.name);
  return in >> t.major >> t.minor >> t.multiprocessors >> t.threads_per_multiprocessor >>
         t.blocks_per_multiprocessor >> t.registers_per_multiprocessor >> t.l2_bytes >>
         t.clock_khz >> t.memory_clock_khz >> t.bus_bits >> t.shared_per_multiprocessor >>
         t.shared_optin >> t.shared_reserved >> t.memory_bytes;
}
