"""``python -m grader.cli``: the command ``grade``."""

import sys

from grader.cli.entry import main

sys.exit(main())
