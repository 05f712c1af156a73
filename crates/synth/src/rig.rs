//! Makes a host with GPUs of what one step does, in the words of a given collector.
//!
//! ```text
//! rig.begin_step(at)          everything after is relative to it, in microseconds
//! rig.host(...)               an event of the driving thread, "python"
//! rig.launches_from(at)       launches follow each other from there, 4 us each
//! rig.kernel(...), rig.copy   a launch on the host and the work on a stream, one correlation id
//! rig.end_step(tiles)         what an analysis should say of it
//! ```

use crate::space::{LineId, Oddities, Plane, Space, Stats, Value, inline_text, text};
use crate::truth::{Direction, Ledger, Tiles};

pub(crate) const PS_PER_US: u64 = 1_000_000;
/// Profiles begin a while before their first step.
pub(crate) const FIRST_STEP_US: u64 = 5_000;
pub(crate) const PROFILE_START_UNIX_NS: u64 = 1_760_000_000_000_000_000;
const LAUNCH_US: u64 = 4;
// The lines of one file rarely share their origin; a reader has to add it.
pub(crate) const HOST_LINE_NS: i64 = 1_000_000;
pub(crate) const DEVICE_LINE_NS: i64 = 1_500_000;

/// Of 256 threads, four blocks fit on each of 108 multiprocessors at half occupancy: four waves.
pub(crate) const WHOLE_WAVES: u64 = 1728;

/// Whose collector wrote the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Nvidia,
    /// TensorFlow 2.2 on CUDA 10: other keys, other names, everything inline.
    Nvidia2020,
    /// JAX on ROCm.
    Amd,
}

/// A kernel and the op it works for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernel {
    pub(crate) name: &'static str,
    pub(crate) op: &'static str,
}

/// On tensor cores, in 16 bits: nothing is wrong with it.
pub(crate) const GEMM: Kernel = Kernel {
    name: "ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x4_nn",
    op: "model/dense/MatMul:MatMul",
};
/// In single precision, on ordinary units.
pub(crate) const SGEMM: Kernel =
    Kernel { name: "ampere_sgemm_128x64_nn", op: "model/dense/MatMul:MatMul" };
pub(crate) const SOFTMAX: Kernel = Kernel {
    name: "void softmax_warp_forward<float, float, float, 10, true>(float*, float const*, int)",
    op: "model/softmax/Softmax:Softmax",
};
pub(crate) const CONV: Kernel = Kernel {
    name: "sm80_xmma_fprop_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x16",
    op: "model/conv2d/Conv2D:Conv2D",
};
pub(crate) const RELU: Kernel = Kernel {
    name: "void Eigen::internal::EigenMetaKernel<Eigen::TensorEvaluator<relu>, long>",
    op: "model/relu/Relu:Relu",
};
pub(crate) const ADAM: Kernel = Kernel {
    name: "void tensorflow::functor::ApplyAdamKernel<float>(int, float*, float*, float*)",
    op: "Adam/Adam/update/ResourceApplyAdam:ResourceApplyAdam",
};
pub(crate) const ALL_REDUCE: Kernel = Kernel {
    name: "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    op: "Adam/NcclAllReduce:NcclAllReduce",
};

pub(crate) struct Rig {
    pub(crate) plane: Plane,
    pub(crate) gpus: Vec<Plane>,
    pub(crate) python: LineId,
    pub(crate) ledger: Ledger,
    dialect: Dialect,
    step_us: u64,
    launch_thread: LineId,
    launch_us: u64,
    correlation: u64,
    /// Blocks of each kernel. By default four whole waves on the device.
    pub(crate) grid: u64,
    /// Over how many layers of the model the kernels are spread, so that no op stands out.
    pub(crate) layers: u64,
    /// The host's clock zero, seen from the cluster's.
    pub(crate) began_us: u64,
    /// By how much the devices' clocks are behind the host's.
    pub(crate) behind_us: u64,
}

impl Rig {
    pub(crate) fn new(dialect: Dialect, n_gpus: usize) -> Rig {
        let mut plane = Plane::new(0, "/host:CPU");
        let python = plane.line(1001, "python", HOST_LINE_NS);
        let gpus = (0..n_gpus).map(|it| gpu_plane(dialect, it)).collect();
        Rig {
            plane,
            gpus,
            python,
            ledger: Ledger::default(),
            dialect,
            step_us: 0,
            launch_thread: python,
            launch_us: 0,
            correlation: 100,
            grid: WHOLE_WAVES,
            layers: 1,
            began_us: 0,
            behind_us: 0,
        }
    }

    pub(crate) fn stream(&mut self, gpu: usize, id: i64, uses: &str) -> LineId {
        self.gpus[gpu].line(id, format!("Stream #{id}({uses})"), DEVICE_LINE_NS)
    }

    /// `start_us` counts from the start of the cluster's first profile.
    pub(crate) fn begin_step(&mut self, start_us: u64) {
        self.step_us = start_us - self.began_us;
        self.launch_thread = self.python;
        self.launch_us = 0;
    }

