"""Kernel names as people write them."""

from ptxsim.findings.names import kernel_name as kernel_name
