"""``python -m stroboscope …`` is ``strobe …``."""

from __future__ import annotations

import os
import subprocess
import sys

from stroboscope._binary import find


def _main() -> int:
    try:
        strobe = os.fspath(find())
    except FileNotFoundError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    arguments = [strobe, *sys.argv[1:]]
    if sys.platform == "win32":
        return subprocess.run(arguments).returncode  # noqa: S603
    # The same process: signals, terminal and exit code are strobe's own.
    os.execv(strobe, arguments)  # noqa: S606


if __name__ == "__main__":
    sys.exit(_main())
