// cuBLAS: handles and copies are here; what computes is sent on, as ptxsim/execution/cublas.toml
// lists it.
#include <cstring>
#include <initializer_list>
#include <set>

#include "sink.hpp"

namespace {

enum Status { SUCCESS = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 7, EXECUTION_FAILED = 13 };
constexpr size_t SCALAR_BYTES = 16;  // of one, as it is sent
constexpr int CUBLAS_VERSION = CUDART_VERSION / 1000 * 10000;

struct Handle {
  cudaStream_t stream = nullptr;
  int on_device = 0, math = 0, atomics = 0;
};
std::set<void*>& handles() {
  static auto* const made = new std::set<void*>;
  return *made;
}

struct Scalar;  // a factor, whose type the function's other arguments say
struct Result;

struct Passed {
  int64_t value;
  const void* factor = nullptr;
  void* result = nullptr;

  Passed(int value) : value(value) {}
  Passed(long long value) : value(value) {}
  Passed(const void* pointer) : value(reinterpret_cast<int64_t>(pointer)) {}
  Passed(const Scalar* pointer) : Passed(static_cast<const void*>(pointer)) { factor = pointer; }
  Passed(Result* pointer) : Passed(static_cast<const void*>(pointer)) { result = pointer; }
};

// The bytes of a factor of whatever type: its own lie on one page, and those after it may not.
void append(std::string& bytes, const void* factor) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(factor);
  const size_t readable = std::min(SCALAR_BYTES, 4096 - at % 4096);
  bytes.append(static_cast<const char*>(factor), readable);
  bytes.append(SCALAR_BYTES - readable, '\0');
}

template <class Work>
int with(void* handle, const char* caller, Work work) {
  int status = EXECUTION_FAILED;
  answer(caller, [&](const char*) {
    status = NOT_INITIALIZED;
    if (!handles().count(handle)) refuse({NO_HANDLE, {{"function", caller}}});
    status = work(*static_cast<Handle*>(handle));
    return cudaSuccess;
  });
  return status;
}

int compute(const char* name, void* handle, std::initializer_list<Passed> arguments) {
  const std::string caller = std::string(name).substr(0, std::string(name).find("_v2"));
  return with(handle, caller.c_str(), [&](const Handle& own) {
    load_modules();
    std::string values, factors;
    void* result = nullptr;
    for (const Passed& each : arguments) {
      values += (values.empty() ? "" : ",") + std::to_string(each.value);
      if (each.factor && !own.on_device) append(factors, each.factor);
      if (each.result) result = each.result;
    }
    const std::string answer = ask(
        "{\"type\":\"library\",\"function\":" + json_text(name + 6) + ",\"arguments\":[" + values +
            "],\"on_device\":" + truth(own.on_device) + ",\"frames\":" + frames_json(site()) + "}",
        factors.data(), factors.size());
    int status;
    std::memcpy(&status, answer.data(), sizeof status);
    if (answer.size() > sizeof status)
      std::memcpy(result, answer.data() + sizeof status, answer.size() - sizeof status);
    return status;
  });
}

int of_copy(cudaError_t error) { return error ? INVALID_VALUE : SUCCESS; }

struct Name {
  int status;
  const char *name, *text;
};
constexpr Name NAMES[] = {
    {0, "CUBLAS_STATUS_SUCCESS", "success"},
    {1, "CUBLAS_STATUS_NOT_INITIALIZED", "the library was not initialized"},
    {3, "CUBLAS_STATUS_ALLOC_FAILED", "the resource allocation failed"},
    {7, "CUBLAS_STATUS_INVALID_VALUE", "an unsupported value or parameter was passed"},
    {8, "CUBLAS_STATUS_ARCH_MISMATCH", "a feature absent from the device is needed"},
    {11, "CUBLAS_STATUS_MAPPING_ERROR", "an access to GPU memory space failed"},
    {13, "CUBLAS_STATUS_EXECUTION_FAILED", "the function failed to launch on the GPU"},
    {14, "CUBLAS_STATUS_INTERNAL_ERROR", "an internal operation failed"},
    {15, "CUBLAS_STATUS_NOT_SUPPORTED", "the functionality requested is not supported"},
};
const Name& name_of(int status) {
  static constexpr Name UNKNOWN = {-1, "CUBLAS_STATUS_UNKNOWN", "unknown status"};
  for (const Name& each : NAMES)
    if (each.status == status) return each;
  return UNKNOWN;
}

}  // namespace

