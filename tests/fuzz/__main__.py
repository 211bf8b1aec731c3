"""The command line of the package."""

import sys

from tests.fuzz.campaign import main

if __name__ == "__main__":
    sys.exit(main())
