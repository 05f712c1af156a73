"""Opens a trace with HolisticTraceAnalysis and prints what it says, as JSON. Run by bench/chrome/run.

usage: hta_breakdowns.py temporal|all TRACE

`all` adds the idle time breakdown and the kernel breakdown; no kernel is put among "others".
"""
import json
import logging
import resource
import sys
import time
import warnings


def usage():
    of = resource.getrusage(resource.RUSAGE_SELF)
    return {"cpu": of.ru_utime + of.ru_stime, "wall": time.perf_counter()}


def records(frame):
    return json.loads(frame.to_json(orient="records"))


def main():
    what, path = sys.argv[1:]
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    from hta.trace_analysis import TraceAnalysis

    imported = usage()
    opened = TraceAnalysis(trace_files={0: path}, trace_dir="/")
    said = {}

    def say(name, made):
        """One breakdown that fails leaves the others."""
        try:
            said[name] = records(made())
        except Exception as why:
            if what == "temporal":
                raise
            said[name], said["failed"] = [], f"{name}: {type(why).__name__}: {why}"

    say("temporal", lambda: opened.get_temporal_breakdown(visualize=False))
    said["cpu"] = usage()["cpu"] - imported["cpu"]
    said["wall"] = usage()["wall"] - imported["wall"]
    said["events"] = len(opened.t.get_trace(0))
    if what == "all":
        every = {"visualize": False, "num_kernels": 1_000_000, "duration_ratio": 1.0}
        say("idle", lambda: opened.get_idle_time_breakdown(ranks=[0], visualize=False)[0])
        say("types", lambda: opened.get_gpu_kernel_breakdown(**every)[0])
        say("kernels", lambda: opened.get_gpu_kernel_breakdown(**every)[1])
    print(json.dumps(said))


if __name__ == "__main__":
    main()
