"""Where launch plans run: the simulator and the GPU, behind one protocol."""
