"""Why a model trains slowly, what to change, and how much faster it will be.

>>> import stroboscope
>>> run = stroboscope.load("testdata/captured/keras_fit")
>>> run.findings[0].rule
'input-serial-map'
>>> run["step_time"].to_dicts(limit=1)[0]["input_ps"]
9632099000

The same answers as the command line's, whose program ``strobe`` comes with this package.
"""

from __future__ import annotations

from stroboscope._annotate import annotate
from stroboscope._binary import find as find_strobe
from stroboscope._errors import Error, NotFoundError, UnknownTableError
from stroboscope._flame import Flame
from stroboscope._native import __version__
from stroboscope._profile import keras_callback, profile, step
from stroboscope._run import (
    Evidence,
    Finding,
    Fix,
    NotChecked,
    Note,
    Run,
    Share,
    Steps,
    load,
)
from stroboscope._table import Table
from stroboscope._time_dataset import DatasetTiming, time_dataset

__all__ = [
    "DatasetTiming",
    "Error",
    "Evidence",
    "Finding",
    "Fix",
    "Flame",
    "NotChecked",
    "NotFoundError",
    "Note",
    "Run",
    "Share",
    "Steps",
    "Table",
    "UnknownTableError",
    "__version__",
    "annotate",
    "find_strobe",
    "keras_callback",
    "load",
    "profile",
    "step",
    "time_dataset",
]
