"""XProf's overview of one profile: wall, CPU and peak memory as JSON, the import left out.

usage: xprof_overview.py PROFILE
"""
import json
import resource
import sys
import time

from xprof.convert import raw_to_tool_data

wall, cpu = time.perf_counter(), time.process_time()
try:
    data, _ = raw_to_tool_data.xspace_to_tool_data([sys.argv[1]], "overview_page", {})
    status = "ok" if data else "no data"
except BaseException as error:
    status = f"{type(error).__name__}: {error}"[:300]
print(json.dumps({
    "status": status,
    "wall": time.perf_counter() - wall,
    "cpu": time.process_time() - cpu,
    "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
}))
