"""Checks the files of `synth small DIR` with TensorFlow's own protobuf: names, counts, bytes and times of kernels and copies.

usage: python tensorflow_agrees.py DIR [BIG.xplane.pb…]      (needs tensorflow; not part of `cargo test`)
"""

import collections
import glob
import json
import os
import re
import sys

from tensorflow.tsl.profiler.protobuf import xplane_pb2

COPIES = {
    "MemcpyH2D": "h2d",
    "MemcpyHToD": "h2d",
    "MemcpyD2H": "d2h",
    "MemcpyDToH": "d2h",
    "MemcpyD2D": "d2d",
    "MemcpyP2P": "p2p",
}


def parse(path):
    space = xplane_pb2.XSpace()
    with open(path, "rb") as file:
        space.ParseFromString(file.read())
    return space


def stats_of(plane, stats):
    found = {}
    for stat in stats:
        kind = stat.WhichOneof("value")
        value = getattr(stat, kind)
        found[plane.stat_metadata[stat.metadata_id].name] = (
            plane.stat_metadata[value].name if kind == "ref_value" else value
        )
    return found


def check(folder):
    with open(os.path.join(folder, "truth.json")) as file:
        truth = json.load(file)
    kernels = collections.defaultdict(lambda: [0, 0])
    copies = collections.defaultdict(lambda: [0, 0, 0])
    memsets = starts = devices = 0
    paths = sorted(glob.glob(os.path.join(folder, "plugins/profile/run/*.xplane.pb")))
    assert len(paths) == truth["hosts"], paths
    for path in paths:
        space = parse(path)
        for plane in space.planes:
            on_device = plane.name.startswith("/device:")
            devices += on_device
            for line in plane.lines:
                for event in line.events:
                    # A lookup of a missing key would quietly add it.
                    assert event.metadata_id in plane.event_metadata
                    metadata = plane.event_metadata[event.metadata_id]
                    stats = stats_of(plane, metadata.stats) | stats_of(plane, event.stats)
                    if line.name == "python":
                        starts += "step_num" in stats
                        starts += truth["found_by"] == "calls" and stats.get("is_func") == 1
                    if line.name == "Steps" and "TPU:0" in plane.name:
                        starts += 1
                    if truth["found_by"] == "period":
                        starts += metadata.name.startswith("layer_00")
                    if not on_device or not (
                        line.name.startswith("Stream #") or line.name == "XLA Ops"
                    ):
                        continue
                    if metadata.name in COPIES:
                        row = copies[COPIES[metadata.name]]
                        row[0] += 1
                        row[1] += int(re.search(r"size:(\d+)", stats["memcpy_details"])[1])
                        row[2] += event.duration_ps // 1000
                    elif metadata.name == "Memset":
                        memsets += 1
                    elif stats.get("hlo_category") != "infeed":
                        row = kernels[metadata.name]
                        row[0] += 1
                        row[1] += event.duration_ps // 1000
    assert devices == truth["devices"]
    assert starts == truth["hosts"] * (truth["steps"] + truth["warmup_steps"] + 1), starts
    assert kernels == {it["name"]: [it["count"], it["total_ns"]] for it in truth["kernels"]}
    assert copies == {
        it["direction"]: [it["count"], it["bytes"], it["total_ns"]] for it in truth["copies"]
    }
    assert memsets == truth["memsets"]
    assert abs(sum(truth["breakdown_ms"].values()) - truth["step_ms"]) < 1e-9


folders = sorted(os.path.dirname(it) for it in glob.glob(os.path.join(sys.argv[1], "*/truth.json")))
for folder in folders:
    check(folder)
print(len(folders), "scenarios agree")
for path in sys.argv[2:]:
    space = parse(path)
    print(path, sum(len(line.events) for plane in space.planes for line in plane.lines), "events")
