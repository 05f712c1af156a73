//! Makes profiles of any size, streamed: only counts and chunks are held in memory.
//!
//! Protobuf wants the length of a line before its events. So each line is
//! generated twice, first into a counter, then into the file; that is faster
//! than holding gigabytes, and leaves the varints as short as a collector's.
//!
//! ```text
//! gpu, one-line (10 ms a step)                         tf-ops
//! python |train                               |        |train                          |
//!         |IteratorGetNext 7.0| |FunctionRun 2.65|      |EagerExecute|EagerExecute| …
//!                                cuLaunchKernel …       |EagerLocalExecute: MatMul|
//! gpu                            |kernels 2.5|          |EagerKernelExecute|
//! ```
//!
//! Truth of `gpu` and `one-line`, each step and GPU: input 7.0 ms, compute 2.5,
//! runtime 0.15, python 0.35; the kernels lie end to end, turn about over the streams.

use std::io::{self, Write};

use crate::wire::Message;

/// What a big profile looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// 8 GPUs of 4 streams, a thread launching for each; as many launches as kernels.
    Gpu,
    /// No device: eager ops four deep in one Python thread.
    TfOps,
    /// One GPU whose kernels all lie on one stream, launched as a graph a step.
    OneLine,
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    pub events: u64,
    /// Step markers; complete steps, start to start, are one less.
    pub steps: u64,
    pub bytes: u64,
}

/// Streams one XSpace of whole steps, at least two, with at least `events` events.
pub fn write_big(out: &mut impl Write, shape: Shape, events: u64) -> io::Result<Written> {
    let per_step = per_step_events(shape);
    let steps = events.div_ceil(per_step).max(2);
    let mut n_bytes = 0;
    for plane in planes(shape) {
        n_bytes += write_plane(out, &plane, steps)?;
    }
    let mut hostnames = Message::default();
    hostnames.data(4, b"trainer-0");
    out.write_all(&hostnames.bytes)?;
    Ok(Written { events: steps * per_step, steps, bytes: n_bytes + hostnames.bytes.len() as u64 })
}

const N_GPUS: u64 = 8;
const STREAMS_PER_GPU: u64 = 4;
const KERNELS_PER_GPU: u64 = 100;
const ONE_LINE_KERNELS: u64 = 1000;
const OPS_PER_STEP: u64 = 50;

const PS_PER_US: u64 = 1_000_000;
const STEP_PS: u64 = 10_000 * PS_PER_US;
const KERNELS_AT_PS: u64 = 7300 * PS_PER_US;
const KERNELS_PS: u64 = 2500 * PS_PER_US;

fn per_step_events(shape: Shape) -> u64 {
    match shape {
        Shape::Gpu => 3 + 2 * N_GPUS * KERNELS_PER_GPU,
        Shape::TfOps => 1 + 4 * OPS_PER_STEP,
        Shape::OneLine => 4 + ONE_LINE_KERNELS,
    }
}

/// The part of a profile that fits into memory: everything but the events.
struct Plane {
    /// Id, name, metadata and stats, encoded.
    head: Message,
    lines: Vec<Line>,
}

struct Line {
    head: Message,
    content: Content,
}

/// Which events a line has in each step.
#[derive(Clone, Copy)]
enum Content {
    /// Markers, input, and the launches for the first GPU.
    Driver,
    GraphDriver,
    Launches {
        gpu: u64,
    },
    Stream {
        gpu: u64,
        nth: u64,
    },
    OnlyStream,
    EagerOps,
}

// Ids in the metadata maps, the same in every plane.
const EVENTS: [&str; 18] = [
    "train",
    "IteratorGetNext:IteratorGetNext",
    "FunctionRun",
    "cuLaunchKernel",
    "cuGraphLaunch",
    "EagerExecute",
    "EagerKernelExecute",
    "KernelAndDeviceFunc::Run",
    "EagerLocalExecute: MatMul",
    "EagerLocalExecute: AddV2",
    "EagerLocalExecute: Relu",
    "EagerLocalExecute: Mul",
    "EagerLocalExecute: Sub",
    "ampere_sgemm_128x64_nn",
    "ampere_sgemm_32x128_tn",
    "void Eigen::internal::EigenMetaKernel<relu>",
    "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true, 1>",
    "void tensorflow::functor::ApplyAdamKernel<float>",
];
const TRAIN: u64 = 1;
const GET_NEXT: u64 = 2;
const FUNCTION_RUN: u64 = 3;
const LAUNCH: u64 = 4;
const GRAPH_LAUNCH: u64 = 5;
const EAGER_EXECUTE: u64 = 6;
const EAGER_KERNEL_EXECUTE: u64 = 7;
const KERNEL_RUN: u64 = 8;
const FIRST_LOCAL_EXECUTE: u64 = 9;
const FIRST_KERNEL: u64 = 14;
const N_KINDS: u64 = 5;

