"""`make bench`: runs every benchmark of this folder, one after the other."""

from __future__ import annotations

import runpy
from pathlib import Path

for path in sorted(Path(__file__).parent.glob("[!_]*.py")):
    print(f"== {path.stem}")
    runpy.run_path(str(path), run_name="__main__")
