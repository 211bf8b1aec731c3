"""The ladder's top rung over many shapes, beside the best of cuBLAS."""