const STATS: [&str; 23] = [
    "step_num",
    "_r",
    "correlation_id",
    "device_id",
    "tf_op",
    "kernel_details",
    "eager_op",
    "is_func",
    "MatMul",
    "AddV2",
    "Relu",
    "Mul",
    "Sub",
    "model/dense/MatMul:MatMul",
    "model/dense_1/MatMul:MatMul",
    "model/relu/Relu:Relu",
    "model/bn/FusedBatchNormV3:FusedBatchNormV3",
    "Adam/ResourceApplyAdam:ResourceApplyAdam",
    "regs:32 static_shared:0 dynamic_shared:0 grid:16,1,1 block:256,1,1 occ_pct:50",
    "regs:64 static_shared:8192 dynamic_shared:0 grid:64,4,1 block:128,1,1 occ_pct:25",
    "regs:16 static_shared:0 dynamic_shared:0 grid:512,1,1 block:1024,1,1 occ_pct:100",
    "device_vendor",
    "cuda_graph_id",
];
const STEP_NUM: u64 = 1;
const ROOT: u64 = 2;
const CORRELATION: u64 = 3;
const DEVICE: u64 = 4;
const TF_OP: u64 = 5;
const KERNEL_DETAILS: u64 = 6;
const EAGER_OP: u64 = 7;
const IS_FUNC: u64 = 8;
const FIRST_OP_TYPE: u64 = 9;
const FIRST_TF_OP: u64 = 14;
const FIRST_DETAILS: u64 = 19;
const N_DETAILS: u64 = 3;
const DEVICE_VENDOR: u64 = 22;
const GRAPH: u64 = 23;

fn planes(shape: Shape) -> Vec<Plane> {
    let host_lines = match shape {
        Shape::Gpu => {
            let threads = (1..N_GPUS).map(|gpu| {
                line(1001 + gpu, &format!("tf_Compute/{}", 1001 + gpu), Content::Launches { gpu })
            });
            let python = line(1001, "python", Content::Driver);
            std::iter::once(python).chain(threads).collect()
        }
        Shape::OneLine => vec![line(1001, "python", Content::GraphDriver)],
        Shape::TfOps => vec![line(1001, "python", Content::EagerOps)],
    };
    let gpu_streams = |gpu: u64| match shape {
        Shape::OneLine => vec![line(13, "Stream #13(Compute)", Content::OnlyStream)],
        Shape::Gpu | Shape::TfOps => (0..STREAMS_PER_GPU)
            .map(|nth| {
                let id = 13 + nth;
                line(id, &format!("Stream #{id}(Compute)"), Content::Stream { gpu, nth })
            })
            .collect(),
    };
    let n_gpus = match shape {
        Shape::Gpu => N_GPUS,
        Shape::OneLine => 1,
        Shape::TfOps => 0,
    };
    let gpus = (0..n_gpus).map(|gpu| {
        let mut head = plane_head(1 + gpu, &format!("/device:GPU:{gpu}"));
        let mut vendor = Message::default();
        vendor.uint(1, DEVICE_VENDOR);
        vendor.data(5, b"Nvidia");
        head.data(6, &vendor.bytes);
        Plane { head, lines: gpu_streams(gpu) }
    });
    let host = Plane { head: plane_head(0, "/host:CPU"), lines: host_lines };
    gpus.chain([host]).collect()
}

fn plane_head(id: u64, name: &str) -> Message {
    let mut head = Message::default();
    head.uint(1, id);
    head.data(2, name.as_bytes());
    for (field, names) in [(4, &EVENTS[..]), (5, &STATS[..])] {
        for (id, name) in (1..).zip(names) {
            let mut value = Message::default();
            value.uint(1, id);
            value.data(2, name.as_bytes());
            let mut entry = Message::default();
            entry.uint(1, id);
            entry.data(2, &value.bytes);
            head.data(field, &entry.bytes);
        }
    }
    head
}

