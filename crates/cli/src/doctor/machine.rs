//! Before a capture: is this machine fit for one.
//!
//! Reads `/proc`, `/sys` and `/dev` below a root that tests can set, and asks a Python which
//! frameworks it has. Nothing is changed and nothing of a framework is imported.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Check;

pub fn checks(root: &Path, python: Option<&Path>) -> Vec<Check> {
    let mut checks = vec![cores(root)];
    checks.extend(memory(root));
    checks.extend(ptrace(root));
    checks.extend(perf_events(root));
    checks.extend(nvidia(root));
    checks.push(other_profilers(root));
    checks.extend(frameworks(python));
    checks
}

fn read(root: &Path, path: &str) -> Option<String> {
    fs::read_to_string(root.join(path)).ok().map(|it| it.trim().to_owned())
}

/// Cores, and how much of them the container may use.
fn cores(root: &Path) -> Check {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let quota = read(root, "sys/fs/cgroup/cpu.max").and_then(|it| {
        let (quota, period) = it.split_once(' ')?;
        Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
    });
    match quota {
        Some(quota) if quota < cores as f64 => Check::weak(
            "cores",
            format!("{cores}, of which the container may use {quota:.1}"),
            format!(
                "give it more (docker run --cpus {cores}), or tell the framework: OMP_NUM_THREADS={0:.0} \
                 TF_NUM_INTRAOP_THREADS={0:.0}",
                quota.max(1.0)
            ),
        ),
        _ => Check::good("cores", cores.to_string()),
    }
}

/// Below this a framework alone may fill the container.
const LITTLE_MEMORY: u64 = 4 << 30;

fn memory(root: &Path) -> Option<Check> {
    let limit: u64 = read(root, "sys/fs/cgroup/memory.max")?.parse().ok()?;
    let seen = format!("the container may use {:.1} GB", limit as f64 / 1e9);
    Some(match limit < LITTLE_MEMORY {
        false => Check::good("memory", seen),
        true => Check::weak("memory", seen, "docker run --memory 16g, or a smaller --max-memory"),
    })
}

fn ptrace(root: &Path) -> Option<Check> {
    let level = read(root, "proc/sys/kernel/yama/ptrace_scope")?;
    let seen = format!("scope {level}");
    Some(match level.as_str() {
        "0" | "1" => Check::good("ptrace", seen),
        _ => Check::weak(
            "ptrace",
            seen,
            "strobe attach PID needs root, or: sudo sysctl kernel.yama.ptrace_scope=1",
        ),
    })
}

fn perf_events(root: &Path) -> Option<Check> {
    let level = read(root, "proc/sys/kernel/perf_event_paranoid")?;
    let seen = format!("paranoid {level}");
    Some(match level.parse::<i64>() {
        Ok(..=2) => Check::good("perf events", seen),
        _ => Check::weak("perf events", seen, "sudo sysctl kernel.perf_event_paranoid=2"),
    })
}

fn nvidia(root: &Path) -> Vec<Check> {
    let Some(version) = read(root, "proc/driver/nvidia/version") else {
        return vec![Check::good("NVIDIA driver", "none: only the CPU is captured")];
    };
    let version = version
        .split_whitespace()
        .find(|it| it.contains('.') && it.starts_with(|it: char| it.is_ascii_digit()))
        .unwrap_or("loaded")
        .to_owned();
    let mut checks = vec![Check::good("NVIDIA driver", version)];
    let restricted = read(root, "proc/driver/nvidia/params")
        .is_some_and(|it| it.lines().any(|it| it.replace(' ', "") == "RmProfilingAdminOnly:1"));
    checks.push(match restricted {
        false => Check::good("GPU counters", "open to all users"),
        true => Check::weak(
            "GPU counters",
            "only for root (ERR_NVGPUCTRPERM); timelines are not affected",
            "echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' | sudo tee \
             /etc/modprobe.d/nvidia-profiling.conf && sudo update-initramfs -u && sudo reboot; in \
             a container: docker run --cap-add=SYS_ADMIN",
        ),
    });
    checks.push(match cupti(root) {
        Some(path) => Check::good("CUPTI", path.display().to_string()),
        None => Check::bad(
            "CUPTI",
            "libcupti was not found: profiles would hold no kernels",
            "pip install nvidia-cuda-cupti-cu12, or export \
             LD_LIBRARY_PATH=/usr/local/cuda/extras/CUPTI/lib64:$LD_LIBRARY_PATH",
        ),
    });
    checks
}

