// The same names as in intrinsics.hpp where CUDA spells them differently.
#pragma once
#include <cuda_fp16.h>

#define DEVICE static __device__

DEVICE inline unsigned exact_half_bits(float x) { return __half_as_ushort(__float2half_rn(x)); }
DEVICE inline float through_half(float x) { return __half2float(__float2half_rn(x)); }
