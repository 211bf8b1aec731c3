// Clang's own CUDA header includes this header of cuRAND, which the toolkit from wheels lacks.
// Nothing in a submission needs it. Only editors see this folder (compile_flags.txt).
#pragma once
