// Linked into the sanitised recorder, whose environment is empty. The host code's signals are the
// recorder's to report.
extern "C" const char* __asan_default_options() {
  return "detect_leaks=0:handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:"
         "handle_abort=0:use_sigaltstack=0:allocator_may_return_null=1";
}

// ASan's own asks for the stack's limits, which the child's filter of system calls refuses. Without
// it the frames of a function that never returns stay poisoned, and here such a process ends.
extern "C" void __asan_handle_no_return() {}
