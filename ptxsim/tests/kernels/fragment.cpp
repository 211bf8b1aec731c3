extern "C" void host_$SEED(const long long* in, long long* out, int count) {
  for (; count > 0; --count, in += VALUES, out += VALUES)
    CALL(fragment_$SEED, in, out)
}
