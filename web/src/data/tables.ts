// The rows of every table. Made from the doc comments in the code by `UPDATE=1 cargo test`.
// Times are integer picoseconds, shares go from 0 to 1, null is not known.

/** Loaders that make batches in Python, and how long the driving thread is in them. */
export interface BatchLoader {
  /** Where batches are made: `training process` or `workers`. */
  made_in: string;
  /** Batches that were asked for within the steps that count. */
  batches: number;
  /** The same, in a step. */
  batches_per_step: number;
  /** Time in the loader, for a mean step. */
  wait_ps: number;
  /** The longest time for one batch. */
  longest_ps: number;
  /** Of that time, in ops of the framework: the rest is Python, reading, or waiting. */
  ops_ps: number;
  /** Ops that ran in the loader, in a step. */
  ops_per_step: number;
  /** The function in the loader that most of the time passes in, where Python was recorded. */
  function: string | null;
  /** Its file and line. */
  place: string | null;
  /** An event of the loader: the longest. */
  event: number;
}

/**
 * Lines of the user's own code that make datasets, compiled functions, optimizers and the like, as
 * the program reached them. Known where the run was started by `strobe run`.
 */
export interface CodeSite {
  /** The row: 0 is what the program reached first. */
  site: number;
  /**
   * What the line makes: `dataset.map`, `dataset.iter` (a loop over a dataset), `tf.function`,
   * `jax.jit`, `jax.pmap`, `optimizer`, `keras.compile`, `keras.fit`, `keras.callback`,
   * `keras.PyDataset`, `torch.DataLoader`, `loop` (around the steps).
   */
  kind: string;
  /**
   * The function that is passed or decorated, or the class; of a loop, the function that it calls
   * for a step.
   */
  name: string | null;
  /** The file. */
  file: string;
  /** The line of the call. */
  line: number;
  /** The last line of the call; of a loop, of its body. */
  end_line: number;
  /** Bytes of that line up to the end of the call, where Python says so (from 3.11 on). */
  end_col: number | null;
  /** The call in short: `ds.map(augment)`. */
  call: string | null;
  /**
   * The whole statement; of a function or loop its head. Empty where the file could not be read.
   */
  text: string;
  /** The line on which the text begins. */
  text_line: number;
  /** Arguments that matter for speed, where they are given: `num_parallel_calls=AUTOTUNE`. */
  args: string;
  /** Rows of what it takes: the datasets and callbacks, separated by spaces. */
  inputs: string;
  /** The row whose function makes it, such as the `interleave` around it. */
  inside: number | null;
  /** The file of the function that is passed, where that is the user's own. */
  defined_file: string | null;
  /** The line on which it begins, decorators included. */
  defined_line: number | null;
}

/**
 * Tracing and compiling, by function.
 *
 * `own_step_ps` of all rows add to the `compile_ps` of the mean step in `step_time`, but for
 * compiling under which a device computed, which counts as compute there.
 */
export interface Compile {
  /** The host that traced or compiled. */
  host: string;
  /** `trace` (tf.function), `compile` (XLA, jit), `autotune`, `optimize` (of the graph). */
  kind: string;
  /** The function, as its author calls it; absent where the profile does not say. */
  function: string | null;
  /** How often it was traced or compiled. */
  count: number;
  /** In how many of the steps that count. */
  steps: number;
  /** Calls of the function, whether they traced or compiled or not. */
  calls: number | null;
  /** How often it was traced since the program started, as the framework counts. */
  tracing_count: number | null;
  /** How many of these happened inside a tracing, and so because of it. */
  inside_trace: number;
  /** Time in all, with the tracing and compiling inside it, without running the function. */
  total_ps: number;
  /** The same, of one time. */
  mean_ps: number;
  /** The same, inside steps that count, per such step. */
  step_ps: number;
  /** Time in all without the tracing and compiling inside it. */
  own_ps: number;
  /** The same, inside steps that count, per such step. */
  own_step_ps: number;
  /** What changed from one time to the next, where the profile says so. */
  changed: string | null;
  /** The longest of them. */
  event: number;
}

