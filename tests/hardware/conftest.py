"""Puts the suite on the import path: its programs run as scripts on a GPU host, without pytest."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
