"""Entry point of ``python -m ptxsim``."""

import sys

from ptxsim.cli import main

sys.exit(main())
