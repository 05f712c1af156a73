"""Whether strobe and HTA say the same of a Kineto trace, and where not, why. Used by bench/chrome/run.

A difference is not explained by opinion: the trace is read a third time, in plain Python, once as strobe counts and
then with the fewest of HTA's own ways (`WAYS`) that give HTA's figure exactly. All times are whole picoseconds.
"""
import gzip
import itertools
import json
import math
import re
import subprocess
from collections import Counter, defaultdict
from decimal import Decimal

# What HTA does otherwise, in words for the table.
WAYS = {
    "round": "HTA cuts times to whole µs: begins up, ends down",
    "step": "HTA leaves out what was launched from the last ProfilerStep on, or by nothing in the trace",
    "sync": "HTA counts synchronisation and other events that name a stream as work of the GPU",
    "nostream": "HTA leaves out work that names no stream",
    "name": "HTA tells communication and copies by names of its own",
    "first": "HTA takes the first event of the file for the launch of work that has none in the trace",
    "twice": "HTA counts work twice whose launch is in the trace twice",
}
WORK = {b: a for a, all_of in {
    "kernel": ["kernel", "Kernel", "mtia_ccp_events", "concurrent_kernel", "xpu_kernel"],
    "copy": ["gpu_memcpy", "Memcpy"],
    "memset": ["gpu_memset", "Memset"],
}.items() for b in all_of}
HTA_IDLE = {"kernel", "Kernel", "gpu_memset", "Memset", "gpu_memcpy", "Memcpy", "mtia_ccp_events"}
TYPES = {"kernel": "COMPUTATION", "collective": "COMMUNICATION"}
# It is said to be nanoseconds, and compared with microseconds.
HTA_DELAY_PS = 30 * 1_000_000
# HTA rounds some of its figures to a hundredth of a microsecond.
SLACK_PS = 10_000


class Work:
    """Something that ran on the GPU: when, where, of which type, and when it was launched."""

    __slots__ = ("end", "gaps", "launched", "name", "start", "stream", "type")

    def __init__(self, name, type_, stream, start, end, launched, gaps=True):
        self.name, self.type, self.stream, self.start, self.end, self.launched = name, type_, stream, start, end, launched
        # Whether gaps before it are idle time of its stream.
        self.gaps = gaps


# --- the figures, of anybody's events


def merged(spans):
    """As HTA merges: of spans that a rounding turned round (end before start) the length is negative."""
    found, until = [], -math.inf
    for start, end in sorted(spans):
        if not found or start > until:
            found.append([start, end])
        found[-1][1] = max(found[-1][1], end)
        until = max(until, end)
    return found


def union(spans):
    return sum(end - start for start, end in merged(spans))


def figures(all_work):
    """Figure → picoseconds, as HTA defines them."""
    found = {}
    if not all_work:
        return found
    of_type = defaultdict(list)
    for it in all_work:
        of_type[it.type].append((it.start, it.end))
    spans = [(it.start, it.end) for it in all_work]
    length = max(it[1] for it in spans) - min(it[0] for it in spans)
    busy, compute = union(spans), union(of_type["COMPUTATION"])
    found["temporal: kernel_time"] = length
    found["temporal: idle"] = length - busy
    found["temporal: compute"] = compute
    found["temporal: non_compute"] = busy - compute
    found |= {f"type: {name}": ps for name, ps in overlaps(of_type).items()}
    streams = defaultdict(list)
    for it in all_work:
        if it.gaps:
            streams[it.stream].append(it)
    for stream, on_it in streams.items():
        on_it.sort(key=lambda it: it.start)
        for before, it in itertools.pairwise(on_it):
            gap = it.start - before.end
            if it.launched is not None and it.launched > before.end:
                why = "host_wait"
            else:
                why = "kernel_wait" if gap < HTA_DELAY_PS else "other"
            key = f"idle of stream {stream}: {why}"
            found[key] = found.get(key, 0) + gap
    for it in all_work:
        if it.type not in ("COMPUTATION", "COMMUNICATION", "MEMORY"):
            continue
        dur = it.end - it.start
        for what, take in (("sum", int.__add__), ("max", max), ("min", min)):
            key = f"kernel {what}: {it.name}"
            found[key] = take(found[key], dur) if key in found else dur
    return found


def overlaps(of_type):
    """Time in which just these types ran."""
    values = {"COMPUTATION": 1, "COMMUNICATION": 2, "MEMORY": 4}
    edges = []
    for name, value in values.items():
        edges += [(at, step) for start, end in merged(of_type[name]) for at, step in ((start, value), (end, -value))]
    edges.sort(key=lambda it: it[0])
    running, found = 0, Counter()
    for (at, step), (until, _) in itertools.pairwise(edges):
        running += step
        # As HTA has it; below zero where a span was turned round.
        if running > 0 and until > at:
            found[" overlapping ".join(name for name, value in values.items() if running & value)] += until - at
    return found