/** Copies of each device by direction and kind of memory. */
export interface Copy {
  /** The device's host. */
  host: string;
  /** The device whose stream did it. */
  device: string;
  /** h2d (to the device), d2h (to the host), d2d (within), p2p (between devices) or memset. */
  direction: string;
  /** From and to which memory, as pageable to device; null where the profile does not say. */
  memory: string | null;
  /** How many. */
  count: number;
  /** How much; null where no copy tells its size. */
  bytes: number | null;
  /** Time from start to end, added over streams. */
  total_ps: number;
  /** Bytes a second, over the copies that tell their size; null where none does. */
  bytes_per_s: number | null;
}

/**
 * The critical path of the mean step, of runs with a device: only what is on it makes the step
 * longer.
 *
 * The rows add to the mean step. Empty where the steps cannot be replayed to within a tenth of what
 * was measured.
 */
export interface CriticalPath {
  /**
   * The category, as in `step_time`. Delays from launch to start and from the end of work to the
   * end of a wait are runtime.
   */
  category: string;
  /**
   * The op, or the kernel or copy where no op is known; null on the host, and for what is too small
   * to be named.
   */
  name: string | null;
  /**
   * Nobody worked: the time from a launch to its start, between two kernels of a queue, or from the
   * end of work until a wait for it was over.
   */
  is_delay: boolean;
  /** How often it is on the path of the replayed steps. */
  count: number;
  /** Time of the mean step. */
  per_step_ps: number;
  /** Its part of the step, 0 to 1. */
  share: number;
}

/**
 * How much each device worked, and what it is.
 *
 * A TPU that waits in an infeed is not busy.
 */
export interface DeviceUse {
  /** The device's host. */
  host: string;
  /** The device. */
  device: string;
  /** The product, as far as the profile knows. */
  name: string;
  /** Memory of the device. */
  memory_bytes: number | null;
  /** As 9.0; null for others than NVIDIA's. */
  compute_capability: string | null;
  /** How long the capture lasted. */
  window_ps: number;
  /** Something ran on any stream. */
  busy_ps: number;
  /** Busy part of the capture, 0 to 1. */
  busy_share: number;
  /** Kernels, memsets and copies within the device. */
  compute_ps: number;
  /** Communication, copies to other devices included. */
  collective_ps: number;
  /** Copies from and to the host. */
  copy_ps: number;
  /** Streams that did anything. */
  n_streams: number;
  /** Time in which streams overlapped: their sum minus their union. */
  streams_overlap_ps: number;
}

/**
 * What was sampled of the machine, the process tree and its GPUs, for each step that counts.
 *
 * Empty where nothing was sampled during the run. What each counter holds, and its unit, is said in
 * `docs/run-folder.md`.
 */
export interface Hardware {
  /** The host whose samples these are. */
  host: string;
  /**
   * The step; null for all steps that count together, or for all samples where there are no steps.
   */
  step: number | null;
  /** What was sampled, as cpu/all or gpu 0/sm_clock. */
  counter: string;
  /** Mean of the samples in the step. */
  mean: number;
  /** The lowest. */
  min: number;
  /** The highest. */
  max: number;
  /**
   * Samples in the step. Of a step shorter than the time between two, 0: it has the value of the
   * sample that covers it.
   */
  n: number;
}

/** Calls of the driving thread into the framework, within the steps that count. */
export interface HostCall {
  /** What is called: a function by the user's name, or an op. */
  call: string;
  /** `function`, `op` for a single op called from Python, or `other`. */
  kind: string;
  /** How often, in all. */
  count: number;
  /** How often in a step. */
  per_step: number;
  /** Time inside the calls, for a mean step. */
  total_ps: number;
  /** Of that, in the op itself rather than in reaching it: for single ops. */
  work_ps: number | null;
  /** Of the rest, what counts as compute all the same, as nothing tells an op from its work. */
  in_compute_ps: number | null;
  /** Time from its end to the next call of any kind, for a mean step. */
  after_ps: number;
  /**
   * Of that, when Python held the thread: not while it waited for others, as the engine of a
   * backward pass.
   */
  python_after_ps: number;
  /** The longest time from its end to the next call. */
  longest_after_ps: number;
  /** The call that follows the longest one. */
  before: string | null;
  /** An event of it, and the longest wait's. */
  event: number;
}

/**
 * The threads of the host and what they did most.
 *
 * Self time is time in an event and in none inside it.
 */
