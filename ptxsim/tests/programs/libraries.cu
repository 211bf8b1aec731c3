// cuBLAS and the driver: against plain loops where there is no argument, else one mistake by name.
#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

constexpr int M = 7, N = 5, K = 9;

struct Matrix {  // as cuBLAS has it: by columns
  int rows, columns, ld;
  std::vector<double> at;
  Matrix(int rows, int columns, int seed, int gap = 2)
      : rows(rows), columns(columns), ld(rows + gap), at(size_t(ld) * columns) {
    for (size_t i = 0; i < at.size(); ++i) at[i] = double((i * 7 + seed) % 11) - 5;
  }
  double& operator()(int i, int j) { return at[size_t(j) * ld + i]; }
};

template <class T>
struct OnDevice {
  T* at;
  explicit OnDevice(const std::vector<double>& from) {
    std::vector<T> values;
    for (double each : from) values.push_back(T(float(each)));
    cudaMalloc(&at, values.size() * sizeof(T));
    cudaMemcpy(at, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice);
  }
  double operator[](size_t i) const {
    T value;
    cudaMemcpy(&value, at + i, sizeof value, cudaMemcpyDeviceToHost);
    return double(float(value));
  }
};

int failures = 0;
void expect(const char* what, double found, double wanted, double tolerance = 1e-5) {
  if (std::fabs(found - wanted) <= tolerance * (1 + std::fabs(wanted))) return;
  std::printf("%s: %g instead of %g\n", what, found, wanted);
  ++failures;
}
void expect(const char* what, cublasStatus_t status) { expect(what, status, 0); }

cublasHandle_t handle;

template <class T, class Out = T, class Factor = float>
void products(const char* what, cudaDataType from, cudaDataType to, cublasComputeType_t computes,
              double tolerance) {
  for (int turned = 0; turned < 2; ++turned) {
    Matrix a(turned ? K : M, turned ? M : K, 1), b(K, N, 2), c(M, N, 3);
    OnDevice<T> da(a.at), db(b.at);
    OnDevice<Out> dc(c.at);
    const Factor alpha = Factor(2), beta = Factor(3);
    expect(what, cublasGemmEx(handle, turned ? CUBLAS_OP_T : CUBLAS_OP_N, CUBLAS_OP_N, M, N, K,
                              &alpha, da.at, from, a.ld, db.at, from, b.ld, &beta, dc.at, to, c.ld,
                              computes, CUBLAS_GEMM_DEFAULT));
    for (int i = 0; i < M; ++i)
      for (int j = 0; j < N; ++j) {
        double sum = 0;
        for (int l = 0; l < K; ++l) sum += (turned ? a(l, i) : a(i, l)) * b(l, j);
        expect(what, dc[size_t(j) * c.ld + i], 2 * sum + 3 * c(i, j), tolerance);
      }
    expect(what, dc[M], c(M, 0));  // between columns
  }
}

void batches() {
  const float one = 1, zero = 0;
  Matrix a(M, K, 1, 0), b(K, 3 * N, 2, 0);
  OnDevice<float> da(a.at), db(b.at), dc(std::vector<double>(3 * M * N)),
      dd(std::vector<double>(3 * M * N));
  expect("strided",
         cublasSgemmStridedBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, M, N, K, &one, da.at, M, 0,
                                   db.at, K, K * N, &zero, dc.at, M, M * N, 3));
  const float *as[3], *bs[3];
  float* ds[3];
  for (int i = 0; i < 3; ++i) as[i] = da.at, bs[i] = db.at + i * K * N, ds[i] = dd.at + i * M * N;
  void* pointers;
  cudaMalloc(&pointers, 9 * sizeof(void*));
  const auto list = static_cast<float**>(pointers);
  cudaMemcpy(list, as, sizeof as, cudaMemcpyHostToDevice);
  cudaMemcpy(list + 3, bs, sizeof bs, cudaMemcpyHostToDevice);
  cudaMemcpy(list + 6, ds, sizeof ds, cudaMemcpyHostToDevice);
  expect("batched", cublasSgemmBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, M, N, K, &one, list, M,
                                       list + 3, K, &zero, list + 6, M, 3));
  for (int i : {0, 2}) {
    double sum = 0;
    for (int l = 0; l < K; ++l) sum += a(1, l) * b(l, i * N + 2);
    expect("strided", dc[i * M * N + 2 * M + 1], sum);
    expect("batched", dd[i * M * N + 2 * M + 1], sum);
  }
}

