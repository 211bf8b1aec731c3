"""Finds nvcc, nvdisasm and g++; compiles the grader's own C++ and caches it."""
