// Host threads: the sandbox allows none, and the C++ library would only say "not permitted".
#include <pthread.h>

#include "recorder.hpp"

extern "C" int pthread_create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) noexcept {
  refuse({THREADS, {}});
}