# --- three readers of a trace


def strobe_says(strobe, path):
    """Its events as its SQL gives them, and what its own tables say."""
    ask = lambda sql: json.loads(subprocess.run([strobe, "sql", path, sql, "--format", "json", "--limit", "10000000"], check=True,
                                                capture_output=True).stdout)
    asked = [
        "select e.id, e.kind, e.name, e.start_ps, e.end_ps, t.name as stream from event e join track t on t.id = e.track "
        "where t.kind = 'stream' order by e.id",
        "select d.to_event, l.start_ps from edge d join event l on l.id = d.from_event where d.kind = 'launch'",
        "select name, sum(total_ps) as total, max(max_ps) as longest, min(min_ps) as shortest from kernel_time group by 1",
        "select sum(busy_ps) as busy, count(*) as devices from device_use",
    ]
    events, edges, kernels, use = map(ask, asked)
    launched = {it["to_event"]: it["start_ps"] for it in edges}
    work = []
    for it in events:
        stream = re.search(r"-?\d+", it["stream"])
        type_ = TYPES.get(it["kind"], "MEMORY" if it["kind"].startswith(("copy", "memset")) else "OTHER")
        work.append(Work(it["name"], type_, stream[0] if stream else it["stream"], it["start_ps"], it["end_ps"],
                         launched.get(it["id"])))
    kinds = {it["name"]: it["kind"] for it in events}
    # The tables' own figures stand for those of the events where there are both.
    own = figures(work)
    tables = {}
    for it in kernels:
        for what, column in (("sum", "total"), ("max", "longest"), ("min", "shortest")):
            tables[f"kernel {what}: {it['name']}"] = it[column]
    if use and use[0]["devices"] == 1:
        tables["busy (device_use)"] = use[0]["busy"]
        own["busy (device_use)"] = own.get("temporal: kernel_time", 0) - own.get("temporal: idle", 0)
    wrong = [key for key, ps in tables.items() if key in own and own[key] != ps]
    return own | tables, kinds, wrong


def hta_says(said):
    """HTA's answers as figures."""
    ps = lambda us: round(us * 1_000_000)
    found = {}
    for row in said["temporal"]:
        for name in ("kernel_time", "idle", "compute", "non_compute"):
            column = f"{name}(us)" if name == "kernel_time" else f"{name}_time(us)"
            found[f"temporal: {name}"] = ps(row[column])
        found["busy (device_use)"] = ps(row["kernel_time(us)"] - row["idle_time(us)"])
    for row in said["idle"]:
        if row["idle_time"] is not None:
            found[f"idle of stream {row['stream']}: {row['idle_category']}"] = ps(row["idle_time"])
    for row in said["types"]:
        found[f"type: {row['kernel_type']}"] = ps(row["sum"])
    for row in said["kernels"]:
        for what in ("sum", "max", "min"):
            found[f"kernel {what}: {row['name']}"] = ps(row[f"{what} (us)"])
    return found


