// Reads through texture objects.
#define KERNEL extern "C" __global__ void
using Texture = cudaTextureObject_t;

KERNEL fetch_float4(Texture t, float4* out) {
  out[threadIdx.x] = tex1Dfetch<float4>(t, int(threadIdx.x) - 2);
}
KERNEL fetch_float2(Texture t, float2* out) {
  out[threadIdx.x] = tex1Dfetch<float2>(t, int(threadIdx.x) - 2);
}
KERNEL fetch_float(Texture t, float* out) {
  out[threadIdx.x] = tex1Dfetch<float>(t, int(threadIdx.x) - 2);
}
KERNEL fetch_int(Texture t, int* out) {
  out[threadIdx.x] = tex1Dfetch<int>(t, int(threadIdx.x) - 2);
}
KERNEL fetch_uchar4(Texture t, uchar4* out) {
  out[threadIdx.x] = tex1Dfetch<uchar4>(t, int(threadIdx.x) - 2);
}
KERNEL line(Texture t, const float* x, float* out) {
  out[threadIdx.x] = tex1D<float>(t, x[threadIdx.x]);
}
KERNEL plane(Texture t, const float* x, const float* y, float* out) {
  out[threadIdx.x] = tex2D<float>(t, x[threadIdx.x], y[threadIdx.x]);
}

KERNEL writes(Texture t, float* array) {
  array[threadIdx.x] = 1;
  array[threadIdx.x + 32] = tex1Dfetch<float>(t, threadIdx.x);  // read
}

KERNEL volume(Texture t, const float* x, const float* y, const float* z, float* out) {
  out[threadIdx.x] = tex3D<float>(t, x[threadIdx.x], y[threadIdx.x], z[threadIdx.x]);
}
KERNEL layers(Texture t, const int* layer, float* out) {
  out[threadIdx.x] = tex1DLayered<float>(t, 0.5f, layer[threadIdx.x]);
}
KERNEL sheets(Texture t, const int* layer, float* out) {
  out[threadIdx.x] = tex2DLayered<float>(t, 0.5f, 0.5f, layer[threadIdx.x]);
}

KERNEL gather(Texture t, float4* out) { *out = tex2Dgather<float4>(t, 0, 0); }
KERNEL cube(Texture t, float* out) { *out = texCubemap<float>(t, 0, 1, 0); }