extern "C" {

#define CUBLAS(name, parameters, ...) \
  int cublas##name parameters { return compute("cublas" #name, handle, {__VA_ARGS__}); }
CUBLAS_FUNCTIONS
#undef CUBLAS

int cublasCreate_v2(void** handle) {
  const std::lock_guard<std::recursive_mutex> alone(one_call);
  handles().insert(*handle = new Handle);
  return SUCCESS;
}
int cublasDestroy_v2(void* handle) {
  return with(handle, "cublasDestroy", [&](Handle& own) {
    handles().erase(handle);
    delete &own;
    return SUCCESS;
  });
}
// Programs may make one of these and never use it.
int cublasLtCreate(void** handle) { return cublasCreate_v2(handle); }
int cublasLtDestroy(void* handle) { return cublasDestroy_v2(handle); }
int cublasGetVersion_v2(void*, int* version) {
  *version = CUBLAS_VERSION;
  return SUCCESS;
}

#define PROPERTY(set, get, type, member)                                                        \
  int set(void* handle, type value) {                                                           \
    return with(handle, #set, [&](Handle& own) { return own.member = value, SUCCESS; });        \
  }                                                                                             \
  int get(void* handle, type* value) {                                                          \
    return with(handle, #get, [&](const Handle& own) { return *value = own.member, SUCCESS; }); \
  }
PROPERTY(cublasSetStream_v2, cublasGetStream_v2, cudaStream_t, stream)
PROPERTY(cublasSetPointerMode_v2, cublasGetPointerMode_v2, int, on_device)
PROPERTY(cublasSetMathMode, cublasGetMathMode, int, math)
PROPERTY(cublasSetAtomicsMode, cublasGetAtomicsMode, int, atomics)
#undef PROPERTY
int cublasSetWorkspace_v2(void* handle, void*, size_t) {
  return with(handle, "cublasSetWorkspace", [](const Handle&) { return SUCCESS; });
}

#define COPIES(direction, kind)                                                                   \
  int cublas##direction##Matrix(int rows, int columns, int size, const void* a, int lda, void* b, \
                                int ldb) {                                                        \
    const size_t item = size_t(size);                                                             \
    return of_copy(                                                                               \
        cudaMemcpy2D(b, ldb * item, a, lda * item, rows * item, size_t(columns), kind));          \
  }                                                                                               \
  int cublas##direction##Vector(int n, int size, const void* x, int incx, void* y, int incy) {    \
    return cublas##direction##Matrix(1, n, size, x, incx, y, incy);                               \
  }                                                                                               \
  int cublas##direction##MatrixAsync(int rows, int columns, int size, const void* a, int lda,     \
                                     void* b, int ldb, cudaStream_t) {                            \
    return cublas##direction##Matrix(rows, columns, size, a, lda, b, ldb);                        \
  }                                                                                               \
  int cublas##direction##VectorAsync(int n, int size, const void* x, int incx, void* y, int incy, \
                                     cudaStream_t) {                                              \
    return cublas##direction##Matrix(1, n, size, x, incx, y, incy);                               \
  }
COPIES(Set, cudaMemcpyHostToDevice)
COPIES(Get, cudaMemcpyDeviceToHost)
#undef COPIES

const char* cublasGetStatusName(int status) { return name_of(status).name; }
const char* cublasGetStatusString(int status) { return name_of(status).text; }
}