class Plain:
    """The trace as any JSON reader sees it."""

    def __init__(self, path, kinds):
        opened = gzip.open(path, "rt", errors="replace") if path.suffix == ".gz" else open(path, errors="replace")
        with opened as file:
            # As text: no double holds a picosecond of Unix time.
            whole = json.load(file, parse_float=lambda it: Decimal(it), strict=False)
        events = whole if isinstance(whole, list) else whole.get("traceEvents", [])
        self.kinds = kinds
        self.rounds = any(not isinstance(it.get("ts"), int) for it in events)
        self.rows = []
        steps = set()
        self.first = None
        for nth, it in enumerate(events):
            if it.get("dur") is None or it.get("cat") is None or it["cat"] == "Trace" or it.get("ts") is None:
                continue
            args = it.get("args") if isinstance(it.get("args"), dict) else {}
            row = {"name": it.get("name", ""), "cat": it["cat"], "ts": it["ts"], "dur": it["dur"], "tid": it.get("tid"),
                   "stream": whole_number(args.get("stream", -1)), "correlation": whole_number(args.get("correlation", -1))}
            row["on_gpu"] = (row["stream"] >= 0 and row["correlation"] >= 0) or row["name"] in ("Event Sync", "Context Sync")
            self.rows.append(row)
            self.first = row if nth == 0 else self.first
            if "ProfilerStep" in row["name"]:
                steps.add(row["name"])
        self.steps = steps if len(steps) > 1 else set()
        self.known = {}

    def ways(self):
        """Those of HTA's ways that can make a difference here."""
        work = [it for it in self.rows if it["cat"] in WORK]
        there = {
            "round": self.rounds,
            "step": bool(self.steps),
            "sync": any(it["stream"] != -1 and it["cat"] not in WORK for it in self.rows),
            "nostream": any(it["stream"] == -1 for it in work),
            "name": any(self.type_of(it, False) != self.type_of(it, True) for it in self.rows if it["cat"] in WORK),
        }
        launches = Counter(it["correlation"] for it in self.rows if not it["on_gpu"] and it["correlation"] >= 0)
        there["first"] = bool(self.first) and any(it["correlation"] >= 0 and not launches[it["correlation"]] for it in work)
        there["twice"] = bool(self.steps) and any(launches[it["correlation"]] > 1 for it in work)
        return [way for way, is_there in there.items() if is_there]

    def type_of(self, row, by_name):
        if not by_name:
            kind = self.kinds.get(row["name"], WORK.get(row["cat"], ""))
            return TYPES.get(kind, "MEMORY" if kind.startswith(("copy", "memset")) else "OTHER")
        name = row["name"]
        if re.match(r"^nccl.*Kernel", name):
            return "COMMUNICATION"
        if re.match(r"(^Memcpy)|(^Memset)|(^dma)", name):
            return "MEMORY"
        # A name that holds Memcpy, Memset or Sync is none of the three.
        return "OTHER" if re.match(r"(.*(Memcpy)|(Memset))|(.*Sync)", name) else "COMPUTATION"

    def span(self, row, is_rounded):
        if is_rounded:
            start, end = float(row["ts"]), float(row["ts"]) + float(row["dur"])
            return math.ceil(start) * 1_000_000, math.floor(end) * 1_000_000
        return int(Decimal(row["ts"]) * 1_000_000), int((Decimal(row["ts"]) + Decimal(row["dur"])) * 1_000_000)

    def figures(self, ways):
        ways = frozenset(ways)
        if ways not in self.known:
            self.known[ways] = figures(self.work(ways))
        return self.known[ways]

    def work(self, ways):
        is_rounded = "round" in ways
        last = math.inf
        if "step" in ways:
            last = max(self.span(it, is_rounded)[0] for it in self.rows if it["name"] in self.steps and not it["on_gpu"])
        calls, launches = {}, Counter()
        for it in self.rows:
            if not it["on_gpu"] and it["correlation"] >= 0:
                start = self.span(it, is_rounded)[0]
                if start < last:
                    calls[it["correlation"]] = start
                    launches[it["correlation"]] += 1
        unlaunched = None
        if "first" in ways and (start := self.span(self.first, is_rounded)[0]) < last:
            unlaunched = start
        found = []
        for it in self.rows:
            is_work = it["cat"] in WORK
            if (not is_work and not ("sync" in ways and it["stream"] != -1)) or ("nostream" in ways and it["stream"] == -1):
                continue
            start, end = self.span(it, is_rounded)
            times = 1
            if "step" in ways:
                times = launches[it["correlation"]] if it["on_gpu"] else int(start < last)
                times = times if "twice" in ways else min(times, 1)
            type_ = self.type_of(it, "name" in ways or not is_work)
            stream = str(it["stream"] if it["stream"] != -1 else it["tid"])
            launched = calls.get(it["correlation"], unlaunched if it["correlation"] >= 0 else None)
            made = Work(it["name"], type_, stream, start, end, launched, it["cat"] in HTA_IDLE)
            found += [made] * times
        return found


def whole_number(value):
    try:
        return int(value)
    except (TypeError, ValueError):
        return -1


# --- comparing


def compare(ours, theirs, plain):
    """For each figure: name, HTA's, strobe's, and why they differ (`None` where they do not)."""
    rows, left = [], []
    for key in sorted(theirs):
        if key == "busy (device_use)" and key not in ours:
            continue
        mine = ours.get(key, 0)
        (rows if abs(mine - theirs[key]) <= SLACK_PS else left).append((key, theirs[key], mine))
    found = [(*it, None) for it in rows]
    ways = plain.ways()
    for n in range(1, len(ways) + 1):
        for some in itertools.combinations(ways, n):
            if not left:
                return found
            made = with_busy(plain.figures(some))
            still = []
            for it in left:
                if abs(made.get(it[0], 0) - it[1]) <= SLACK_PS:
                    found.append((*it, some))
                else:
                    still.append(it)
            left = still
    return found + [(*it, ()) for it in left]


def with_busy(of):
    return of | {"busy (device_use)": of.get("temporal: kernel_time", 0) - of.get("temporal: idle", 0)}