export interface HostThread {
  /** The thread's host. */
  host: string;
  /** The thread's name; many threads may share it. */
  thread: string;
  /** Number of its track. */
  track: number;
  /** How many events it has. */
  n_events: number;
  /** When its first event began, since the start of the trace. */
  first_ps: number;
  /** When its last event ended. */
  last_ps: number;
  /** Time in any event. */
  busy_ps: number;
  /** Of the whole capture. */
  busy_share: number;
  /** Time in ops, with all that lies inside them. */
  ops_ps: number;
  /** Self time of frames of the Python interpreter; null where those were not recorded. */
  python_ps: number | null;
  /** What it did most, by self time; the kinds are those of events. */
  top_kind: string | null;
  /** Self time of that kind. */
  top_kind_ps: number;
  /** The event it spent most self time in. */
  top_name: string | null;
  /** Self time of events of that name. */
  top_name_ps: number;
}

/**
 * The stages of the input pipeline, consumer first.
 *
 * Times are for a mean step. A stage that waits for its source or for a buffer is blocked, which is
 * not work.
 */
export interface InputStage {
  /** The stage and all above it, without the numbers of single iterators. */
  stage: string;
  /** The stage that takes its elements; empty at the top. */
  parent: string | null;
  /** The last part of the name: `ParallelMapV2`. */
  kind: string;
  /** The dataset as the graph calls it: `MapDataset:1`; `inject/…` was put there by TensorFlow. */
  dataset: string | null;
  /** How often it was asked for an element, in all. */
  calls: number;
  /** Elements a step. */
  elements_per_step: number;
  /** Iterators made, in all: of a stage that reads files, files opened. */
  iterators: number;
  /** Its own work for a step, its functions' included, on whatever threads. */
  work_ps: number;
  /** Of that, in Python, which runs one thread at a time. */
  python_ps: number;
  /** Waiting for a buffer to fill, for a step. */
  blocked_ps: number;
  /** How many of its functions may run at once. */
  parallelism: number | null;
  /** Whether TensorFlow chooses that, or the size of the buffer. */
  autotune: boolean | null;
  /** How many elements its buffer may hold. */
  buffer_limit: number | null;
  /** How many it held, on average, when asked. */
  buffered: number | null;
  /** Whether it buffers: what is below it runs in other threads. */
  asynchronous: boolean;
  /** The threads that run it: the stage that owns them, or `consumer`. */
  runs_in: string;
  /** What all work in those threads needs for a step, with as many as there are. */
  period_ps: number;
  /** Whether those threads limit the pipeline. */
  limits: boolean;
}

/** The time of each kernel, by how it was launched and for which op, over all GPUs. */
export interface KernelTime {
  /** The kernel. */
  name: string;
  /** The framework's op that launched it, or the compiled program's; null if not known. */
  op: string | null;
  /** Blocks in the grid, as x,y,z. */
  grid: string | null;
  /** Threads in a block, as x,y,z. */
  block: string | null;
  /** Registers of a thread. */
  registers: number | null;
  /** Shared memory of a block that the kernel fixes. */
  static_shared_bytes: number | null;
  /** Shared memory of a block that the launch asks for. */
  dynamic_shared_bytes: number | null;
  /**
   * Theoretical occupancy, 0 to 1: the profiler's figure, else computed from the launch and the
   * device's compute capability; null for AMD.
   */
  occupancy: number | null;
  /**
   * What keeps it below 1: registers, shared memory, block size (warps do not fit evenly) or blocks
   * (too small ones).
   */
  occupancy_limit: string | null;
  /**
   * Whether it computes on matrix units (tensor cores, MFMA), told from its name; null where the
   * name does not say, as for compiled kernels.
   */
  uses_tensor_cores: boolean | null;
  /** How often it ran. */
  count: number;
  /** Time from start to end, added over streams and devices. */
  total_ps: number;
  /** The shortest run. */
  min_ps: number;
  /** The longest run. */
  max_ps: number;
  /** The mean run. */
  mean_ps: number;
  /** Its part of all kernels' time, 0 to 1. */
  share: number;
}

/**
 * The mean of the steps that count, by category.
 *
 * The rows add to the step, to the picosecond: each is rounded so that all before it and it are
 * together as long as they were measured.
 */
