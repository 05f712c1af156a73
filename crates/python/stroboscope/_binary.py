"""Where the wheel put the program ``strobe``."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path


def find() -> Path:
    """Say where the program ``strobe`` of this installation is.

    >>> import stroboscope
    >>> stroboscope.find_strobe().stem
    'strobe'
    """
    name = "strobe" + (sysconfig.get_config_var("EXE") or "")
    for folder in _folders():
        path = folder / name
        if path.is_file():
            return path
    raise FileNotFoundError(
        "the program strobe is not where this package was installed\n"
        "  hint: install the wheel again; a copy of the sources alone has no program\n"
        f"  package: {Path(__file__).parent}"
    )


def _folders() -> Iterator[Path]:
    yield Path(sysconfig.get_path("scripts"))
    # Of a virtual environment whose site-packages another Python was told to use, and of
    # `pip install --prefix`: <prefix>/lib/pythonX.Y/site-packages/stroboscope.
    package = Path(__file__).resolve().parent
    scripts = "Scripts" if sys.platform == "win32" else "bin"
    if len(package.parents) > 3:
        yield package.parents[3] / scripts
    # Of `pip install --target`.
    yield package.parent / scripts
    # Of `pip install --user`.
    scheme = "nt_user" if os.name == "nt" else "posix_user"
    if scheme in sysconfig.get_scheme_names():
        yield Path(sysconfig.get_path("scripts", scheme=scheme))