fn line(id: u64, name: &str, content: Content) -> Line {
    let mut head = Message::default();
    head.uint(1, id);
    head.data(2, name.as_bytes());
    head.uint(3, 1_000_000);
    Line { head, content }
}

fn write_plane(out: &mut impl Write, plane: &Plane, steps: u64) -> io::Result<u64> {
    let mut line_headers = Vec::new();
    let mut plane_len = plane.head.bytes.len() as u64;
    for line in &plane.lines {
        let mut events_len = Counter(0);
        write_events(&mut events_len, line.content, steps)?;
        let line_len = line.head.bytes.len() as u64 + events_len.0;
        let mut header = Message::default();
        header.data_header(3, line_len);
        plane_len += header.bytes.len() as u64 + line_len;
        line_headers.push(header);
    }

    let mut header = Message::default();
    header.data_header(1, plane_len);
    out.write_all(&header.bytes)?;
    out.write_all(&plane.head.bytes)?;
    for (line, line_header) in plane.lines.iter().zip(line_headers) {
        out.write_all(&line_header.bytes)?;
        out.write_all(&line.head.bytes)?;
        write_events(out, line.content, steps)?;
    }
    Ok(header.bytes.len() as u64 + plane_len)
}

/// Takes bytes for their number.
struct Counter(u64);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const CHUNK_BYTES: usize = 1 << 16;

fn write_events(out: &mut impl Write, content: Content, steps: u64) -> io::Result<()> {
    let mut chunk = Chunk { bytes: Vec::with_capacity(2 * CHUNK_BYTES) };
    for step in 0..steps {
        let start_ps = step * STEP_PS;
        match content {
            Content::Driver => {
                driver(&mut chunk, step, start_ps);
                launch_each(&mut chunk, step, start_ps, 0);
            }
            Content::GraphDriver => {
                driver(&mut chunk, step, start_ps);
                let correlation = [(CORRELATION, UINT, step + 1)];
                chunk.event(
                    GRAPH_LAUNCH,
                    start_ps + 7210 * PS_PER_US,
                    20 * PS_PER_US,
                    &correlation,
                );
            }
            Content::Launches { gpu } => launch_each(&mut chunk, step, start_ps, gpu),
            Content::Stream { gpu, nth } => {
                let dur_ps = KERNELS_PS / KERNELS_PER_GPU;
                for kernel in (nth..KERNELS_PER_GPU).step_by(STREAMS_PER_GPU as usize) {
                    let at_ps = start_ps + KERNELS_AT_PS + kernel * dur_ps;
                    let kind = (kernel / STREAMS_PER_GPU + nth) % N_KINDS;
                    let stats = [
                        (CORRELATION, UINT, correlation(step, gpu, kernel)),
                        (TF_OP, REF, FIRST_TF_OP + kind),
                        (KERNEL_DETAILS, REF, FIRST_DETAILS + kind % N_DETAILS),
                    ];
                    chunk.event(FIRST_KERNEL + kind, at_ps, dur_ps, &stats);
                }
            }
            Content::OnlyStream => {
                let dur_ps = KERNELS_PS / ONE_LINE_KERNELS;
                for kernel in 0..ONE_LINE_KERNELS {
                    let at_ps = start_ps + KERNELS_AT_PS + kernel * dur_ps;
                    let kind = kernel % N_KINDS;
                    let stats = [
                        (CORRELATION, UINT, step + 1),
                        (GRAPH, UINT, 7),
                        (KERNEL_DETAILS, REF, FIRST_DETAILS + kind % N_DETAILS),
                    ];
                    chunk.event(FIRST_KERNEL + kind, at_ps, dur_ps, &stats);
                    if chunk.bytes.len() >= CHUNK_BYTES {
                        chunk.pour(out)?;
                    }
                }
            }
            Content::EagerOps => eager_ops(&mut chunk, step, start_ps),
        }
        if chunk.bytes.len() >= CHUNK_BYTES {
            chunk.pour(out)?;
        }
    }
    chunk.pour(out)
}

