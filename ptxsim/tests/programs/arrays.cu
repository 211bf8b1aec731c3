// Memory of two and three dimensions, CUDA arrays, textures and surfaces. What it prints, a GPU
// printed, too.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

using Texture = cudaTextureObject_t;
constexpr int W = 6, H = 5, D = 4;

__global__ void sample_1d(Texture t, const float4* at, float* out) {
  out[threadIdx.x] = tex1D<float>(t, at[threadIdx.x].x);
}
__global__ void sample_2d(Texture t, const float4* at, float* out) {
  out[threadIdx.x] = tex2D<float>(t, at[threadIdx.x].x, at[threadIdx.x].y);
}
__global__ void sample_2d_level(Texture t, const float4* at, float* out) {
  out[threadIdx.x] = tex2DLod<float>(t, at[threadIdx.x].x, at[threadIdx.x].y, 3);
}
__global__ void sample_3d(Texture t, const float4* at, float* out) {
  out[threadIdx.x] = tex3D<float>(t, at[threadIdx.x].x, at[threadIdx.x].y, at[threadIdx.x].z);
}
__global__ void sample_1d_layer(Texture t, const float4* at, float* out) {
  out[threadIdx.x] = tex1DLayered<float>(t, at[threadIdx.x].x, int(at[threadIdx.x].w));
}
__global__ void sample_2d_layer(Texture t, const float4* at, float* out) {
  out[threadIdx.x] =
      tex2DLayered<float>(t, at[threadIdx.x].x, at[threadIdx.x].y, int(at[threadIdx.x].w));
}
__global__ void fetch(Texture t, float* out) {
  out[threadIdx.x] = tex1Dfetch<float>(t, int(threadIdx.x) - 2);
}
__global__ void fetch_bytes(Texture t, uchar4* out) {
  out[threadIdx.x] = tex2D<uchar4>(t, threadIdx.x, 1);
}

__global__ void fill_plane(cudaSurfaceObject_t s) {
  const int x = threadIdx.x, y = threadIdx.y;
  surf2Dwrite(make_uchar4(x, y, x + y, 7), s, x * 4, y);
  surf2Dwrite(make_uchar4(9, 9, 9, 9), s, (x + W) * 4, y, cudaBoundaryModeZero);
}
__global__ void read_plane(cudaSurfaceObject_t s, int* out) {
  const int x = int(threadIdx.x) - 1;
  const uchar4 inside = surf2Dread<uchar4>(s, x * 4, 2, cudaBoundaryModeClamp);
  const uchar4 nothing = surf2Dread<uchar4>(s, x * 4, 2, cudaBoundaryModeZero);
  out[threadIdx.x] = inside.z * 100 + nothing.z;
}
__global__ void fill_volume(cudaSurfaceObject_t s) {
  const int x = threadIdx.x, y = threadIdx.y, z = threadIdx.z;
  surf3Dwrite(surf3Dread<float>(s, x * 4, y, z) + 1000, s, x * 4, y, z);
}
__global__ void fill_layer(cudaSurfaceObject_t s) {
  surf2DLayeredwrite(float(threadIdx.x), s, int(threadIdx.x) * 4, 1, 2);
}

template <class T>
void show(const char* name, const T* device, int count) {
  std::vector<T> host(count);
  cudaMemcpy(host.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost);
  printf("%s:", name);
  for (const T& each : host) printf(" %.7g", double(each));
  printf(" %s\n", cudaGetErrorName(cudaGetLastError()));
}

// Of all samples, bit by bit.
unsigned digest = 2166136261u;
void add_samples(const float* device) {
  unsigned host[64];
  cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost);
  for (const unsigned each : host) digest = (digest ^ each) * 16777619u;
}

cudaArray_t make(cudaChannelFormatDesc desc, cudaExtent extent, unsigned flags = 0) {
  cudaArray_t made;
  cudaMalloc3DArray(&made, &desc, extent, flags);
  return made;
}

void fill(cudaArray_t array, const float* values, int w, int h, int d) {
  cudaMemcpy3DParms p = {};
  p.srcPtr = make_cudaPitchedPtr(const_cast<float*>(values), w * 4, w, h);
  p.dstArray = array;
  p.extent = make_cudaExtent(w, h, d);
  p.kind = cudaMemcpyHostToDevice;
  cudaMemcpy3D(&p);
}

Texture texture(cudaArray_t array, cudaTextureAddressMode mode, bool linear, bool normalized) {
  cudaResourceDesc from = {};
  from.resType = cudaResourceTypeArray;
  from.res.array.array = array;
  cudaTextureDesc how = {};
  for (auto& each : how.addressMode) each = mode;
  how.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
  how.normalizedCoords = normalized;
  Texture made = 0;
  cudaCreateTextureObject(&made, &from, &how, nullptr);
  return made;
}

