"""``python -m grader.cli``: the command ``grade``."""

import sys

from grader.cli import main

sys.exit(main())
