// The part of <cmath> that declares std::legendre and its like. A build leaves it out, and brings it
// where a submission names one of them (brought_headers.toml).
#undef _GLIBCXX_BITS_SPECFUN_H
#include <bits/specfun.h>
