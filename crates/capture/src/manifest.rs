//! `manifest.json`: what ran, where, with what, and what was decided.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, fs, io};

use serde_json::{Map, Value, json};

use crate::launch::Ended;
use crate::log::ProcessLog;
use crate::private;

/// Variables that change how fast a run is and hold no secrets; of all others only names are kept.
const KEPT: [&str; 18] = [
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "JAX_PLATFORMS",
    "KERAS_BACKEND",
    "MKL_NUM_THREADS",
    "NCCL_ALGO",
    "NCCL_DEBUG",
    "NCCL_PROTO",
    "NUMEXPR_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "PYTORCH_CUDA_ALLOC_CONF",
    "TF_ENABLE_ONEDNN_OPTS",
    "TF_FORCE_GPU_ALLOW_GROWTH",
    "TF_GPU_THREAD_MODE",
    "TF_NUM_INTEROP_THREADS",
    "XLA_FLAGS",
    "XLA_PYTHON_CLIENT_PREALLOCATE",
];

/// What is known when a run begins, and what is added when it ends.
#[derive(Debug, Clone)]
pub struct Manifest(Map<String, Value>);

impl Manifest {
    /// `kind` says who wrote it: `run` or `attach`.
    pub fn begin(kind: &str) -> Manifest {
        let mut it = Map::new();
        it.insert("schema".to_owned(), json!(1));
        it.insert("kind".to_owned(), json!(kind));
        it.insert("strobe".to_owned(), json!(env!("CARGO_PKG_VERSION")));
        it.insert("pid".to_owned(), json!(std::process::id()));
        it.insert("started_unix_ns".to_owned(), json!(now_ns()));
        it.insert("machine".to_owned(), machine());
        Manifest(it)
    }

    pub fn set(&mut self, key: &str, value: Value) {
        self.0.insert(key.to_owned(), value);
    }

    /// The command, where it runs, and the names of what surrounds it, without secrets.
    pub fn command(&mut self, command: &[String]) {
        self.set("command", json!(redact::command(command)));
        if let Ok(folder) = env::current_dir() {
            self.set("folder", json!(redact::secrets(&folder.display().to_string())));
        }
        let mut names: Vec<String> = env::vars_os()
            .map(|it| redact::secrets(&it.0.to_string_lossy()).into_owned())
            .collect();
        names.sort();
        let kept: BTreeMap<&str, String> = KEPT
            .iter()
            .filter_map(|&it| Some((it, redact::variable(&env::var(it).ok()?))))
            .collect();
        self.set("environment", json!({"names": names, "kept": kept}));
    }

    /// The end, and what the processes said.
    pub fn end(&mut self, ended: Option<Ended>, processes: &[ProcessLog]) {
        self.set("ended_unix_ns", json!(now_ns()));
        match ended {
            Some(Ended::Code(code)) => self.set("exit", json!({"code": code})),
            Some(Ended::Signal(signal)) => self.set("exit", json!({"signal": signal})),
            None => (),
        }
        let processes: Vec<Value> = processes
            .iter()
            .map(|it| {
                let said: Vec<Value> = it
                    .said
                    .iter()
                    .map(|it| {
                        let text = redact::secrets(&it.text);
                        json!({"unix_ns": it.unix_ns, "what": it.what, "text": text})
                    })
                    .collect();
                json!({
                    "pid": it.pid,
                    "script": it.script,
                    "python": it.python,
                    "frameworks": it.frameworks,
                    "step": it.step.as_ref().map(|it| json!({"kind": it.kind, "name": it.name})),
                    "steps": it.n_steps,
                    "said": said,
                })
            })
            .collect();
        self.set("processes", json!(processes));
    }
}

/// Writes it under its name only when it is whole.
pub fn write_manifest(run: &Path, manifest: &Manifest) -> io::Result<()> {
    let text = serde_json::to_string_pretty(&manifest.0).map_err(io::Error::other)?;
    let part = run.join("manifest.json.part");
    private::write_file(&part, (text + "\n").as_bytes())?;
    fs::rename(part, run.join("manifest.json"))
}

fn now_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

fn machine() -> Value {
    let read = |path: &str| fs::read_to_string(path).ok().map(|it| it.trim().to_owned());
    let field = |text: Option<String>, name: &str| {
        let line = text?.lines().find(|it| it.starts_with(name))?.to_owned();
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let memory = field(read("/proc/meminfo"), "MemTotal")
        .and_then(|it| it.split_whitespace().next()?.parse::<u64>().ok());
    json!({
        "host": read("/proc/sys/kernel/hostname"),
        "os": env::consts::OS,
        "arch": env::consts::ARCH,
        "kernel": read("/proc/sys/kernel/osrelease"),
        "cpu": field(read("/proc/cpuinfo"), "model name"),
        "cores": std::thread::available_parallelism().ok().map(usize::from),
        "memory_bytes": memory.map(|it| it * 1024),
    })
}

#[cfg(test)]
mod tests {
    use super::{Manifest, write_manifest};

    #[test]
    fn values_of_unknown_variables_are_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let mut manifest = Manifest::begin("run");
        manifest.command(&["python".to_owned(), "--token=abc".to_owned()]);
        manifest.end(None, &[]);
        write_manifest(folder.path(), &manifest).unwrap();
        let text = std::fs::read_to_string(folder.path().join("manifest.json")).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["schema"], 1);
        assert_eq!(value["command"][1], "--token=‹hidden›");
        // cargo sets it for every test; its value is a path.
        let names = value["environment"]["names"].as_array().unwrap();
        assert!(names.iter().any(|it| it == "CARGO_MANIFEST_DIR"));
        assert!(value["environment"]["kept"].get("CARGO_MANIFEST_DIR").is_none());
    }
}