    pub(crate) fn host(&mut self, name: &str, at_us: u64, dur_us: u64, stats: Stats<'_>) {
        self.host_on(self.python, name, at_us, dur_us, stats);
    }

    pub(crate) fn host_on(
        &mut self,
        line: LineId,
        name: &str,
        at_us: u64,
        dur_us: u64,
        stats: Stats<'_>,
    ) {
        let start_ps = (self.step_us + at_us) * PS_PER_US;
        self.plane.event(line, name, start_ps, dur_us * PS_PER_US, stats);
    }

    pub(crate) fn device(
        &mut self,
        gpu: usize,
        line: LineId,
        name: &str,
        at_us: u64,
        dur_us: u64,
        stats: Stats<'_>,
    ) {
        let start_ps = (self.step_us + at_us - self.behind_us) * PS_PER_US;
        self.gpus[gpu].event(line, name, start_ps, dur_us * PS_PER_US, stats);
    }

    pub(crate) fn launches_from(&mut self, at_us: u64) {
        self.launches_on(self.python, at_us);
    }

    pub(crate) fn launches_on(&mut self, thread: LineId, at_us: u64) {
        self.launch_thread = thread;
        self.launch_us = at_us;
    }

    /// The next driver call, and the id its work on the device will carry.
    pub(crate) fn launch(&mut self, call: &str, gpu: usize) -> u64 {
        self.correlation += 1;
        let stats = [
            ("correlation_id", Value::U64(self.correlation)),
            ("device_id", Value::I64(gpu as i64)),
        ];
        self.host_on(self.launch_thread, call, self.launch_us, LAUNCH_US, &stats);
        self.launch_us += LAUNCH_US;
        self.correlation
    }

    pub(crate) fn kernel(
        &mut self,
        gpu: usize,
        stream: LineId,
        kernel: Kernel,
        at_us: u64,
        dur_us: u64,
    ) {
        let call = match self.dialect {
            Dialect::Amd => "hipModuleLaunchKernel",
            Dialect::Nvidia | Dialect::Nvidia2020 => "cuLaunchKernel",
        };
        assert!(self.launch_us < at_us, "{} runs before it is launched", kernel.name);
        let correlation = ("correlation_id", Value::U64(self.launch(call, gpu)));
        let layer = format!("model/layer_{}/", self.correlation % self.layers);
        let op = match self.layers {
            1 => kernel.op.to_owned(),
            _ => kernel.op.replacen("model/", &layer, 1),
        };
        let stats = match self.dialect {
            Dialect::Nvidia => vec![
                correlation,
                ("context_id", text("$$1")),
                ("tf_op", text(op)),
                (
                    "kernel_details",
                    text(format!(
                        "regs:32 static_shared:0 dynamic_shared:8192 grid:{},1,1 block:256,1,1 occ_pct:50",
                        self.grid
                    )),
                ),
            ],
            Dialect::Nvidia2020 => vec![
                correlation,
                ("context_id", inline_text("$$5")),
                ("annotation", inline_text(kernel.op)),
                ("level 0", inline_text(kernel.op)),
                ("kernel_details", inline_text("regs:38 shm:0 grid:160,1,1 block:1024,1,1")),
            ],
            Dialect::Amd => vec![
                correlation,
                ("hlo_op", text(kernel.op)),
                ("hlo_module", text("jit_train_step")),
                ("program_id", Value::U64(11)),
                (
                    "kernel_details",
                    text(" grid:1728,1,1 block:256,1,1 private_mem:0 group_mem:8192 occ_pct:50"),
                ),
            ],
        };
        self.device(gpu, stream, kernel.name, at_us, dur_us, &stats);
        self.ledger.kernel(kernel.name, dur_us);
    }

    pub(crate) fn copy(
        &mut self,
        gpu: usize,
        stream: LineId,
        direction: Direction,
        n_bytes: u64,
        at_us: u64,
        dur_us: u64,
    ) {
        assert!(self.launch_us < at_us, "the copy to {at_us} us runs before it is launched");
        let (call, hip_call, name, old_name, src, dst) = match direction {
            Direction::HostToDevice => (
                "cuMemcpyHtoDAsync_v2",
                "hipMemcpyHtoDAsync",
                "MemcpyH2D",
                "MemcpyHToD",
                "pageable",
                "device",
            ),
            Direction::DeviceToHost => (
                "cuMemcpyDtoHAsync_v2",
                "hipMemcpyDtoHAsync",
                "MemcpyD2H",
                "MemcpyDToH",
                "device",
                "pinned",
            ),
            Direction::DeviceToDevice => (
                "cuMemcpyDtoDAsync_v2",
                "hipMemcpyDtoDAsync",
                "MemcpyD2D",
                "MemcpyDToD",
                "device",
                "device",
            ),
            Direction::PeerToPeer => (
                "cuMemcpyPeerAsync",
                "hipMemcpyPeerAsync",
                "MemcpyP2P",
                "MemcpyPToP",
                "device",
                "device",
            ),
        };
        let dest = if direction == Direction::PeerToPeer { gpu + 1 } else { gpu };
        let (call, name, details) = match self.dialect {
            Dialect::Nvidia => (
                call,
                name,
                text(format!("kind_src:{src} kind_dst:{dst} size:{n_bytes} dest:{dest} async:1")),
            ),
            Dialect::Nvidia2020 => {
                (call, old_name, inline_text(format!("size:{n_bytes} dest:{dest} async:0")))
            }
            Dialect::Amd => {
                (hip_call, name, text(format!("kind:Unknown size:{n_bytes} dest:{dest} async:1")))
            }
        };
        let correlation = self.launch(call, gpu);
        let stats = [("correlation_id", Value::U64(correlation)), ("memcpy_details", details)];
        self.device(gpu, stream, name, at_us, dur_us, &stats);
        self.ledger.copy(direction, n_bytes, dur_us);
    }

