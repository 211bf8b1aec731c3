#include "runtime.hpp"

namespace {

thread_local cudaError_t last_error = cudaSuccess;
std::string last_failure;

}  // namespace

std::recursive_mutex one_call;

Argument::Argument(const char* name, dim3 d)
    : name(name), text("(" + std::to_string(d.x) + ", " + std::to_string(d.y) + ", " +
                       std::to_string(d.z) + ")") {}

std::string json(const Refused& refused) {
  std::string args;
  for (const Argument& each : refused.args)
    args += (args.empty() ? "" : ",") + json_text(each.name) + ":" + json_text(each.text);
  return "{\"number\":" + std::to_string(refused.refusal) + ",\"args\":{" + args + "}}";
}

cudaError_t failed(cudaError_t error, const char* function) {
  return failed(error, {FAILED, {{"function", function}, {"error", cudaGetErrorName(error)}}});
}
cudaError_t failed(cudaError_t error, const Refused& refused) {
  last_error = error;
  last_failure = json(refused);
  return error;
}

void driver_failed(const Refused& refused) { last_failure = json(refused); }

std::string last_failure_json() { return last_failure.empty() ? "null" : last_failure; }

extern "C" {

cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError() { return last_error; }

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration: return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidDevice: return "cudaErrorInvalidDevice";
    case cudaErrorInvalidDeviceFunction: return "cudaErrorInvalidDeviceFunction";
    case cudaErrorLaunchOutOfResources: return "cudaErrorLaunchOutOfResources";
    case cudaErrorCooperativeLaunchTooLarge: return "cudaErrorCooperativeLaunchTooLarge";
    case cudaErrorInvalidClusterSize: return "cudaErrorInvalidClusterSize";
    default: return "cudaErrorUnknown";
  }
}
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInvalidConfiguration: return "invalid configuration argument";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorInvalidDeviceFunction: return "invalid device function";
    case cudaErrorLaunchOutOfResources: return "too many resources requested for launch";
    case cudaErrorCooperativeLaunchTooLarge: return "too many blocks in cooperative launch";
    case cudaErrorInvalidClusterSize: return "misconfigured cluster";
    default: return "unknown error";
  }
}
}
