// Products of doubles, integers and bits by wmma: D, whose columns lie together, = A · B + C.
#include <mma.h>
#define KERNEL extern "C" __global__ void
using namespace nvcuda;
using Row = wmma::row_major;
using Column = wmma::col_major;

template <class Element, class Memory, class Sum, int M, int N, int K, class LayoutA, class LayoutB>
__device__ void multiply(const Memory* A, const Memory* B, const Sum* C, Sum* D) {
  wmma::fragment<wmma::matrix_a, M, N, K, Element, LayoutA> a;
  wmma::fragment<wmma::matrix_b, M, N, K, Element, LayoutB> b;
  wmma::fragment<wmma::accumulator, M, N, K, Sum> c;
  wmma::load_matrix_sync(a, A, std::is_same<LayoutA, Row>::value ? K : M);
  wmma::load_matrix_sync(b, B, std::is_same<LayoutB, Row>::value ? N : K);
  wmma::load_matrix_sync(c, C, N, wmma::mem_row_major);
  if constexpr (K == 128) wmma::bmma_sync(c, a, b, c, wmma::experimental::bmmaBitOpXOR);
  else if constexpr (sizeof(Sum) == 8) wmma::mma_sync(c, a, b, c);
  else wmma::mma_sync(c, a, b, c, true);
  wmma::store_matrix_sync(D, c, M, wmma::mem_col_major);
}
#define PRODUCT(name, element, memory, sum, ...)                                 \
  KERNEL name(const memory* A, const memory* B, const sum* C, sum* D) {          \
    multiply<element, memory, sum, __VA_ARGS__>(A, B, C, D);                     \
  }
using namespace wmma::experimental::precision;
using i8 = signed char;
using u8 = unsigned char;
PRODUCT(f64_rc, double, double, double, 8, 8, 4, Row, Column)
PRODUCT(f64_cr, double, double, double, 8, 8, 4, Column, Row)
PRODUCT(s8_rc, i8, i8, int, 16, 16, 16, Row, Column)
PRODUCT(s8_cr, i8, i8, int, 16, 16, 16, Column, Row)
PRODUCT(s8_tall, i8, i8, int, 32, 8, 16, Row, Column)
PRODUCT(u8_cr, u8, u8, int, 16, 16, 16, Column, Row)
PRODUCT(u8_wide, u8, u8, int, 8, 32, 16, Row, Row)
PRODUCT(s4_rc, s4, int, int, 8, 8, 32, Row, Column)
PRODUCT(u4_rc, u4, int, int, 8, 8, 32, Row, Column)
PRODUCT(b1_rc, b1, unsigned, int, 8, 8, 128, Row, Column)
