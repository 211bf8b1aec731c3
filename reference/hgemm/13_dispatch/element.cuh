// The type of the matrices' elements. -DHGEMM_BF16 makes it bfloat16.
#pragma once

#include <cuda.h>

#ifdef HGEMM_BF16
#include <cuda_bf16.h>
#define ELEMENT "bf16"
using Element = __nv_bfloat16;
constexpr CUtensorMapDataType MAP_TYPE = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
#else
#include <cuda_fp16.h>
#define ELEMENT "f16"
using Element = __half;
constexpr CUtensorMapDataType MAP_TYPE = CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
#endif
