"""What every workload shares: options, warm-up, the capture, and a clock that knows nothing of the profile.

A workload makes one `Run` before it imports its framework, then either writes its own loop

    for i in run.loop():            # warm-up first, then the captured steps
        with run.mark(i):           # the step marker; a null context where markers are off
            ...

or hands `run.keras()` to `fit`. With PyTorch the loop itself calls `prof.step()`, and `run.over(loader)` yields the
batches of a DataLoader, epoch after epoch. `run.done()` writes measured.json: step times from start to start by
time.perf_counter, the share of named parts of the step (`run.part`), memory, and whether it was profiled.
"""
import argparse
import contextlib
import json
import multiprocessing
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

# Run in another process: the capture comes from outside, over gRPC, as a user would ask for it.
CLIENT = """
import sys
from tensorflow.python.profiler import profiler_client
profiler_client.trace("localhost:" + sys.argv[1], sys.argv[2], int(sys.argv[3]))
"""


def memory_mb():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


class Run:
    def __init__(self, framework, warm=5, steps=20, items=1, **profiler):
        """`items`: examples in a step, where the fix changes how many; speed is then judged per example.
        `profiler`: options of torch.profiler.profile, for example record_shapes=True."""
        parser = argparse.ArgumentParser()
        parser.add_argument("--out", type=Path, required=True, help="where the profile and measured.json go")
        parser.add_argument("--warm", type=int, default=warm)
        parser.add_argument("--steps", type=int, default=steps)
        parser.add_argument("--fixed", action="store_true", help="with the recommended edit")
        parser.add_argument("--no-profile", action="store_true", help="only the clock")
        parser.add_argument("--no-marks", action="store_true", help="no step markers, no TensorBoard callback")
        parser.add_argument("--server", type=int, metavar="PORT", help="capture through a profiler server")
        parser.add_argument("--server-ms", type=int, default=1500, help="how long such a capture lasts")
        options = parser.parse_args()
        self.framework, self.items, self.options = framework, items, profiler
        self.out, self.warm, self.steps, self.fixed = options.out, options.warm, options.steps, options.fixed
        self.profiled, self.port, self.window_ms = not options.no_profile, options.server, options.server_ms
        self.marked = self.profiled and not options.no_marks
        self.starts, self.parts, self.client = [], {}, None
        self.on, self.rank, self.others = False, 0, []
        self.out.mkdir(parents=True, exist_ok=True)
        # Data files of a workload are made anew by each run and vanish with it.
        self.scratch = Path(tempfile.mkdtemp(prefix="strobe-diagnosis-"))
        if self.port:
            self._server()

    def ranks(self, count):
        """Starts the other ranks as torchrun would, each with this script's own command. To be called before torch is
        imported. Rank 0 writes measured.json."""
        if "RANK" in os.environ:
            self.rank = int(os.environ["RANK"])
            return self.rank
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        os.environ.update(WORLD_SIZE=str(count), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), OMP_NUM_THREADS="1",
                          RANK="0")
        for rank in range(1, count):
            command = [sys.executable, *sys.argv]
            self.others.append(subprocess.Popen(command, env={**os.environ, "RANK": str(rank)}))
        return 0

    # The capture

    def _server(self):
        if self.framework == "jax":
            import jax
            self.server = jax.profiler.start_server(self.port)
        else:
            import tensorflow as tf
            tf.profiler.experimental.server.start(self.port)

    def _begin(self):
        self.memory = memory_mb()
        if self.port:
            command = [sys.executable, "-c", CLIENT, str(self.port), str(self.out), str(self.window_ms)]
            self.client = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        elif self.profiled and self.framework == "jax":
            import jax
            jax.profiler.start_trace(str(self.out))
        elif self.profiled and self.framework == "torch":
            self._torch_begin()
        elif self.profiled:
            import tensorflow as tf
            tf.profiler.experimental.start(str(self.out))
        self.on = True
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def _end(self):
        self.on = False
        self.wall, self.cpu = time.perf_counter() - self.wall, time.process_time() - self.cpu
        self.memory_end = memory_mb()
        self.stop_s = None
        if self.client:
            self.client.wait()
        elif self.profiled:
            stop = time.perf_counter()
            if self.framework == "jax":
                import jax
                jax.profiler.stop_trace()
            elif self.framework == "torch":
                self._torch_end()
            else:
                import tensorflow as tf
                tf.profiler.experimental.stop()
            self.stop_s = time.perf_counter() - stop

    def _torch_begin(self):
        from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler
        options = {"activities": [ProfilerActivity.CPU], **self.options}
        if self.marked:
            # The profiler warms up in a step of its own, which does no work.
            options["schedule"] = schedule(wait=0, warmup=1, active=self.steps, repeat=1)
            options["on_trace_ready"] = tensorboard_trace_handler(str(self.out))
        self.prof = profile(**options)
        self.prof.start()
        if self.marked:
            self.prof.step()

    def _torch_end(self):
        if self.marked:
            self.prof.step()
        self.prof.stop()
        if not self.marked:
            self.prof.export_chrome_trace(str(self.out / f"trace{self.rank}.json"))

    # A loop of one's own

    def loop(self, sync=None):
        """Step numbers. `sync` waits for work still under way, so that an asynchronous loop is not timed short."""
        for i in range(self.warm):
            yield i
        if sync:
            sync()
        self._begin()
        i = self.warm
        # From outside the window is given in time, not in steps: go on until the client has its profile.
        while i < self.warm + self.steps or (self.client and self.client.poll() is None):
            if self.framework == "torch" and self.marked and self.starts:
                self.prof.step()
            self.starts.append(time.perf_counter())
            yield i
            i += 1
        if sync:
            sync()
        self.starts.append(time.perf_counter())
        self._end()
        self.done()

    def over(self, loader):
        """The batches of a PyTorch loader; fetching one is part of its step."""
        batches = iter(loader)
        for _ in self.loop():
            batch = next(batches, None)
            if batch is None:
                batches = iter(loader)
                batch = next(batches)
            yield batch

    def mark(self, step, name="train"):
        if not (self.on and self.marked):
            return contextlib.nullcontext()
        if self.framework == "jax":
            import jax
            return jax.profiler.StepTraceAnnotation(name, step_num=step)
        import tensorflow as tf
        return tf.profiler.experimental.Trace(name, step_num=step, _r=1)

    @contextlib.contextmanager
    def part(self, name):
        begun = time.perf_counter()
        try:
            yield
        finally:
            if self.on:
                self.parts[name] = self.parts.get(name, 0) + time.perf_counter() - begun

    # Keras

    def keras(self, tensorboard=True):
        """Callbacks for `fit`, to be called with `steps_per_epoch=run.keras_steps`; without `tensorboard`,
        a callback starts and stops the profiler and there are no step markers."""
        import keras
        run = self

        class Clock(keras.callbacks.Callback):
            def on_train_batch_begin(self, batch, logs=None):
                if batch == run.warm:
                    run._begin()
                if run.on:
                    run.starts.append(time.perf_counter())
                    waiting = run.client and run.client.poll() is None
                    if batch >= run.warm + run.steps and not waiting:
                        run._end()
                        self.model.stop_training = True

        class Board(keras.callbacks.TensorBoard):
            # Scalars need the package tensorboard, which nothing here depends on.
            def _log_epoch_metrics(self, epoch, logs):
                pass

            def on_train_batch_end(self, batch, logs=None):
                super().on_train_batch_end(batch, None)

        if not (tensorboard and self.marked and not self.port):
            return [Clock()]
        # The callback captures, the clock only reads times; the last step holds the writing of the profile.
        self.profiled, self.by_callback = False, True
        self.steps -= 1
        return [Clock(), Board(str(self.out), profile_batch=(self.warm + 1, self.warm + 1 + self.steps),
                               update_freq="epoch", write_graph=False)]

    by_callback = False

    @property
    def keras_steps(self):
        # Over gRPC the window's place is not known beforehand; the clock stops the training.
        return 10**6 if self.port else self.warm + self.steps + 3

    # The result

    def done(self):
        times = [1e3 * (b - a) for a, b in zip(self.starts, self.starts[1:])]
        total = sum(times)
        measured = {
            "fixed": self.fixed,
            "profiled": self.profiled or self.by_callback or bool(self.port),
            "marked": self.marked,
            "steps": len(times),
            "items_per_step": self.items,
            "mean_step_ms": total / len(times),
            "median_step_ms": sorted(times)[len(times) // 2],
            "ms_per_item": total / len(times) / self.items,
            "fraction": {name: 1e3 * value / total for name, value in self.parts.items()},
            "cpu_per_wall": self.cpu / self.wall,
            "profiler_stop_s": self.stop_s,
            "memory_start_mb": self.memory,
            "memory_end_mb": self.memory_end,
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            "step_ms": [round(it, 4) for it in times],
        }
        for process in self.others:
            process.wait()
        if self.rank == 0:
            (self.out / "measured.json").write_text(json.dumps(measured, indent=1))
        subprocess.run(["rm", "-rf", str(self.scratch)])
        for worker in multiprocessing.active_children():
            worker.kill()
            worker.join()
        shown = {key: measured[key] for key in ("fixed", "mean_step_ms", "median_step_ms", "fraction", "cpu_per_wall")}
        print(json.dumps(shown), flush=True)
        # TensorFlow can hang at the interpreter's exit while a generator's thread is alive.
        os._exit(0)
