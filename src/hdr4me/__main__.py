"""python -m hdr4me."""

import sys

from hdr4me.cli import main

sys.exit(main())
