"""For every test and doctest: designed tables are kept inside the checkout, never in the user's own cache."""

import os
from pathlib import Path

os.environ["HDR4ME_CACHE_DIR"] = str(Path(__file__).parent / ".pytest_cache" / "designs")