export interface MeanStep {
  /** One of the ten categories of a step. */
  category: string;
  /** Time in a step; absent where the profile cannot tell. */
  per_step_ps: number | null;
  /** Of the step. */
  share: number | null;
  /** Why it cannot be told. */
  unknown: string | null;
}

/**
 * How full each allocator got, when, and whether it grows from step to step.
 *
 * Empty where the profile holds no allocator's events.
 */
export interface Memory {
  /** The host whose process allocates. */
  host: string;
  /** The allocator, as GPU_0_bfc. */
  allocator: string;
  /** Which memory it manages: host or device. */
  memory: string;
  /** Highest level in the capture, what is reserved for programs included. */
  peak_bytes: number;
  /** When that was, since the start of the trace; the last time, of several. */
  peak_ps: number;
  /** In which step; null outside of all steps. */
  peak_step: number | null;
  /** Level when the capture began. */
  start_bytes: number;
  /** Level when the capture ended. */
  end_bytes: number;
  /**
   * What stays between steps: the lowest level of a step, as the median of the steps that count.
   */
  floor_bytes: number | null;
  /** What it may use: in use and available, at the peak. */
  capacity_bytes: number | null;
  /** Part of the capacity that was in use at the peak, 0 to 1. */
  peak_share: number | null;
  /** Highest level since the process began, as the allocator says. */
  lifetime_peak_bytes: number | null;
  /** How scattered the free memory was at the peak, as the allocator says: 0 is one piece. */
  fragmentation: number | null;
  /** Blocks taken. */
  n_allocations: number;
  /** Blocks given back. */
  n_deallocations: number;
  /** Steps that count, on which the figures per step rest. */
  n_steps: number;
  /** Bytes taken in a step, given back or not: the mean of the steps that count. */
  allocated_bytes_per_step: number | null;
  /**
   * How much the floor rises from step to step: the median slope between all pairs of steps
   * (Theil–Sen). Null for fewer than four steps.
   */
  growth_bytes_per_step: number | null;
  /** Lower end of the slope's range, which holds it in 95 of 100 cases. */
  growth_low_bytes: number | null;
  /** Upper end of the slope's range. */
  growth_high_bytes: number | null;
  /**
   * Events of allocators that were not read, since there were more than a million; counts are then
   * of the part around the peak.
   */
  n_unread: number;
}

/** Who holds the memory of each allocator when it is fullest, largest first. */
export interface MemoryPeak {
  /** The host whose process allocates. */
  host: string;
  /** The allocator, as in the table memory. */
  allocator: string;
  /**
   * How the holder is known: op (the framework says it), call (the event around the allocation),
   * before (allocated before the capture: variables and whatever else lives long), reserved (for
   * the temporaries of compiled programs), small (many small blocks together) or unknown.
   */
  held_by: string;
  /** The op or call that allocated; null for the others. */
  op: string | null;
  /** The name scope of the op. */
  scope: string | null;
  /** Bytes held at the peak. */
  bytes: number;
  /** Part of the peak's level, 0 to 1. */
  share: number;
  /** Blocks held; null for those from before the capture. */
  count: number | null;
  /** In how many different steps these blocks were allocated. */
  n_steps: number;
  /** Bytes of blocks allocated in steps before the peak's: kept from step to step. */
  earlier_bytes: number;
  /** What for, as the framework says: output, temp, persist or dynamic. */
  region_type: string | null;
  /** Type of the elements, as float32. */
  data_type: string | null;
  /** Shape of the largest tensor. */
  shape: string | null;
  /** Number of the event that allocated the largest block; null for those from before. */
  event: number | null;
}

/**
 * Hardware counters of single runs of kernels, as a profiler collects them that counts one range of
 * work after the other. They have no time: a counted range does not run as fast as it would alone.
 */
export interface Metric {
  /** The device's host. */
  host: string;
  /** The device that counted. */
  device: string;
  /** The kernel, or the range that was counted. */
  name: string;
  /** Which of the device's counted ranges, from 0. */
  nth: number;
  /** The counter, as its makers call it. */
  metric: string;
  /** What it counted. */
  value: number;
}

/**
 * What the longest ops compute with, as far as the profile tells.
 *
 * TensorFlow's allocators and compiled programs know it; a profile that holds neither has no rows
 * here.
 */
