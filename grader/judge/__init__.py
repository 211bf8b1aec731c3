"""One submission through every stage: folder → ``Result``.

``pipeline.grade`` compiles it (``program.py``), then walks a group of sizes (``walk.py``): they are
recorded, run and ruled on. Hidden sizes are a second group, walked by the same code afterwards.

The rule book: outcomes → verdicts, measurements → scores. Pure functions over records.

**A submission that a stage rejects** gets that stage's verdict (``errors.Rejected``):

- FE: the folder is not as the lab requires, ``run_custom`` is missing, or host code calls what the
  recorder does not support; CE: the code does not compile, or its PTX does not assemble
- TLE: its PTX takes too long to read; IE: nvcc wrote PTX that the grader cannot read
- RF: tensor-core instructions in a kernel that is launched, where the lab forbids them or
  their format (``verdicts.broken_rule``; on a GPU the machine code is searched as well as the PTX),
  or a launch of a library's kernel where the lab forbids libraries (``launches.py``)

**Of one size**, the first rule that applies decides (``verdicts.judge_case``):

1. tensor-core instructions, or a call of a vendor's library, where the lab forbids them → RF
2. the size was rejected while it was recorded or run → that verdict (FE, RE, TLE, IE)
3. a repetition was faster than the GPU can be, or the GPU's events say much less than the
   host's clock (``launches.py``) → RF
4. an illegal access, a trap, a broken GPU context → RE
5. it did not end in time, threads wait for ever, or an untimed launch took far longer than the
   timed ones (``launches.py``) → TLE
6. wrong values → WA
7. any other error: a race, an uninitialised read, a divergent barrier, a changed input → WA, even
   if the values are right here
8. otherwise AC

A size that was not run has no verdict, and says why; only the size that used up the time for all
sizes is TLE (``verdicts.judge_cases``).

**Of the submission** (``rulings.py``), the verdict is the first FE, CE or RF among its sizes, else
the worst of IE, RE, TLE, WA, AC. On a GPU, if ``rules.findings`` is ``fail``, the simulator's
verdict replaces AC, unless it is IE. The score is 0 unless the verdict is AC (``scoring.py``).
Speed is explained if the verdict is AC, or if time is the only fault.

**A grading that cannot go on** (``rulings.from_failure``): the job's time limit → TLE, the grader's
or the machine's failure → IE.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
