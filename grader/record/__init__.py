"""Host code → launch plans: runs it against our stand-in for CUDA's runtime (``cudart/``)."""
