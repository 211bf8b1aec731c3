#include <cuda/barrier>
#include <cuda_pipeline.h>
#include <cooperative_groups.h>
#define KERNEL extern "C" __global__ void
#define I (blockIdx.x * blockDim.x + threadIdx.x)
#define WAIT cudaGridDependencySynchronize()
#define TRIGGER cudaTriggerProgrammaticLaunchCompletion()
// in: A (read by all), w: a workspace, out: C, flag: one int
#define ARGS (const float* in, float* w, float* out, int* flag)

KERNEL pack ARGS { w[I] = in[I]; }
KERNEL packs_early ARGS {
  TRIGGER;
  w[I] = in[I];
}
KERNEL packs_and_publishes ARGS {
  w[I] = in[I];
  __threadfence();
  __syncthreads();
  TRIGGER;
}
KERNEL publishes_half ARGS {
  w[I] = in[I];
  __threadfence();
  __syncthreads();
  if (blockIdx.x) TRIGGER;
}
KERNEL publishes_too_soon ARGS {
  __threadfence();
  TRIGGER;
  w[I] = in[I];
}
KERNEL reads_out ARGS { w[I] = out[I]; }
KERNEL counts ARGS { atomicAdd(flag, 1); }
KERNEL raises ARGS {
  w[I] = in[I];
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(flag, 1);
}

KERNEL use ARGS {
  WAIT;
  out[I] = w[I ^ 1];
}
KERNEL no_wait ARGS {
  out[I] = w[I ^ 1];  // BAD
}
KERNEL writes_before ARGS {
  w[I] = 1;  // BAD
  WAIT;
  out[I] = w[I];
}
KERNEL writes_out_before ARGS {
  out[I] = 2;  // BAD
  WAIT;
}
KERNEL other_before ARGS {
  float own = in[I];
  out[I] = 1;
  WAIT;
  out[I] = own + w[I ^ 1];
}
KERNEL one_waits ARGS {
  if (threadIdx.x == 40) WAIT;
  __syncthreads();
  out[I] = w[I ^ 1];
}
KERNEL one_waits_without_barrier ARGS {
  if (threadIdx.x == 40) WAIT;
  out[I] = w[I ^ 1];  // BAD
}
KERNEL one_lane_waits ARGS {
  if (threadIdx.x % 32 == 3) WAIT;
  __syncwarp();
  out[I] = w[I ^ 1];
}
KERNEL waits_at_an_mbarrier ARGS {
  __shared__ cuda::barrier<cuda::thread_scope_block> ready;
  if (threadIdx.x == 0) init(&ready, blockDim.x);
  __syncthreads();
  if (threadIdx.x < 32) WAIT;
  ready.arrive_and_wait();
  out[I] = w[I ^ 1];
}
extern "C" __global__ __cluster_dims__(2, 1, 1) void waits_for_its_cluster ARGS {
  if (blockIdx.x % 2 == 0) WAIT;
  cooperative_groups::this_cluster().sync();
  out[I] = w[I ^ 1];
}
KERNEL half_of_the_blocks ARGS {
  if (blockIdx.x % 2 == 0) WAIT;
  out[I] = w[I ^ 1];  // BAD
}
KERNEL copies ARGS {
  __shared__ float tile[64];
  __pipeline_memcpy_async(&tile[threadIdx.x], &w[I], 4);  // BAD
  __pipeline_commit();
  WAIT;
  __pipeline_wait_prior(0);
  out[I] = tile[threadIdx.x];
}
KERNEL adds ARGS { atomicAdd(flag, 1); }
KERNEL resets ARGS {
  if (I == 0) *flag = 0;  // BAD
  WAIT;
}
KERNEL looks_at_the_flag ARGS {
  while (atomicAdd(flag, 0) < 4) {}
  out[I] = w[I ^ 1];
}
KERNEL nothing ARGS {}
KERNEL waits ARGS { WAIT; }
KERNEL triggers_then_waits ARGS {
  TRIGGER;
  WAIT;
}
KERNEL waits_then_triggers ARGS {
  WAIT;
  TRIGGER;
}
KERNEL reads_out_before ARGS {
  w[I] = out[I];  // BAD
}