fn correlation(step: u64, gpu: u64, kernel: u64) -> u64 {
    1 + (step * N_GPUS + gpu) * KERNELS_PER_GPU + kernel
}

fn driver(chunk: &mut Chunk, step: u64, start_ps: u64) {
    let stats = [(STEP_NUM, INT, step), (ROOT, INT, 1)];
    chunk.event(TRAIN, start_ps, 9900 * PS_PER_US, &stats);
    chunk.event(GET_NEXT, start_ps + 100 * PS_PER_US, 7000 * PS_PER_US, &[]);
    chunk.event(FUNCTION_RUN, start_ps + 7200 * PS_PER_US, 2650 * PS_PER_US, &[]);
}

fn launch_each(chunk: &mut Chunk, step: u64, start_ps: u64, gpu: u64) {
    for kernel in 0..KERNELS_PER_GPU {
        let at_ps = start_ps + (7210 + 20 * kernel) * PS_PER_US;
        let stats = [(CORRELATION, UINT, correlation(step, gpu, kernel)), (DEVICE, INT, gpu)];
        chunk.event(LAUNCH, at_ps, 15 * PS_PER_US, &stats);
    }
}

fn eager_ops(chunk: &mut Chunk, step: u64, start_ps: u64) {
    let stats = [(STEP_NUM, INT, step), (ROOT, INT, 1)];
    chunk.event(TRAIN, start_ps, 9900 * PS_PER_US, &stats);
    for op in 0..OPS_PER_STEP {
        let at_ps = start_ps + (100 + 190 * op) * PS_PER_US;
        let kind = (op + step) % N_KINDS;
        let stats = [(EAGER_OP, REF, FIRST_OP_TYPE + kind), (IS_FUNC, INT, 0)];
        chunk.event(EAGER_EXECUTE, at_ps, 170 * PS_PER_US, &stats);
        let inside = |us: u64| (at_ps + us * PS_PER_US, (170 - 2 * us) * PS_PER_US);
        let (local_ps, local_dur_ps) = inside(5);
        chunk.event(FIRST_LOCAL_EXECUTE + kind, local_ps, local_dur_ps, &[]);
        let (kernel_ps, kernel_dur_ps) = inside(10);
        chunk.event(EAGER_KERNEL_EXECUTE, kernel_ps, kernel_dur_ps, &[]);
        let (run_ps, run_dur_ps) = inside(15);
        chunk.event(KERNEL_RUN, run_ps, run_dur_ps, &[]);
    }
}

// Tags of the value fields of a stat, all varints.
const UINT: u8 = 3 << 3;
const INT: u8 = 4 << 3;
const REF: u8 = 7 << 3;

/// Encoded events on their way out.
struct Chunk {
    bytes: Vec<u8>,
}

impl Chunk {
    /// Appends an event. Ids are below 128 and an event below 128 bytes, so lengths are one byte.
    fn event(&mut self, kind: u64, start_ps: u64, dur_ps: u64, stats: &[(u64, u8, u64)]) {
        const LONGEST: usize = 128;
        let mut buffer = [0; LONGEST];
        let mut at = 0;
        let mut put = |byte: u8| {
            buffer[at] = byte;
            at += 1;
        };
        put(4 << 3 | 2);
        put(0);
        put(1 << 3);
        put(kind as u8);
        put(2 << 3);
        put_varint(&mut put, start_ps);
        put(3 << 3);
        put_varint(&mut put, dur_ps);
        for &(key, tag, value) in stats {
            put(4 << 3 | 2);
            put(3 + varint_len(value));
            put(1 << 3);
            put(key as u8);
            put(tag);
            put_varint(&mut put, value);
        }
        buffer[1] = (at - 2) as u8;
        self.bytes.extend_from_slice(&buffer[..at]);
    }

    fn pour(&mut self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&self.bytes)?;
        self.bytes.clear();
        Ok(())
    }
}

fn put_varint(put: &mut impl FnMut(u8), mut value: u64) {
    while value >= 0x80 {
        put(value as u8 | 0x80);
        value >>= 7;
    }
    put(value as u8);
}

fn varint_len(value: u64) -> u8 {
    let bits = 64 - (value | 1).leading_zeros();
    bits.div_ceil(7) as u8
}
