"""What XProf's overview page says of one profile, as JSON: whether and how far input-bound, and its other statements.

usage: xprof_verdict.py PROFILE; needs xprof, and a copy of the profile, since XProf writes caches beside it.
"""
import json
import sys

from xprof.convert import raw_to_tool_data

try:
    data, _ = raw_to_tool_data.xspace_to_tool_data([sys.argv[1]], "overview_page", {})
    said = {}
    for table in json.loads(data):
        properties = table.get("p") or {}
        for key in ("statement", "input_conclusion", "kernel_launch_statement", "all_other_statement",
                    "device_collectives_statement", "steptime_ms_average", "remark_text"):
            if properties.get(key):
                said[key] = properties[key]
except BaseException as error:
    said = {"error": f"{type(error).__name__}: {error}"[:300]}
print(json.dumps(said))
