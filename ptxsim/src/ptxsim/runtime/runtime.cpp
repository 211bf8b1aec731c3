// One translation unit, so that headers are read once.
#include "device.cpp"
#include "errors.cpp"
#include "launch.cpp"
#include "memory.cpp"
#include "order.cpp"
#include "pitched.cpp"
#include "tensor_map.cpp"
#include "text.cpp"