/// Where CUDA's installers and wheels put the library that records kernels.
fn cupti(root: &Path) -> Option<PathBuf> {
    let said = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&said).collect();
    let below = |folder: &str| {
        let entries = fs::read_dir(root.join(folder)).into_iter().flatten();
        entries.filter_map(|it| Some(it.ok()?.path())).collect::<Vec<_>>()
    };
    let cudas = below("usr/local")
        .into_iter()
        .filter(|it| it.file_name().is_some_and(|it| it.to_string_lossy().starts_with("cuda")));
    folders.extend(cudas.flat_map(|it| [it.join("extras/CUPTI/lib64"), it.join("lib64")]));
    folders.extend(["usr/lib/x86_64-linux-gnu", "usr/lib64", "usr/lib"].map(|it| root.join(it)));
    if let Some(python) = find_python(None) {
        let packages = ask(&python, "import sysconfig; print(sysconfig.get_paths()['purelib'])");
        folders.extend(packages.map(|it| Path::new(&it).join("nvidia/cuda_cupti/lib")));
    }
    let holds = |folder: PathBuf| {
        let mut entries = fs::read_dir(folder).ok()?.filter_map(|it| Some(it.ok()?.path()));
        entries.find(|it| {
            it.file_name().is_some_and(|it| it.to_string_lossy().starts_with("libcupti.so"))
        })
    };
    folders.into_iter().find_map(holds)
}

/// Programs that hold the GPU's profiler for themselves.
fn other_profilers(root: &Path) -> Check {
    const NAMES: [&str; 6] = ["nsys", "ncu", "nvprof", "nv-hostengine", "dcgm-exporter", "rocprof"];
    let processes = fs::read_dir(root.join("proc")).into_iter().flatten();
    let mut found: Vec<String> = processes
        .filter_map(|it| fs::read_to_string(it.ok()?.path().join("comm")).ok())
        .map(|it| it.trim().to_owned())
        .filter(|it| NAMES.contains(&it.as_str()))
        .collect();
    found.sort();
    found.dedup();
    match found.is_empty() {
        true => Check::good("other profilers", "none running"),
        false => Check::weak(
            "other profilers",
            found.join(", "),
            "a GPU has one profiler at a time: stop them (for DCGM: dcgmi profile --pause)",
        ),
    }
}

fn find_python(said: Option<&Path>) -> Option<PathBuf> {
    if let Some(said) = said {
        return Some(said.to_owned());
    }
    let path = std::env::var_os("PATH")?;
    let on_path =
        |name: &str| std::env::split_paths(&path).map(|it| it.join(name)).find(|it| it.is_file());
    on_path("python").or_else(|| on_path("python3"))
}

/// What a Python prints. Isolated, so that nothing of the user's runs.
fn ask(python: &Path, program: &str) -> Option<String> {
    let done = Command::new(python)
        .args(["-I", "-c", program])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    done.status.success().then(|| String::from_utf8_lossy(&done.stdout).trim().to_owned())
}

/// Asks for versions without importing anything of them: that would take seconds.
const VERSIONS: &str = "
import sys
from importlib import metadata
print('python', sys.version.split()[0])
for name in ('tensorflow', 'tensorflow-cpu', 'keras', 'jax', 'jaxlib', 'torch'):
    try: print(name, metadata.version(name))
    except metadata.PackageNotFoundError: pass
";

fn frameworks(said: Option<&Path>) -> Vec<Check> {
    let Some(python) = find_python(said) else {
        return vec![Check::bad(
            "Python",
            "none on PATH",
            "strobe doctor --python /path/to/python",
        )];
    };
    let Some(answer) = ask(&python, VERSIONS) else {
        let mend = "strobe doctor --python /path/to/python";
        return vec![Check::bad("Python", format!("{} does not answer", python.display()), mend)];
    };
    let versions: Vec<(&str, &str)> = answer.lines().filter_map(|it| it.split_once(' ')).collect();
    judge(&versions, &python.display().to_string())
}

fn judge(versions: &[(&str, &str)], python: &str) -> Vec<Check> {
    let of = |name: &str| versions.iter().find(|it| it.0 == name).map(|it| it.1);
    let mut checks = Vec::new();
    let version = of("python").unwrap_or("?");
    let seen = format!("{version} ({python})");
    checks.push(match at_least(version, 3, 9) {
        true => Check::good("Python", seen),
        false => Check::bad("Python", seen, "strobe run needs Python 3.9 or later"),
    });
    if let Some(version) = of("tensorflow").or(of("tensorflow-cpu")) {
        checks.push(match at_least(version, 2, 4) {
            true => Check::good("TensorFlow", version),
            false => Check::bad(
                "TensorFlow",
                format!("{version} has no profiler that can be driven"),
                "pip install 'tensorflow>=2.15'",
            ),
        });
    }
    if let Some(version) = of("keras") {
        let seen = match at_least(version, 3, 0) {
            true => {
                format!("{version}; its own profiles have no step marks, steps are found by calls")
            }
            false => version.to_owned(),
        };
        checks.push(Check::good("Keras", seen));
    }
    if let Some(version) = of("jax") {
        let lib = of("jaxlib").unwrap_or("none");
        checks.push(match (at_least(version, 0, 4), lib) {
            (_, "none") => {
                Check::bad("JAX", format!("{version} without jaxlib"), "pip install -U jax")
            }
            (true, lib) => Check::good("JAX", format!("{version}, jaxlib {lib}")),
            (false, _) => Check::weak(
                "JAX",
                format!("{version}: its calls are not watched, windows open by time"),
                "pip install -U jax",
            ),
        });
    }
    if let Some(version) = of("torch") {
        checks.push(match at_least(version, 2, 0) {
            true => Check::good("PyTorch", version),
            false => Check::weak("PyTorch", version, "pip install 'torch>=2.0'"),
        });
    }
    if checks.len() == 1 {
        checks.push(Check::weak(
            "frameworks",
            "none in this Python",
            "activate the environment of the training, or strobe doctor --python /path/to/python",
        ));
    }
    checks
}

