"""`python -m cutegen_nb`."""

import sys

from cutegen_nb.cli import main

sys.exit(main())
