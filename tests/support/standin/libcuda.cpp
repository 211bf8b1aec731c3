// A stand-in for the driver: the GPUs that CUDA_STANDIN_GPUS names ("NVIDIA H200;NVIDIA H200"), as
// far as CUDA_VISIBLE_DEVICES lets them be seen. The UUID of the third has 16 bytes of value 2.
// With CUDA_STANDIN_STATUS it fails like that.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct Gpu {
  int number;
  std::string name;
};

std::vector<std::string> split(const char* text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text ? text : "");
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

std::string uuid(const Gpu& gpu) {
  const bool slice = gpu.name.find(" MIG ") != std::string::npos;
  std::string text = slice ? "MIG-" : "GPU-";
  for (int i = 0; i < 16; ++i) {
    char digits[4];
    std::snprintf(digits, sizeof digits, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                  static_cast<unsigned>(gpu.number));
    text += digits;
  }
  return text;
}

std::vector<Gpu> visible() {
  std::vector<Gpu> all, seen;
  for (const std::string& name : split(std::getenv("CUDA_STANDIN_GPUS"), ';'))
    all.push_back({static_cast<int>(all.size()), name});
  const char* wanted = std::getenv("CUDA_VISIBLE_DEVICES");
  if (!wanted) return all;
  for (const std::string& word : split(wanted, ','))
    for (const Gpu& gpu : all)
      if (word == std::to_string(gpu.number) || word == uuid(gpu)) seen.push_back(gpu);
  return seen;
}

int status() {
  const char* said = std::getenv("CUDA_STANDIN_STATUS");
  return said ? std::atoi(said) : 0;
}

}  // namespace

extern "C" {

int cuInit(unsigned) { return status(); }

int cuDeviceGetCount(int* count) {
  *count = static_cast<int>(visible().size());
  return status();
}

int cuDeviceGetName(char* name, int room, int device) {
  std::snprintf(name, static_cast<size_t>(room), "%s",
                visible().at(static_cast<size_t>(device)).name.c_str());
  return 0;
}

int cuDeviceGetUuid_v2(unsigned char* bytes, int device) {
  std::memset(bytes, visible().at(static_cast<size_t>(device)).number, 16);
  return 0;
}

int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 75 ? 9 : 0;  // compute capability 9.0
  return 0;
}
}
