// Calls that only a sink which executes can answer, or that ask little.
#include <cstdio>
#include <cstring>

#include "sink.hpp"

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
cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp*) { return give(device, 0); }
cudaError_t cudaGetDeviceFlags(unsigned* flags) { return give(flags, 0); }
cudaError_t cudaDeviceGetPCIBusId(char* text, int bytes, int) {
  std::snprintf(text, size_t(bytes), "0000:00:00.0");
  return cudaSuccess;
}
cudaError_t cudaCtxResetPersistingL2Cache() { return cudaSuccess; }

// --- peers: there is one device
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) { return give(can, 0); }
RUNTIME(cudaDeviceEnablePeerAccess, (int, unsigned), failed(cudaErrorPeerAccessUnsupported, caller))
RUNTIME(cudaDeviceDisablePeerAccess, (int), failed(cudaErrorPeerAccessUnsupported, caller))
cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr, int, int) {
  return give(value, 0);
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
RUNTIME(cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t work, void* data),
        (order_host_sees(stream), work(data), cudaSuccess))
RUNTIME(cudaStreamAddCallback,
        (cudaStream_t stream, cudaStreamCallback_t work, void* data, unsigned),
        (order_host_sees(stream), work(stream, cudaSuccess, data), cudaSuccess))
cudaError_t cudaStreamGetPriority(cudaStream_t, int* priority) { return give(priority, 0); }
cudaError_t cudaStreamGetFlags(cudaStream_t, unsigned* flags) { return give(flags, 0); }
cudaError_t cudaStreamSetAttribute(cudaStream_t, cudaStreamAttrID, const cudaStreamAttrValue*) {
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  return give(status, cudaStreamCaptureStatusNone);
}
}
