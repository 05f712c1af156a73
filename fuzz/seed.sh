#!/bin/sh
# Fills the corpus of every target with small files of testdata, of every format that is read.
set -eu
cd "$(dirname "$0")"
for target in xplane reader chrome formats several pieces sql timeline; do
    mkdir -p "corpus/$target"
done

# Samples of the machine and of Python, as `strobe run` writes them.
samples=corpus/reader/samples
cat >"$samples" <<'END'
{"strobe": "hardware", "version": 1, "host": "vm", "pid": 7, "cores": 2, "gpus": [{"name": "NVIDIA T4"}], "columns": ["cpu/all", "memory/process"], "missing": [{"what": "cpu/clock", "why": "none"}]}
[1794806400000000000,1.5,4096]
[1794806400050000000,null,8192]
END
python=corpus/reader/python
cat >"$python" <<'END'
{"strobe":"python","version":1,"host":"vm","pid":7,"thread":7,"python":"3.12.1","script":"train.py"}
["framework","jax","0.10.2"]
["step-key",1794806400000000000,"function","train_step",7]
["frame",1,"train.py","main",3]
["node",1,null,1,4]
["sample",1794806400010000000,7,1]
["step",1794806400050000000,1]
END

# The byte that says which reader: chrome, hardware, python, tfevents, xplane, as the registry has them.
formats() { printf "\\00$1" | cat - "$2" >"corpus/formats/$3"; }
formats 1 "$samples" samples
formats 2 "$python" python

# A trace of PyTorch.
find ../testdata/chrome -name '*.json' -size -20k | while read -r trace; do
    name=$(basename "$trace")
    for target in chrome reader; do cp "$trace" "corpus/$target/$name"; done
    formats 0 "$trace" "$name"
done

find ../testdata -name '*tfevents*' -size -20k | while read -r log; do
    name=$(echo "$log" | cut -d/ -f3- | tr / -)
    cp "$log" "corpus/reader/$name"
    formats 3 "$log" "$name"
done
find ../testdata -name '*.xplane.pb' -size -160k | while read -r profile; do
    name=$(echo "$profile" | cut -d/ -f3-4 | tr / -)-$(basename "$profile")
    for target in xplane reader; do cp "$profile" "corpus/$target/$name"; done
    formats 4 "$profile" "$name"
    # Level 40 and tile 0, a range, and the first event.
    printf '\050\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\001\0\0\0\0\0\0' |
        cat "$profile" - >"corpus/timeline/$name"
done
cp corpus/reader/* corpus/pieces

between() { printf '\376\376\376\376\376\376\376\376'; }
hosts=../testdata/synthetic/two_hosts/plugins/profile/run
{
    cat "$hosts/host0.xplane.pb"; between
    cat "$hosts/host1.xplane.pb"; between
    cat "$samples"; between
    cat "$python"; between
    cat ../testdata/captured/scalars/tf2/events.out.tfevents.1.vm
} >corpus/several/run

n=0
while read -r query; do
    n=$((n + 1))
    printf '%s' "$query" >"corpus/sql/$n"
done <<'END'
select * from step_time
select name, count(*), sum(dur_ps) from event group by name order by 3 desc limit 10
select e.name, t.name from event e join track t on t.id = e.track where e.start_ps between 0 and 1000000000
with recursive n(i) as (select 1 union all select i + 1 from n where i < 100) select sum(i) from n
select count(*) from note where kind like '%cut%'
select * from edge order by to_event desc limit 3
select json_group_array(name) from (select distinct name from op_time)
END
