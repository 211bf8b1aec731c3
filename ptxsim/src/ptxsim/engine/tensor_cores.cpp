// One translation unit for tensor_cores/, async/, and the rest of control/.
// -O1 compiles in three quarters of the time of -O2, and mma and wgmma run in 0.6 of it.
#pragma GCC optimize("O1", "tree-vectorize")
#include "tensor_cores/matrix_accesses.cpp"
#include "tensor_cores/mma.cpp"
#include "tensor_cores/mma_exact.cpp"
#include "tensor_cores/wgmma.cpp"
#include "async/bulk.cpp"
#include "async/bulk_copies.cpp"
#include "async/cp_async.cpp"
#include "async/mbarrier.cpp"
#include "async/store_async.cpp"
#include "async/tensor_copies.cpp"
#include "control/clock.cpp"
#include "control/cluster_barrier.cpp"
#include "control/heap.cpp"
#include "control/print.cpp"
#include "control/warp_ops.cpp"