cudaSurfaceObject_t surface(cudaArray_t array) {
  cudaResourceDesc from = {};
  from.resType = cudaResourceTypeArray;
  from.res.array.array = array;
  cudaSurfaceObject_t made = 0;
  cudaCreateSurfaceObject(&made, &from);
  return made;
}

void volumes(float* out) {
  cudaPitchedPtr one, other;
  const cudaExtent bytes = make_cudaExtent(W * 4, H, D);
  cudaMalloc3D(&one, bytes), cudaMalloc3D(&other, bytes);
  cudaMemset3D(one, 0, bytes), cudaMemset3D(other, 1, bytes);
  float host[D][H][W], back[D][H][W] = {};
  for (int i = 0; i < W * H * D; ++i) (&host[0][0][0])[i] = float(i);
  cudaMemcpy3DParms p = {};  // one row and one plane are left out
  p.srcPtr = make_cudaPitchedPtr(host, W * 4, W, H);
  p.srcPos = make_cudaPos(4, 1, 1);
  p.dstPtr = one;
  p.extent = make_cudaExtent(W * 4 - 4, H - 1, D - 1);
  p.kind = cudaMemcpyHostToDevice;
  cudaMemcpy3D(&p);
  p.srcPtr = one, p.dstPtr = other, p.srcPos = make_cudaPos(0, 0, 1), p.dstPos = {4, 0, 0};
  p.extent = make_cudaExtent(8, 2, 2), p.kind = cudaMemcpyDefault;
  cudaMemcpy3DAsync(&p);
  p.srcPtr = other, p.srcPos = {}, p.dstPos = {}, p.extent = bytes;
  p.dstPtr = make_cudaPitchedPtr(back, W * 4, W, H);
  p.kind = cudaMemcpyDeviceToHost;
  cudaMemcpy3D(&p);
  printf("volume: %g %g %g %d\n", back[0][0][1], back[1][1][2], back[1][1][1], back[0][0][0] > 0);
  // Columns beside each other within one allocation, and rows of the host.
  cudaMemcpy2D(static_cast<char*>(one.ptr) + 8, one.pitch, one.ptr, one.pitch, 8, 3,
               cudaMemcpyDeviceToDevice);
  float rows[3][2] = {};
  cudaMemcpy2D(rows, 8, static_cast<char*>(one.ptr) + 8, one.pitch, 8, 3, cudaMemcpyDeviceToHost);
  cudaMemcpy2D(back, W * 4, rows, 8, 8, 3, cudaMemcpyHostToHost);
  printf("rows: %g %g %g\n", rows[2][1], back[0][1][1], back[0][2][1]);
  cudaFree(one.ptr), cudaFree(other.ptr);
}