export interface OpTensor {
  /** The op with its scopes, or the instruction of a compiled program. */
  op: string;
  /** The type of its elements, such as float32. */
  element_type: string;
  /** The shape of what it produces, such as `[256,512]`. */
  shape: string | null;
  /** What tells it: allocation or program. */
  known_by: string;
  /** Time of the op, added over threads or streams; of long captures, in their first part. */
  total_ps: number;
  /** An event of it. */
  event: number;
}

/**
 * The time of each op, on the host and on the devices.
 *
 * Host ops are the events that TensorFlow, tf.data and JAX name `scope/op:Type`, as in the
 * framework's own profiler. Two kinds come on top, which that one leaves out: ops of programs
 * compiled for the CPU, and ops called one by one from Python, whose kernel runs without an event
 * of its own (`eager` is true for them, and their time is that of the kernel's run). Device ops are
 * named by the framework's op where the profile has it, else by the compiled program's op, else by
 * the kernel.
 */
export interface OpTime {
  /** Where it ran: host or device. */
  side: string;
  /** The op with its scopes, without its type. */
  name: string;
  /** What the op does, as MatMul; null for kernels of which no op is known. */
  op_type: string | null;
  /** The scopes around it, as a/b; empty at the top. */
  scope: string;
  /**
   * Whose op it is: tensorflow, tf.data, jax, torch, xla (known only from the compiled program) or
   * kernel (no op is known).
   */
  family: string;
  /** The compiled program it belongs to, where only that tells ops of one name apart. */
  module: string | null;
  /**
   * How often it ran; on a device, how many kernels it ran. 0 for a host op that is known by the
   * kernels it launched alone.
   */
  count: number;
  /** Time from start to end, added over threads or streams. */
  total_ps: number;
  /** The same without the ops that ran inside. */
  self_ps: number;
  /** The shortest run. */
  min_ps: number;
  /** The longest run. */
  max_ps: number;
  /** The mean run. */
  mean_ps: number;
  /**
   * Whether Python called it as a single op (true) or it ran inside a function or graph (false);
   * null where that is not known, or both happened.
   */
  eager: boolean | null;
  /** Of a host op: time of the device work it started; null without a device. */
  device_ps: number | null;
  /** Its part of all ops' self time on its side, 0 to 1. */
  self_share: number;
}

/**
 * How much memory each compiled program needs, as its compiler planned it.
 *
 * Empty without compiled programs in the profile. Programs are of XLA: JAX, or TensorFlow with
 * `jit_compile=True`.
 */
export interface ProgramMemory {
  /** The program, as jit_train_step(10). */
  program: string;
  /** Whether anything of it ran in the capture. */
  ran: boolean;
  /** All that is held while it runs. */
  peak_bytes: number;
  /** What is given to it: weights, optimizer state, the batch. */
  argument_bytes: number;
  /** What it gives back, but for what it writes over arguments. */
  output_bytes: number;
  /** Part of the arguments that outputs are written over (donated). */
  alias_bytes: number;
  /** What it needs in between: activations kept for the backward pass, and scratch. */
  temp_bytes: number;
  /** Constants within the program. */
  constant_bytes: number;
  /**
   * What makes the largest buffer among the temporaries: the framework's op where the program names
   * it, else the instruction.
   */
  largest_temp: string | null;
  /** Size of that buffer. */
  largest_temp_bytes: number | null;
}

/**
 * Lines of Python that were running in the steps that count, where stacks were sampled. The
 * innermost line outside of installed libraries stands for all it calls.
 */
export interface PythonLine {
  /**
   * `python`: the driving thread, while nothing of the framework ran; `framework`: the driving
   * thread, inside the framework; `input`: any thread, making batches. Without steps: `driving` and
   * `other`.
   */
  activity: string;
  /** The function. */
  function: string;
  /** Its file. */
  file: string;
  /** The line that was running; null where it could not be made out. */
  line: number | null;
  /**
   * The function that it had called, innermost: where the time went inside of libraries. Null where
   * most of it went into the line itself, or into what is not written in Python.
   */
  inside: string | null;
  /** How many samples saw it. */
  samples: number;
  /** What they stand for, of a mean step; null without steps. */
  per_step_ps: number | null;
}

