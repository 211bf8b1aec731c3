// Mistakes with rows, volumes, arrays, textures and surfaces: one for each name.
#include <cstdio>
#include <string>

__global__ void write(int* out) { out[threadIdx.x] = 1; }
__global__ void sample(cudaTextureObject_t t, float* out) {
  *out = tex2D<float>(t, 0, 0);  // destroyed
}
__global__ void sample_freed(cudaTextureObject_t t, float* out) {
  *out = tex2D<float>(t, 0, 0);  // freed texture
}
__global__ void store_freed(cudaSurfaceObject_t s) {
  surf2Dwrite(1.0f, s, threadIdx.x * 4, 0);  // freed surface
}
__global__ void sample_line(cudaTextureObject_t t, float* out) {
  *out = tex1D<float>(t, 0);  // dimensions
}
__global__ void store(cudaSurfaceObject_t s) {
  surf2Dwrite(1.0f, s, threadIdx.x * 4, 0);  // surface
}
__global__ void load(cudaSurfaceObject_t s, float* out) {
  *out = surf2Dread<float>(s, 0, 0);  // no-surface
}

int main(int, char** argv) {
  const std::string mistake = argv[1];
  float host[64] = {}, *out;
  int *d_a, *d_b;
  cudaMalloc(&out, 4), cudaMalloc(&d_a, 256), cudaMalloc(&d_b, 256);
  write<<<1, 32>>>(d_b);

  if (mistake == "rows") {
    cudaMemset2D(d_a, 32, 0, 16, 8);
    cudaMemcpy2D(host, 32, d_a, 32, 16, 8, cudaMemcpyDeviceToHost);
    cudaMemcpy2D(host, 32, d_a, 32, 20, 8, cudaMemcpyDeviceToHost);  // rows
  }
  if (mistake == "pitch") cudaMemcpy2D(host, 16, d_b, 32, 20, 3, cudaMemcpyDeviceToHost);  // pitch
  if (mistake == "last") cudaMemcpy2D(d_a, 64, host, 16, 16, 5, cudaMemcpyHostToDevice);   // last
  if (mistake == "overlap") {
    cudaMemcpy2D(d_b + 4, 32, d_b, 32, 16, 3, cudaMemcpyDeviceToDevice);
    cudaMemcpy2D(d_b + 3, 32, d_b, 32, 16, 3, cudaMemcpyDeviceToDevice);  // overlap
  }
  if (mistake == "copied") {
    cudaMemcpy(d_a, d_b, 256, cudaMemcpyDeviceToDevice);
    cudaMemcpy(host, d_a, 128, cudaMemcpyDeviceToHost);
    cudaMemcpy(host, d_a, 256, cudaMemcpyDeviceToHost);  // copied
  }
  if (mistake == "volume") {
    cudaMemcpy3DParms p = {};
    p.srcPtr = make_cudaPitchedPtr(host, 16, 16, 4);
    p.dstPtr = make_cudaPitchedPtr(d_b, 16, 16, 4);
    p.extent = make_cudaExtent(16, 4, 5);
    p.kind = cudaMemcpyHostToDevice;
    cudaMemcpy3D(&p);  // volume
  }

  cudaArray_t array, other;
  const auto floats = cudaCreateChannelDesc<float>(), ints = cudaCreateChannelDesc<int>();
  const bool whole = mistake == "filter";
  cudaMallocArray(&array, whole ? &ints : &floats, 8, 8, cudaArraySurfaceLoadStore);
  if (mistake == "array")
    cudaMemcpy2DToArray(array, 4, 0, host, 32, 32, 1, cudaMemcpyHostToDevice);  // array
  if (mistake == "cube")
    cudaMalloc3DArray(&other, &floats, make_cudaExtent(4, 4, 6), cudaArrayCubemap);  // cube
  cudaResourceDesc from = {};
  from.resType = cudaResourceTypeArray;
  from.res.array.array = array;
  cudaTextureDesc how = {};
  how.filterMode = cudaFilterModeLinear;
  cudaTextureObject_t t = 0;
  cudaSurfaceObject_t s = 0;
  cudaCreateTextureObject(&t, &from, &how, nullptr);  // filter
  cudaCreateSurfaceObject(&s, &from);
  if (mistake == "dimensions") sample_line<<<1, 1>>>(t, out);
  if (mistake == "no-surface") load<<<1, 1>>>(t, out);
  store<<<1, 8>>>(s);
  if (mistake == "surface") store<<<1, 9>>>(s);
  if (mistake == "unwritten") cudaMemcpyFromArray(host, array, 0, 0, 64, cudaMemcpyDeviceToHost);
  if (mistake == "freed texture" || mistake == "freed surface") {
    cudaFreeArray(array);
    if (mistake == "freed texture") sample_freed<<<1, 1>>>(t, out);
    if (mistake == "freed surface") store_freed<<<1, 8>>>(s);
  }
  cudaDestroyTextureObject(t);
  if (mistake == "destroyed") sample<<<1, 1>>>(t, out);
  printf("%s\n", cudaGetErrorName(cudaGetLastError()));
  cudaDestroySurfaceObject(s), cudaFreeArray(array);
  cudaFree(out), cudaFree(d_a), cudaFree(d_b);
}
