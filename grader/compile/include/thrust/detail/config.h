// Every header of the real Thrust starts with this one, so this says what the stand-in lacks
// before the two can clash.
#error only <thrust/device_vector.h>, <thrust/device_ptr.h> and <thrust/host_vector.h> can be used in this lab: write a kernel instead
