"""Why a kernel is as fast as it is: machine code, counts, bounds, advice."""