/**
 * The Python stacks that were sampled, as calls: a row stands for a line that stayed on a thread's
 * stack, from the sample that saw it first to the sample that no longer did. Calls are cut where a
 * step begins. In the order of threads and time, each call before what it called.
 */
export interface PythonStack {
  /** The row. */
  call: number;
  /** The row of the caller; null for the outermost. */
  parent: number | null;
  /** How many callers are around it. */
  depth: number;
  /** The host whose steps these are; null where that is not known. */
  host: string | null;
  /** The process. */
  pid: number;
  /**
   * Threads of the process, counted from 0: the driving thread first, then those that make input.
   */
  lane: number;
  /** The thread's number in the operating system; null where it is not known. */
  thread: number | null;
  /** `driving`: takes the steps; `input`: makes batches; `other`. */
  role: string;
  /** The step it is in; null outside of steps, and where none are known. */
  step: number | null;
  /** When the first sample saw it, since the start of the trace. */
  start_ps: number;
  /** What the samples that saw it stand for: its own time, and that of all it called. */
  dur_ps: number;
  /** The part of it in which it had called no other Python. */
  self_ps: number;
  /** The function. */
  function: string;
  /** Its file. */
  file: string;
  /** The line that was running; null where it could not be made out. */
  line: number | null;
  /** Your own code, and not that of an installed library. */
  own: boolean;
  /** What the line says; null where the run does not hold it. */
  text: string | null;
}

/**
 * Python functions on the driving thread, within the steps that count, where the profile has them.
 * Time inside the framework is not Python's.
 */
export interface PythonTime {
  /** The function. */
  function: string;
  /** Its file and line: `train.py:12`. */
  place: string;
  /** How often it was called, in all. */
  calls: number;
  /** In it and all Python it calls, for a mean step. */
  total_ps: number;
  /** In itself, for a mean step. */
  self_ps: number;
  /** An event of it. */
  event: number;
}

/** Facts about the run, one a row. */
export interface RunInfo {
  /** Where it was said: a host, device or process, a training log, or `run`. */
  of: string;
  /** What is said. */
  key: string;
  /** As text. */
  value: string;
}

/**
 * When each step of the whole run began and how long it took, by the process's own clock. Only runs
 * started by `strobe run` have it.
 */
export interface RunStep {
  /** The process. */
  pid: number;
  /** Counted from 1, as they began. */
  step: number;
  /** When it began, from the start of the profile: steps before it are negative. */
  start_ps: number;
  /** To the beginning of the next; a mean where one row stands for several steps. */
  dur_ps: number;
  /** How many steps this row stands for: long runs are thinned. */
  steps: number;
  /** `no`: the profiler was off; `yes`: it was on; `edge`: it was started or stopped. */
  profiled: string;
}

/**
 * What the host did in the `runtime` of a step: the innermost calls of the framework, by the time
 * that they cover.
 *
 * Where other threads worked while the driving thread waited, the time is theirs. Each instant
 * counts once, so rows add to the `runtime_ps` of the steps looked at.
 */
export interface RuntimeCall {
  /** The call; null for time in which no call is known. */
  call: string | null;
  /** Whether the driving thread made it, and not another one. */
  is_driving: boolean;
  /** Time that it covers, for a mean step. */
  per_step_ps: number;
  /** Its part of the runtime, 0 to 1. */
  share: number;
}

/**
 * What the training job logged: loss, accuracy, learning rate, as TensorBoard shows them.
 *
 * Sorted by run, tag, step and time. Empty where no event files were found.
 */
export interface Scalar {
  /**
   * Which part of the log: its folder below the log folder, as train or validation; . for the log
   * folder itself.
   */
  run: string;
  /** What was logged, as epoch_loss. */
  tag: string;
  /** The step, as the job counts: often batches or epochs, which differ from the profile's. */
  step: number;
  /**
   * When, on the trace's clock: before the profile it is negative. Null where the profile does not
   * say when it began, or there is none.
   */
  time_ps: number | null;
  /** When, as Unix time. Writers know it to a quarter of a microsecond. */
  wall_unix_ns: number | null;
  /** The number. SQL shows one that is no number (NaN) as null. */
  value: number | null;
  /**
   * Whether the same step or an earlier one was written again later, as after a restart from a
   * checkpoint: TensorBoard hides such points.
   */
  superseded: boolean;
}

