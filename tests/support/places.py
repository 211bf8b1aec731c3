"""Where the tests find what they read."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
CORRECT = FIXTURES / "correct"
BROKEN = FIXTURES / "broken"
CHEATS = ROOT / "tests" / "cheats"
HONEST = CORRECT / "naive_swapped"  # a right, slow submission that attacks start from
REFERENCE = ROOT / "reference" / "sgemm"
ALICE = ROOT / "submissions" / "alice"
