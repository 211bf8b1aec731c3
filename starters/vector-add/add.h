// c[i] = a[i] + b[i] for each i below n. The vectors lie in the host's memory.
#pragma once

void add_vectors(const float* a, const float* b, float* c, int n);