/**
 * The time of the ops in each name scope, step by step; `scope_time` is that of all steps.
 *
 * An op belongs to the step in which it began.
 */
export interface ScopeStep {
  /** The host. */
  host: string;
  /** The step; null for ops outside of steps. */
  step: number | null;
  /** Where the ops ran: host or device. */
  side: string;
  /** The scope's path, as model/dense; / for all ops. */
  scope: string;
  /** The scope around it; null for /. */
  parent: string | null;
  /** How many scopes are around it; 0 for /. */
  depth: number;
  /** When its first op began, since the start of the trace. */
  start_ps: number;
  /** How often ops in it ran, those of inner scopes included; on a device, how many kernels. */
  count: number;
  /**
   * Time of all ops in it, those of inner scopes included: self times of ops, added over threads or
   * streams.
   */
  total_ps: number;
  /** Time of the ops directly in it. */
  self_ps: number;
}

/**
 * The time of the ops in each name scope, as TensorFlow and JAX build them from layers, modules and
 * functions.
 *
 * Times of the host are self times of ops, so no moment of a thread counts twice.
 */
export interface ScopeTime {
  /** The scope's path, as model/dense; / for all ops. */
  scope: string;
  /** The scope around it; null for /. */
  parent: string | null;
  /** How many scopes are around it; 0 for /. */
  depth: number;
  /** How many different ops lie in it, those of inner scopes included. */
  n_ops: number;
  /** How often ops in it ran on the host, those of inner scopes included. */
  count: number;
  /** Host time of all ops in it, those of inner scopes included. */
  total_ps: number;
  /** Host time of the ops directly in it. */
  self_ps: number;
  /** Device time of all ops in it, those of inner scopes included; null without a device. */
  device_ps: number | null;
}

/** The training steps of each host, from the start of one to the start of the next. */
export interface Step {
  /** The host whose step this is. */
  host: string;
  /** Steps of a host in the order they began, from 0. */
  step: number;
  /** The step's own number, where the training loop gave one. */
  number: number | null;
  /** When it began, since the start of the trace. */
  start_ps: number;
  /** To the start of the next step; of the last, to its own end. */
  dur_ps: number;
  /** How steps were told apart: markers, calls or period. */
  found_by: string;
  /** How sure that is, 0 to 1. */
  confidence: number;
  /** What marks the steps: the name of the marker, call or recurring event. */
  marker: string;
  /** False where the capture ends inside the step. */
  complete: boolean;
  /** Belongs to the warm-up and is left out of statistics. */
  warmup: boolean;
  /** Number of the track whose events drive the steps. */
  track: number;
}

/** The steps that take much longer than the others, and what made them. */
export interface StepOutlier {
  /** The host whose step this is. */
  host: string;
  /** The step, as in the table `step`. */
  step: number;
  /** Wall time of the step. */
  dur_ps: number;
  /** How much longer than an ordinary step. */
  excess_ps: number;
  /** The same, as a multiple of the ordinary step: 3 is three times as long. */
  ratio: number;
  /** The category with the largest excess over ordinary steps. */
  category: string;
  /** That category's excess. */
  category_excess_ps: number;
  /** What takes that excess: an op's type, an event, a function; absent where nothing does. */
  name: string | null;
  /** How much of the excess it takes, added over threads. */
  name_excess_ps: number | null;
  /** The op or event itself that takes most of that. */
  longest: string | null;
  /**
   * Of all ops or events that ordinary steps spend this category on, the part that took half as
   * long again, 0 to 1: with more to do most do, on a busy machine those that were hit.
   */
  grown_share: number | null;
  /**
   * A function that is called in this step and not in ordinary ones, as one that evaluates, where
   * it takes most of the excess.
   */
  extra_call: string | null;
  /** The number of steps from one slow step of this cause to the next, if it is regular. */
  period: number | null;
}

