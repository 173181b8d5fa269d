"""`python -m anarchon` is the command `anarchon`."""

from __future__ import annotations

import sys

from anarchon.cli import main

sys.exit(main())