/// Whether `2.21.0` is at least a major and a minor version.
fn at_least(version: &str, major: u32, minor: u32) -> bool {
    let mut parts = version.split('.').map(|it| it.parse::<u32>().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (major, minor)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::super::{Check, State};
    use super::{cores, judge, memory, nvidia, other_profilers, perf_events, ptrace};

    /// A machine of files.
    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    fn check(found: &Check, state: State, mend: &str) {
        assert_eq!(found.state, state, "{}", found.seen);
        assert!(found.mend.contains(mend), "{}", found.mend);
    }

    #[test]
    fn limits_of_a_container() {
        let small = machine(&[
            ("sys/fs/cgroup/cpu.max", "50000 100000\n"),
            ("sys/fs/cgroup/memory.max", "1073741824\n"),
        ]);
        check(&cores(small.path()), State::Weak, "OMP_NUM_THREADS=1");
        check(&memory(small.path()).unwrap(), State::Weak, "--memory");
        let open = machine(&[
            ("sys/fs/cgroup/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/memory.max", "max\n"),
        ]);
        check(&cores(open.path()), State::Good, "");
        assert!(memory(open.path()).is_none());
    }

    #[test]
    fn permissions() {
        let closed = machine(&[
            ("proc/sys/kernel/yama/ptrace_scope", "3\n"),
            ("proc/sys/kernel/perf_event_paranoid", "4\n"),
        ]);
        check(&ptrace(closed.path()).unwrap(), State::Weak, "kernel.yama.ptrace_scope=1");
        check(&perf_events(closed.path()).unwrap(), State::Weak, "perf_event_paranoid=2");
        assert!(ptrace(Path::new("/nonexistent")).is_none());
    }

    #[test]
    fn a_gpu_needs_cupti_and_may_close_its_counters() {
        let version = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19\n";
        let files = [
            ("proc/driver/nvidia/version", version),
            ("proc/driver/nvidia/params", "ResmanDebugLevel: 1\nRmProfilingAdminOnly: 1\n"),
        ];
        let checks = nvidia(machine(&files).path());
        assert_eq!(checks[0].seen, "535.104.05");
        check(&checks[1], State::Weak, "NVreg_RestrictProfilingToAdminUsers=0");
        check(&checks[2], State::Bad, "nvidia-cuda-cupti");
        let open = [files[0], ("usr/local/cuda-12.4/extras/CUPTI/lib64/libcupti.so.12", "")];
        let checks = nvidia(machine(&open).path());
        assert_eq!([checks[1].state, checks[2].state], [State::Good, State::Good]);
    }

    #[test]
    fn other_profilers_are_named() {
        let busy = machine(&[("proc/12/comm", "nsys\n"), ("proc/13/comm", "python\n")]);
        check(&other_profilers(busy.path()), State::Weak, "one profiler at a time");
        check(&other_profilers(machine(&[]).path()), State::Good, "");
    }

    #[test]
    fn versions() {
        let states = |versions: &[(&str, &str)]| {
            let checks = judge(versions, "python");
            checks.iter().map(|it| (it.what, it.state)).collect::<Vec<_>>()
        };
        assert_eq!(
            states(&[("python", "3.12.1"), ("tensorflow-cpu", "2.21.0"), ("keras", "3.15.1")]),
            [("Python", State::Good), ("TensorFlow", State::Good), ("Keras", State::Good)]
        );
        assert_eq!(
            states(&[("python", "3.8.1"), ("jax", "0.3.2"), ("jaxlib", "0.3.2")]),
            [("Python", State::Bad), ("JAX", State::Weak)]
        );
        assert_eq!(
            states(&[("python", "3.12.1")]),
            [("Python", State::Good), ("frameworks", State::Weak)]
        );
    }
}
