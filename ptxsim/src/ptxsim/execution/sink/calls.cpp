// Calls that only a sink which executes can answer, or that ask little.
#include <cstdio>
#include <cstring>

#include "sink.hpp"

namespace {

cudaError_t no_peer(const char* caller) { return failed(cudaErrorPeerAccessUnsupported, caller); }

}  // namespace

extern "C" {

cudaError_t cudaDeviceReset() {
  const std::lock_guard<std::recursive_mutex> alone(one_call);
  sink_broken = cudaSuccess;
  forget_error();
  unpin_all();
  free_all();
  return cudaSuccess;
}
cudaError_t cudaInitDevice(int, unsigned, unsigned) { return cudaSuccess; }
cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp*) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  *flags = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int bytes, int) {
  std::snprintf(text, size_t(bytes), "0000:00:00.0");
  return cudaSuccess;
}
cudaError_t cudaCtxResetPersistingL2Cache() { return cudaSuccess; }

// --- peers: there is one device
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return answer(__func__, no_peer); }
cudaError_t cudaDeviceDisablePeerAccess(int) { return answer(__func__, no_peer); }
cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr, int, int) {
  *value = 0;
  return cudaSuccess;
}
cudaError_t cudaMemcpyPeer(void* target, int, const void* source, int, size_t bytes) {
  return cudaMemcpy(target, source, bytes, cudaMemcpyDefault);
}
cudaError_t cudaMemcpyPeerAsync(void* target, int, const void* source, int, size_t bytes,
                                cudaStream_t stream) {
  return cudaMemcpyAsync(target, source, bytes, cudaMemcpyDefault, stream);
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t, void*, size_t, unsigned) { return cudaSuccess; }

// --- streams: all that came before is done
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t work, void* data) {
  return answer(__func__, [&](const char*) {
    order_host_sees(stream);
    work(data);
    return cudaSuccess;
  });
}
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t work, void* data,
                                  unsigned) {
  return answer(__func__, [&](const char*) {
    order_host_sees(stream);
    work(stream, cudaSuccess, data);
    return cudaSuccess;
  });
}
cudaError_t cudaStreamGetPriority(cudaStream_t, int* priority) {
  *priority = 0;
  return cudaSuccess;
}
cudaError_t cudaStreamGetFlags(cudaStream_t, unsigned* flags) {
  *flags = 0;
  return cudaSuccess;
}
cudaError_t cudaStreamSetAttribute(cudaStream_t, cudaStreamAttrID, const cudaStreamAttrValue*) {
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
}
