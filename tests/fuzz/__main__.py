"""The command line of the package."""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from tests.fuzz.campaign import repeat, run_campaign
from tests.fuzz.cases import make_case


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="run this one only, without sanitisers")
    parser.add_argument("--keep", type=Path, help="folder for the PTX and plans of failures")
    wanted = parser.parse_args()
    if wanted.case is not None:
        print(repeat(wanted.seed, wanted.case))
        return 0
    campaign = run_campaign(wanted.seed, wanted.minutes)
    print(campaign.summary())
    folder = wanted.keep or Path(tempfile.gettempdir()) / "sgemm-grader-fuzz"
    for number, seen in sorted(campaign.failures.items()):
        case = make_case(wanted.seed, number)
        folder.mkdir(parents=True, exist_ok=True)
        place = folder / f"{wanted.seed}-{number}"
        place.with_suffix(".ptx").write_text(case.ptx)
        place.with_suffix(".json").write_text(json.dumps(case.plan))
        print(
            f"\n--seed {wanted.seed} --case {number} (of {case.name}, kept at {place}.ptx): {seen}"
        )
    return 1 if campaign.failures else 0


if __name__ == "__main__":
    sys.exit(main())
