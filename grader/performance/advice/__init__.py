"""Counts → what to try next. Every rule states its evidence and names a line of the source.

A rule's gain compares the bound with the bound of the counts after the change that the idea's rung
makes. If the idea is about waiting, which counts do not show, the gain comes from the issue model
without that wait. The gain is None if the idea relieves a resource that is not the bottleneck.
"""

from grader.performance.advice.advising import advise
from grader.performance.advice.host_calls import with_host_calls

__all__ = ["advise", "with_host_calls"]