void vectors() {
  const float two = 2, one = 1, minus = -1;
  Matrix a(M, M, 4, 0);
  for (int i = 0; i < M; ++i) a(i, i) = 40;
  std::vector<double> x{1, -2, 3, -4, 5, -6, 7}, y{3, 1, 4, 1, 5, 9, 2};
  OnDevice<float> da(a.at), dx(x), dy(y), dz(y), ds(a.at);
  const auto row = [&](auto at) {
    double sum = 0;
    for (int l = 0; l < M; ++l) sum += at(l) * x[l];
    return sum;
  };
  cublasSgemv(handle, CUBLAS_OP_T, M, M, &two, da.at, M, dx.at, 1, &one, dy.at, 1);
  expect("gemv", dy[2], 2 * row([&](int l) { return a(l, 2); }) + y[2]);
  cublasSgemv(handle, CUBLAS_OP_N, M, M, &one, da.at, M, dx.at, -1, &minus, dz.at, 1);
  double sum = 0;
  for (int l = 0; l < M; ++l) sum += a(3, l) * x[M - 1 - l];
  expect("gemv, backwards", dz[3], sum - y[3]);
  cublasSsymv(handle, CUBLAS_FILL_MODE_LOWER, M, &one, da.at, M, dx.at, 1, &two, dy.at, 1);
  cublasSger(handle, M, M, &two, dx.at, 1, dx.at, 1, ds.at, M);
  expect("ger", ds[3 * M + 1], a(1, 3) + 2 * x[1] * x[3]);
  cublasStrsv(handle, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, M, da.at, M, dx.at,
              1);
  cublasStrmv(handle, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, M, da.at, M, dx.at,
              1);
  for (int i = 0; i < M; ++i) expect("trsv and trmv", dx[i], x[i], 1e-4);
  OnDevice<float> db(a.at), dc(a.at);
  cublasStrsm(handle, CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_T, CUBLAS_DIAG_UNIT, M,
              M, &two, da.at, M, db.at, M);
  cublasStrmm(handle, CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_T, CUBLAS_DIAG_UNIT, M,
              M, &one, da.at, M, db.at, M, dc.at, M);
  expect("trsm and trmm", dc[5 * M + 4], 2 * a(4, 5), 1e-2);
  cublasSsymm(handle, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_UPPER, M, M, &one, da.at, M, ds.at, M,
              &minus, dc.at, M);
  cublasSgeam(handle, CUBLAS_OP_T, CUBLAS_OP_N, M, M, &two, da.at, M, &minus, da.at, M, dc.at, M);
  expect("geam", dc[2 * M + 1], 2 * a(2, 1) - a(1, 2));
  cublasSdgmm(handle, CUBLAS_SIDE_LEFT, M, M, da.at, M, dz.at, 1, dc.at, M);
  expect("dgmm", dc[2 * M + 3], a(3, 2) * dz[3]);

  OnDevice<double> p(x), q(y);
  double found = 0;
  int place = 0;
  const double three = 3;
  cublasDaxpy(handle, M, &three, p.at, 1, q.at, 1);
  expect("axpy", q[4], 3 * 5 + 5);
  cublasDscal(handle, 4, &three, q.at, 2);
  expect("scal", q[2], 3 * (3 * 3 + 4));
  cublasDswap(handle, M, p.at, 1, q.at, 1);
  cublasDcopy(handle, 3, q.at, 1, p.at, 2);
  expect("swap and copy", p[4], 3);
  cublasDdot(handle, M, q.at, 1, q.at, 1, &found);
  expect("dot", found, 140);
  cublasDnrm2(handle, M, q.at, 1, &found);
  expect("nrm2", found, std::sqrt(140));
  cublasDasum(handle, M, q.at, 1, &found);
  expect("asum", found, 28);
  cublasIdamax(handle, M, q.at, 1, &place);
  expect("amax", place, 7);
  double* results;  // and factors, on the device
  cudaMalloc(&results, sizeof(double));
  cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE);
  cublasDasum(handle, M, q.at, 1, results);
  cublasDscal(handle, 1, results, q.at, 1);
  cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST);
  cublasGetVector(1, sizeof found, q.at, 1, &found, 1);
  expect("factors on the device", found, 28);
}

const char* const TEXT = R"(
.version 8.0
.target sm_80
.address_size 64
.global .align 4 .u32 step = $STEP;
.visible .entry move(.param .u64 to, .param .u32 more) {
  .reg .b64 %a<4>;
  .reg .b32 %r<5>;
  ld.param.u64 %a1, [to];
  ld.param.u32 %r1, [more];
  ld.global.u32 %r2, [step];
  mov.u32 %r3, %tid.x;
  mad.wide.u32 %a2, %r3, 4, %a1;
  add.u32 %r4, %r1, %r2;
  st.global.u32 [%a2], %r4;
  ret;
})";

__global__ void add_one(int* to) { ++to[threadIdx.x]; }

