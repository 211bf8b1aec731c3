"""A SIMT simulator of PTX: runs nvcc's code on the CPU and watches every access.

frontend/ reads the text, lowering/ turns instructions into operations of the engine and shares
registers, engine/ (C++) interprets warps over shadowed memory, simulator.py runs whole plans,
sampling.py counts a few blocks of large ones, findings/ turns events into records. README.md has an
example.
"""
