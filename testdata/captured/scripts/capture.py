"""Make the captures again: PYTHON capture.py [name ...]; --check only prints the table.

PYTHON must have tensorflow, keras, jax and numpy. Each capture runs in a process of its own.
"""
import collections, glob, json, os, shutil, subprocess, sys
os.environ.update(TF_CPP_MIN_LOG_LEVEL='2', CUDA_VISIBLE_DEVICES='-1')
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
ALL = ('keras_fit custom_loop unmarked_loop eager_unmarked jax_steps jax_unmarked session_run '
       'checkpoint_loop retrace_loop on_demand eager_py_input inference').split()


def check(name):
    from tensorflow.tsl.profiler.protobuf import xplane_pb2
    (pb,) = glob.glob(ROOT + '/' + name + '/**/host.xplane.pb', recursive=True)
    space = xplane_pb2.XSpace()
    with open(pb, 'rb') as f:
        space.ParseFromString(f.read())
    events = 0
    markers = collections.Counter()
    for plane in space.planes:
        for line in plane.lines:
            events += len(line.events)
            for e in line.events:
                n = plane.event_metadata[e.metadata_id].name
                stats = {plane.stat_metadata[s.metadata_id].name for s in e.stats}
                if 'step_num' in stats or n.startswith('Profiled batch'):
                    markers[n] += 1
    with open(ROOT + '/' + name + '/measured.json') as f:
        m = json.load(f)
    print('%-16s %7d %6d %5d %9.2f  %s  markers %s' % (
        name, os.path.getsize(pb), events, m['steps'], m['median_step_ms'],
        ' '.join('%s %.2f' % kv for kv in m['fraction'].items()), dict(markers) or '-'))
    want = m.get('markers')
    if want is not None and sum(markers.values()) != want:
        print('   expected %d markers' % want)


names = [a for a in sys.argv[1:] if a != '--check'] or ALL
if '--check' not in sys.argv:
    for n in names:
        out = os.path.join(ROOT, n)
        shutil.rmtree(out, ignore_errors=True)
        subprocess.run([sys.executable, os.path.join(HERE, n + '.py'), out], check=True, cwd=HERE)
print('%-16s %7s %6s %5s %9s  %s' % ('name', 'bytes', 'events', 'steps', 'median ms', 'fractions by the clock'))
for n in names:
    check(n)