void driver() {
  CUdevice device;
  CUcontext context;
  CUmodule modules[2];
  CUfunction kernels[2];
  cuInit(0);
  cuDeviceGet(&device, 0);
  cuDevicePrimaryCtxRetain(&context, device);
  cuCtxSetCurrent(context);
  for (int i = 0; i < 2; ++i) {  // two modules with a kernel of one name
    std::string text = TEXT;
    text.replace(text.find("$STEP"), 5, i ? "10" : "20");
    cuModuleLoadData(&modules[i], text.c_str());
    cuModuleGetFunction(&kernels[i], modules[i], "move");
  }
  CUdeviceptr out, step;
  size_t bytes;
  int more = 1, host[32], most = 0;
  cuMemAlloc(&out, sizeof host);
  void* arguments[] = {&out, &more};
  cuLaunchKernel(kernels[0], 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr);
  add_one<<<1, 32>>>(reinterpret_cast<int*>(out));
  cuMemcpyDtoH(host, out, sizeof host);
  expect("a kernel of the first module, and one of the runtime", host[31], 22);
  cuModuleGetGlobal(&step, &bytes, modules[1], "step");
  cuMemsetD32(step, 100, 1);
  struct {
    CUdeviceptr to;
    int more;
  } packed = {out, 5};
  size_t size = sizeof packed;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  cuLaunchKernel(kernels[1], 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, extra);
  cuMemcpyDtoH(host, out, sizeof host);
  expect("a kernel of the second, and its variable", host[0], 105);
  cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernels[0]);
  expect("attributes", most, 1024);
  int blocks = 0, threads = 0;
  const auto shared_of = [](int size) { return size > 512 ? size_t{1} << 30 : 0; };
  cuOccupancyMaxPotentialBlockSize(&blocks, &threads, kernels[0], nullptr, 0, 0);
  expect("the best block", threads, 1024);
  cuOccupancyMaxPotentialBlockSize(&blocks, &threads, kernels[0], shared_of, 0, 0);
  expect("the best block without shared memory", threads, 512);
  const char* said = "";
  cuGetErrorString(CUDA_ERROR_NOT_FOUND, &said);
  expect(said, std::strcmp(said, "named symbol not found"), 0);
  void* entry = nullptr;
  CUdriverProcAddressQueryResult status;
  cuGetProcAddress("cuMemFree", &entry, CUDA_VERSION, 0, &status);
  const CUresult freed = reinterpret_cast<CUresult (*)(CUdeviceptr)>(entry)(out);
  expect("an entry point", freed, CUDA_SUCCESS);
  for (CUmodule each : modules) cuModuleUnload(each);
}

int main(int count, char** given) {
  const std::string mistake = count > 1 ? given[1] : "";
  if (mistake == "no driver") {
    CUdevice device;
    const char* name;
    cuGetErrorName(cuDeviceGet(&device, 0), &name);  // no driver
    std::puts(name);
    return 0;
  }
  cublasCreate(&handle);
  if (mistake.empty()) {
    products<float>("float", CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 1e-5);
    products<double, double, double>("double", CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, 1e-5);
    products<__half, __half, __half>("half", CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_16F, 1e-2);
    products<__half, float>("half to float", CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 1e-5);
    products<__nv_bfloat16>("bfloat16", CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F, 1e-2);
    products<signed char, int, int>("int8", CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I, 0);
    batches();
    vectors();
    cublasDestroy(handle);
    driver();
    std::puts(failures ? "wrong" : "right");
    return failures != 0;
  }
  float *d_a, *d_b, *d_c, one = 1, zero = 0;
  const auto n = CUBLAS_OP_N;
  cudaMalloc(&d_a, 8 * 8 * sizeof(float));
  cudaMalloc(&d_b, 8 * 8 * sizeof(float));
  cudaMalloc(&d_c, 8 * 8 * sizeof(float));
  cudaMemset(d_a, 0, 8 * 8 * sizeof(float));
  cudaMemset(d_b, 0, 8 * 7 * sizeof(float));
  int status = 0;
#define MULTIPLY(a, lda, columns) \
  cublasSgemm(handle, n, n, 8, columns, 8, &one, a, lda, d_b, 8, &zero, d_c, 8)
  if (mistake == "past end") status = MULTIPLY(d_a + 1, 8, 8);       // past end
  if (mistake == "unwritten operand") status = MULTIPLY(d_a, 8, 8);  // unwritten operand
  if (mistake == "written part") status = MULTIPLY(d_a, 8, 7);
  if (mistake == "short ld") status = MULTIPLY(d_a, 7, 8);  // short ld
  if (mistake == "freed operand") {
    cudaFree(d_a);
    status = cublasSaxpy(handle, 8, &one, d_a, 1, d_b, 1);  // freed operand
  }
  if (mistake == "host operand")
    status = cublasSaxpy(handle, 1, &one, &zero, 1, d_b, 1);  // host operand
  if (mistake == "no handle") {
    cublasDestroy(handle);
    status = cublasSscal(handle, 8, &one, d_a, 1);  // no handle
  }
  std::puts(cublasGetStatusName(cublasStatus_t(status)));
}
