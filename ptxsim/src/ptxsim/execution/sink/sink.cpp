// One translation unit, so that headers are read once, and what is global is made in this order.
#include "arrays.cpp"
#include "calls.cpp"
#include "channel.cpp"
#include "cublas.cpp"
#include "driver.cpp"
#include "host.cpp"
#include "memory.cpp"
#include "modules.cpp"
#include "pools.cpp"
#include "textures.cpp"

// Before any constructor of the program's own, since this library is loaded before it.
static bool open() noexcept {
  open_channel();
  open_device();
  catch_faults();
  return true;
}
static const bool opened = open();