/** How the lengths of a host's steps are spread, over all that count. */
export interface StepSpread {
  /** The host whose steps these are. */
  host: string;
  /** Steps that count. */
  steps: number;
  /** The mean step. */
  mean_ps: number;
  /** What an ordinary step takes: the median of those that are not slow. */
  typical_ps: number;
  /** The median distance of a step from the typical one. */
  spread_ps: number;
  /** A step beyond this is slow: an outlier. */
  limit_ps: number;
  /** The median step: half of the steps take no longer. */
  p50_ps: number;
  /** Nine of ten steps take no longer. */
  p90_ps: number;
  /** 99 of 100 steps take no longer; with fewer steps, the longest. */
  p99_ps: number;
  /** 999 of 1000 steps take no longer; with fewer steps, the longest. */
  p999_ps: number;
  /** Steps beyond the limit. */
  slow: number;
  /** One, or two where slow steps are a group of their own with a gap before them. */
  modes: number;
  /** How much longer slow steps make the mean step. */
  slow_cost_ps: number;
}

/**
 * Where the time of each training step went, on each device.
 *
 * The ten categories are disjoint and add to `dur_ps`. What runs on the device is counted first;
 * where nothing does, what the host's driving thread did decides.
 */
export interface StepTime {
  /** The host whose step this is. */
  host: string;
  /** The step, as in the table `step`. */
  step: number;
  /** The device, or `cpu` where the run has no accelerator. */
  device: string;
  /** Wall time of the step, to the start of the next. */
  dur_ps: number;
  /** Waiting for the next batch. */
  input_ps: number;
  /** Copies to the device with no compute or communication under them. */
  transfer_in_ps: number;
  /** Tracing, retracing, compiling, autotuning. */
  compile_ps: number;
  /** The user's code held the host, and nothing of the framework ran. */
  python_ps: number;
  /** Framework work on the host, launching and waiting included, while nothing computed. */
  runtime_ps: number;
  /** On the accelerator; in a run without one, ops running. */
  compute_ps: number;
  /** Communication with no compute under it. */
  collective_ps: number;
  /** Copies from the device with nothing of the above under them. */
  transfer_out_ps: number;
  /** Checkpoints and summaries, with the host work that only steps with a save have. */
  output_ps: number;
  /** Nobody worked, and it cannot be said why. */
  idle_ps: number;
  /** Whether statistics rest on this step: complete, and not warm-up. */
  counts: boolean;
}

/**
 * What a step would take if something changed.
 *
 * Made by replaying measured steps: with a device as a graph of launches, queues and waits, else
 * category by category. A change is only there if replaying the unchanged steps comes within a
 * tenth of what was measured.
 */
export interface WhatIf {
  /**
   * The change: `without python` takes that category away, `without launch overhead` the calls that
   * hand work to the device and the delay until it starts, `kernels of OP × 0.5` half of their
   * time; `prefetch`, `parallel STAGE`, `without python in STAGE`, `without STAGE`, `cache STAGE`
   * and `shuffle before STAGE` change the input pipeline, each with a prefetch at its end.
   */
  change: string;
  /** The mean step as measured. */
  step_ps: number;
  /** The mean step as replayed, nothing changed. */
  replayed_ps: number;
  /** The mean step after the change. */
  new_step_ps: number;
  /** At best: all that could not be known turned out well. */
  best_ps: number;
  /** At worst. */
  worst_ps: number;
  /**
   * What bounds the step after the change: with a device, the category that takes most of what is
   * left of the critical path.
   */
  limited_by: string;
}

/** The row of each table, by the table's name. */
export interface Tables {
  batch_loader: BatchLoader;
  code_site: CodeSite;
  compile: Compile;
  copy: Copy;
  critical_path: CriticalPath;
  device_use: DeviceUse;
  hardware: Hardware;
  host_call: HostCall;
  host_thread: HostThread;
  input_stage: InputStage;
  kernel_time: KernelTime;
  mean_step: MeanStep;
  memory: Memory;
  memory_peak: MemoryPeak;
  metric: Metric;
  op_tensor: OpTensor;
  op_time: OpTime;
  program_memory: ProgramMemory;
  python_line: PythonLine;
  python_stack: PythonStack;
  python_time: PythonTime;
  run_info: RunInfo;
  run_step: RunStep;
  runtime_call: RuntimeCall;
  scalar: Scalar;
  scope_step: ScopeStep;
  scope_time: ScopeTime;
  step: Step;
  step_outlier: StepOutlier;
  step_spread: StepSpread;
  step_time: StepTime;
  what_if: WhatIf;
}
