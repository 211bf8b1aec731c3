"""Fuzzing of the simulator: mutated PTX and plans against an engine built with sanitisers.

    python -m tests.fuzz --minutes 30 --seed 1      fuzz; says how every case ended
    python -m tests.fuzz --seed 1 --case 4711       one case again, in this process

A case is a seed of ``seeds/`` (PTX that nvcc wrote, the plan that was recorded for it) with a few
changes; which ones follows from the seed and the case's number alone. It may end in a refusal, with
findings or with none. A crash, a sanitiser's report, a Python exception of another kind and a case
that takes too long are failures.

    cases.py     seed and number → PTX and plan with changes; how one case ends
    worker.py    runs cases in a process with the sanitisers, one after another
    campaign.py  two such processes, their failures, the clock
    seeds.py     makes ``seeds/`` anew from the fixtures
"""
