"""Our own sources in a build: the file that includes the student's, and a trial program."""

from __future__ import annotations

from pathlib import Path

from grader.submission.folder import MAIN

INCLUDE = Path(__file__).parent / "include"
WRAPPER = Path(__file__).parent / "part.sh"
ENTRY = "sgemm_grader_entry.cu"  # what nvcc is called with
ALONE = f'#include "{MAIN}"\n'
ENTRY_SOURCE = f"""{ALONE}\
extern "C" void sgemm_grader_entry(float* sgemm_grader_a, float* sgemm_grader_b,
                                   float* sgemm_grader_c, int sgemm_grader_m,
                                   int sgemm_grader_n, int sgemm_grader_k) {{
  const ::thrust::sgemm_grader::view sgemm_grader_view;
  ::thrust::device_vector<float> sgemm_grader_va(sgemm_grader_view, sgemm_grader_a,
      std::size_t(sgemm_grader_m) * sgemm_grader_k);
  ::thrust::device_vector<float> sgemm_grader_vb(sgemm_grader_view, sgemm_grader_b,
      std::size_t(sgemm_grader_n) * sgemm_grader_k);
  ::thrust::device_vector<float> sgemm_grader_vc(sgemm_grader_view, sgemm_grader_c,
      std::size_t(sgemm_grader_m) * sgemm_grader_n);
  run_custom<float>(sgemm_grader_va, sgemm_grader_vb, sgemm_grader_vc, sgemm_grader_m,
                    sgemm_grader_n, sgemm_grader_k);
}}
"""
TRIAL = """\
#include "gemm.cuh"
__global__ void trial() {}
template <>
void run_custom<float>(thrust::device_vector<float>&, thrust::device_vector<float>&,
                       thrust::device_vector<float>&, const int, const int, const int) {
  trial<<<1, 1>>>();
}
"""