int main() {
  srand(2);
  float values[W * H * D];
  for (float& each : values) each = float(rand() % 1000);
  std::vector<float4> at(64);
  for (float4& each : at)
    each = {rand() % 4096 / 256.f - 5, rand() % 4096 / 256.f - 5, rand() % 2048 / 256.f - 2,
            float(rand() % 6)};
  std::vector<float4> whole = at;
  for (float4& each : whole) each = {each.x / 8, each.y / 8, each.z / 8, each.w};
  float4 *places, *fractions;
  float* out;
  cudaMalloc(&places, 1024), cudaMalloc(&fractions, 1024), cudaMalloc(&out, 1024);
  cudaMemcpy(places, at.data(), 1024, cudaMemcpyHostToDevice);
  cudaMemcpy(fractions, whole.data(), 1024, cudaMemcpyHostToDevice);
  volumes(out);

  const auto floats = cudaCreateChannelDesc<float>();
  const struct {
    const char* name;
    cudaExtent extent;
    unsigned flags;
    void (*kernel)(Texture, const float4*, float*);
  } kinds[] = {
      {"1d", {W, 0, 0}, 0, sample_1d},
      {"2d", {W, H, 0}, 0, sample_2d},
      {"2d level", {W, H, 0}, 0, sample_2d_level},
      {"3d", {W, H, D}, cudaArraySurfaceLoadStore, sample_3d},
      {"1d layer", {W, 0, D}, cudaArrayLayered, sample_1d_layer},
      {"2d layer", {W, H, D}, cudaArrayLayered | cudaArraySurfaceLoadStore, sample_2d_layer}};
  for (const auto& kind : kinds) {
    cudaArray_t array = make(floats, kind.extent, kind.flags);
    fill(array, values, W, kind.extent.height ? H : 1, kind.extent.depth ? D : 1);
    for (int mode = cudaAddressModeWrap; mode <= cudaAddressModeBorder; ++mode)
      for (const bool linear : {false, true})
        for (const bool normalized : {false, true}) {
          if (!strcmp(kind.name, "2d level") && mode != cudaAddressModeClamp) continue;
          const Texture t = texture(array, cudaTextureAddressMode(mode), linear, normalized);
          kind.kernel<<<1, 64>>>(t, normalized ? fractions : places, out);
          add_samples(out);
          cudaDestroyTextureObject(t);
        }
    if (!strcmp(kind.name, "3d")) {
      const cudaSurfaceObject_t s = surface(array);
      fill_volume<<<1, dim3(W, H, D)>>>(s);
      const Texture t = texture(array, cudaAddressModeClamp, false, false);
      sample_3d<<<1, 64>>>(t, places, out);
      show("stored", out, 6);
      cudaDestroySurfaceObject(s), cudaDestroyTextureObject(t);
    }
    if (!strcmp(kind.name, "2d layer")) {
      const cudaSurfaceObject_t s = surface(array);
      fill_layer<<<1, W>>>(s);
      float row[W];
      cudaMemcpy3DParms p = {};
      p.srcArray = array, p.srcPos = make_cudaPos(0, 1, 2);
      p.dstPtr = make_cudaPitchedPtr(row, sizeof row, W, 1), p.extent = make_cudaExtent(W, 1, 1);
      p.kind = cudaMemcpyDeviceToHost;
      cudaMemcpy3D(&p);
      printf("layer: %g %g %g\n", row[0], row[3], row[W - 1]);
      cudaDestroySurfaceObject(s);
    }
    cudaFreeArray(array);
  }

  printf("samples: %08x\n", digest);

  // A plane of bytes, through a surface and a texture.
  const auto bytes = cudaCreateChannelDesc<uchar4>();
  cudaArray_t plane;
  cudaMallocArray(&plane, &bytes, W, H, cudaArraySurfaceLoadStore);
  uchar4 nine[H][W];
  memset(nine, 9, sizeof nine);
  cudaMemcpy2DToArray(plane, 0, 0, nine, sizeof nine[0], W * 4, H, cudaMemcpyHostToDevice);
  const cudaSurfaceObject_t s = surface(plane);
  fill_plane<<<1, dim3(W, H)>>>(s);
  int* seen;
  cudaMalloc(&seen, 8 * sizeof(int));
  read_plane<<<1, 8>>>(s, seen);
  show("surface", seen, 8);
  const Texture t = texture(plane, cudaAddressModeClamp, false, false);
  uchar4* texels;
  cudaMalloc(&texels, 8 * 4);
  fetch_bytes<<<1, 8>>>(t, texels);
  show("bytes", reinterpret_cast<unsigned char*>(texels), 32);
  cudaMemcpy2DFromArray(nine, sizeof nine[0], plane, 4, 1, 8, 2, cudaMemcpyDeviceToHost);
  printf("rectangle: %d %d\n", nine[0][1].x, nine[1][1].z);
  cudaChannelFormatDesc desc;
  cudaExtent extent;
  unsigned flags;
  cudaArrayGetInfo(&desc, &extent, &flags, plane);
  printf("info: %d %d %zu %zu %zu %u\n", desc.y, desc.f, extent.width, extent.height, extent.depth,
         flags);

  // Linear and pitched memory.
  cudaResourceDesc linear = {};
  linear.resType = cudaResourceTypeLinear;
  linear.res.linear = {out, floats, 12 * sizeof(float)};
  const cudaTextureDesc how = {};
  Texture line = 0;
  cudaMemcpy(out, values, 48, cudaMemcpyHostToDevice);
  cudaCreateTextureObject(&line, &linear, &how, nullptr);
  fetch<<<1, 16>>>(line, out + 64);
  show("fetch", out + 64, 16);
  float* rows;
  size_t pitch;
  cudaMallocPitch(&rows, &pitch, W * 4, H);
  cudaMemcpy2D(rows, pitch, values, W * 4, W * 4, H, cudaMemcpyHostToDevice);
  cudaResourceDesc pitched = {};
  pitched.resType = cudaResourceTypePitch2D;
  pitched.res.pitch2D = {rows, floats, W, H, pitch};
  cudaTextureDesc filtered = {};
  filtered.filterMode = cudaFilterModeLinear;
  for (auto& each : filtered.addressMode) each = cudaAddressModeClamp;
  Texture plain = 0;
  cudaCreateTextureObject(&plain, &pitched, &filtered, nullptr);
  sample_2d<<<1, 64>>>(plain, places, out);
  show("pitched", out, 6);
  for (const Texture each : {t, line, plain}) cudaDestroyTextureObject(each);
  cudaDestroySurfaceObject(s), cudaFreeArray(plane);
  for (void* each :
       {(void*)places, (void*)fractions, (void*)out, (void*)rows, (void*)seen, (void*)texels})
    cudaFree(each);
  printf("%s\n", cudaGetErrorName(cudaGetLastError()));
}
