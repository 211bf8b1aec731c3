"""``Submission`` → ``Build``: sandboxed compilers make PTX, a cubin and a host library."""
