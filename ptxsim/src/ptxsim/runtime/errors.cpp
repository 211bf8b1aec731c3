#include <algorithm>
#include <iterator>

#include "runtime.hpp"

namespace {

thread_local cudaError_t last_error = cudaSuccess;
std::string last_failure;

struct Known {
  cudaError_t error;
  const char *name, *text;
};

// Those that calls of ours return, and what programs look for.
constexpr Known ERRORS[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {cudaErrorInvalidPitchValue, "cudaErrorInvalidPitchValue", "invalid pitch argument"},
    {cudaErrorInvalidSymbol, "cudaErrorInvalidSymbol", "invalid device symbol"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection",
     "invalid copy direction for memcpy"},
    {cudaErrorInvalidFilterSetting, "cudaErrorInvalidFilterSetting",
     "linear filtering not supported for non-float type"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorInvalidKernelImage, "cudaErrorInvalidKernelImage", "device kernel image is invalid"},
    {cudaErrorDeviceUninitialized, "cudaErrorDeviceUninitialized", "invalid device context"},
    {cudaErrorFileNotFound, "cudaErrorFileNotFound", "file not found"},
    {cudaErrorSymbolNotFound, "cudaErrorSymbolNotFound", "named symbol not found"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {cudaErrorHostMemoryAlreadyRegistered, "cudaErrorHostMemoryAlreadyRegistered",
     "part or all of the requested memory range is already mapped"},
    {cudaErrorHostMemoryNotRegistered, "cudaErrorHostMemoryNotRegistered",
     "pointer does not correspond to a registered memory region"},
    {cudaErrorLaunchOutOfResources, "cudaErrorLaunchOutOfResources",
     "too many resources requested for launch"},
    {cudaErrorLaunchTimeout, "cudaErrorLaunchTimeout", "the launch timed out and was terminated"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorAssert, "cudaErrorAssert", "device-side assert triggered"},
    {cudaErrorCooperativeLaunchTooLarge, "cudaErrorCooperativeLaunchTooLarge",
     "too many blocks in cooperative launch"},
    {cudaErrorInvalidClusterSize, "cudaErrorInvalidClusterSize", "misconfigured cluster"},
    {cudaErrorPeerAccessUnsupported, "cudaErrorPeerAccessUnsupported",
     "peer access is not supported between these two devices"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

const Known& known(cudaError_t error) {
  const Known* const end = std::end(ERRORS) - 1;
  return *std::find_if(std::begin(ERRORS), end,
                       [error](const Known& each) { return each.error == error; });
}

}  // namespace

std::recursive_mutex one_call;
thread_local const char* spoken_as = nullptr;
thread_local bool runtime_used = false;

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

void forget_error() { last_error = cudaSuccess; }

void driver_failed(const Refused& refused) { last_failure = json(refused); }

std::string last_failure_json() { return last_failure.empty() ? "null" : last_failure; }

extern "C" {

cudaError_t cudaGetLastError() {
  const cudaError_t error = cudaPeekAtLastError();
  last_error = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError() {
  if (last_error) sink_asked();
  return sink_broken ? sink_broken : last_error;
}

const char* cudaGetErrorName(cudaError_t error) { return known(error).name; }
const char* cudaGetErrorString(cudaError_t error) { return known(error).text; }
}