    /// A copy from pageable memory whose call returns when it is done.
    pub(crate) fn blocking_copy(
        &mut self,
        gpu: usize,
        stream: LineId,
        n_bytes: u64,
        call: (u64, u64),
        copy: (u64, u64),
    ) {
        self.correlation += 1;
        let correlation = ("correlation_id", Value::U64(self.correlation));
        let device = ("device_id", Value::I64(gpu as i64));
        self.host("cuMemcpyHtoD_v2", call.0, call.1, &[correlation, device]);
        let details =
            format!("kind_src:pageable kind_dst:device size:{n_bytes} dest:{gpu} async:0");
        let stats =
            [("correlation_id", Value::U64(self.correlation)), ("memcpy_details", text(details))];
        self.device(gpu, stream, "MemcpyH2D", copy.0, copy.1, &stats);
        self.ledger.copy(Direction::HostToDevice, n_bytes, copy.1);
    }

    pub(crate) fn memset(
        &mut self,
        gpu: usize,
        stream: LineId,
        n_bytes: u64,
        at_us: u64,
        dur_us: u64,
    ) {
        let correlation = self.launch("cuMemsetD32Async", gpu);
        let details = format!("kind:device size:{n_bytes} async:1");
        let stats =
            [("correlation_id", Value::U64(correlation)), ("Memset_details", text(details))];
        self.device(gpu, stream, "Memset", at_us, dur_us, &stats);
        self.ledger.memset();
    }

    /// The bytes of this host's file, in today's layout.
    pub(crate) fn file(self, hostname: &str) -> (Vec<u8>, Ledger) {
        let start_ns = PROFILE_START_UNIX_NS + self.began_us * 1000;
        let (mut space, ledger) = self.space();
        space.planes.push(task_environment(start_ns));
        space.hostnames.push(hostname.to_owned());
        (space.encode(Oddities::default()), ledger)
    }

    pub(crate) fn space(self) -> (Space, Ledger) {
        let mut planes = self.gpus;
        planes.push(self.plane);
        (Space { planes, ..Space::default() }, self.ledger)
    }

    /// Declares what the step just laid out amounts to, per GPU.
    pub(crate) fn end_step(&mut self, tiles: &[Tiles<'_>]) {
        self.ledger.step(tiles);
    }
}

/// The plane that says when the profile was taken.
pub(crate) fn task_environment(start_ns: u64) -> Plane {
    let mut plane = Plane::new(100, "Task Environment");
    plane.stat("profile_start_time", Value::U64(start_ns));
    plane.stat("profile_stop_time", Value::U64(start_ns + 1_000_000_000));
    plane
}

pub(crate) fn gpu_plane(dialect: Dialect, number: usize) -> Plane {
    let mut plane = Plane::new(1 + number as i64, format!("/device:GPU:{number}"));
    match dialect {
        Dialect::Nvidia => {
            plane.stat("device_vendor", inline_text("Nvidia"));
            plane.stat("gpu_device_name", inline_text("NVIDIA A100-SXM4-40GB"));
        }
        Dialect::Amd => {
            plane.stat("device_vendor", inline_text("AMD"));
            plane.stat("gpu_device_name", inline_text("AMD Instinct MI300X"));
        }
        Dialect::Nvidia2020 => (),
    }
    let (clock_khz, cores, bytes_per_s, memory_bytes, major, minor) = match dialect {
        Dialect::Nvidia => (1_410_000, 108, 1_555_000_000_000, 40 << 30, 8, 0),
        Dialect::Nvidia2020 => (1_530_000, 80, 898_048_000_000, 16 << 30, 7, 0),
        Dialect::Amd => (2_100_000, 304, 5_300_000_000_000, 192 << 30, 9, 4),
    };
    plane.stat("clock_rate", Value::U64(clock_khz));
    plane.stat("core_count", Value::U64(cores));
    plane.stat("memory_bandwidth", Value::U64(bytes_per_s));
    plane.stat("memory_size", Value::U64(memory_bytes));
    plane.stat("compute_cap_major", Value::U64(major));
    plane.stat("compute_cap_minor", Value::U64(minor));
    plane
}
