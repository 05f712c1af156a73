//! What was sampled beside the run, as rules ask for it: by exact names, during the steps that
//! count. What the names stand for is said in `docs/run-folder.md`.

use std::cmp::Ordering;

use analyses::Tables;
use analyses::hardware::{Hardware, during, samples};
use analyses::step::Counted;
use trace::{Counter, Fact, FactValue, Trace, TrackKind};

use crate::Evidence;
use crate::facts::percent;
use crate::memory_pressure::size;

/// Why a rule about the machine cannot look.
pub const NO_SAMPLES: &str = "no samples of the machine were taken; `strobe run` takes them";

pub struct Samples<'t> {
    tables: &'t Tables,
    trace: &'t Trace,
    counted: Counted,
}

impl<'t> Samples<'t> {
    /// `None` where no steps count.
    pub fn of(tables: &'t Tables) -> Option<Samples<'t>> {
        Some(Samples { tables, trace: tables.trace(), counted: Counted::of(tables)? })
    }

    /// All that was sampled, also outside of the steps.
    pub fn all(&self, counter: &str) -> &'t [Counter] {
        samples(self.trace, &self.counted.host, counter)
    }

    /// During the steps; for steps between two samples, the one that covers them.
    pub fn during_steps(&self, counter: &str) -> &'t [Counter] {
        during(self.all(counter), counter, self.counted.window).1
    }

    pub fn mean(&self, counter: &str) -> Option<f64> {
        let values = self.during_steps(counter);
        let sum: f64 = values.iter().map(|it| it.value).sum();
        (!values.is_empty()).then(|| sum / values.len() as f64)
    }

    /// Of the time in which the process waited for something; where it is in no control group of
    /// its own, in which anything on the machine did.
    pub fn pressure(&self, of: &str) -> Option<f64> {
        let own = self.mean(&format!("pressure/own/{of}"));
        own.or_else(|| self.mean(&format!("pressure/{of}")))
    }

    /// A number that was said of the host.
    pub fn fact(&self, key: &str) -> Option<f64> {
        let is_it = |it: &trace::TrackId| self.trace.track_name(*it) == self.counted.host;
        let host = self.trace.tracks_of(TrackKind::Host).find(is_it)?;
        match self.trace.fact(host, key)? {
            FactValue::Int(it) => Some(*it as f64),
            FactValue::Float(it) => Some(*it),
            FactValue::Text(_) => None,
        }
    }

    /// A sentence, and the rows of all steps together of these counters.
    pub fn evidence(&self, text: impl Into<String>, counters: &[&str]) -> Evidence {
        let rows = self.tables.get::<Hardware>();
        let is_one = |it: &Hardware| {
            it.step.is_none() && *it.host == *self.counted.host && counters.contains(&&*it.counter)
        };
        let rows = rows.iter().enumerate().filter(|it| is_one(it.1)).map(|it| it.0).collect();
        Evidence::text(text).rows("hardware", rows)
    }

    /// Where files were read from, and by which file system: most files first.
    pub fn read_from(&self) -> Vec<(&'t str, &'t str)> {
        let mount = |it: &'t Fact| match (it.key.strip_prefix("files on ")?, &it.value) {
            (at, FactValue::Text(file_system)) => Some((at, file_system.as_str())),
            _ => None,
        };
        let is_it = |it: &&Fact| self.trace.track_name(it.track) == self.counted.host;
        self.trace.facts.iter().filter(is_it).filter_map(mount).collect()
    }

    /// A network between the program and what it reads.
    pub fn read_from_afar(&self) -> Option<(&'t str, &'t str)> {
        self.read_from().into_iter().find(|it| is_afar(it.1))
    }

    /// How GPUs that count their own work were used; absent where none does.
    pub fn of_gpus(&self) -> Option<Evidence> {
        let busiest = |it: &usize| self.mean(&format!("gpu {it}/sm_busy"));
        let gpu = (0..MOST_GPUS).filter(|it| busiest(it).is_some());
        let gpu =
            gpu.max_by(|a, b| busiest(a).partial_cmp(&busiest(b)).unwrap_or(Ordering::Equal))?;
        let said = [
            ("sm_busy", "multiprocessors busy ", ""),
            ("sm_occupancy", "", " of the warps resident"),
            ("tensor_busy", "tensor cores busy ", ""),
            ("memory_bandwidth", "", " of the memory bandwidth used"),
        ];
        let names = said.map(|it| format!("gpu {gpu}/{}", it.0));
        let parts: Vec<String> = names
            .iter()
            .zip(said)
            .filter_map(|(name, (_, before, behind))| {
                Some(format!("{before}{}{behind}", percent(self.mean(name)?)))
            })
            .collect();
        let text = format!("Hardware counters of GPU {gpu}: {}", parts.join(", "));
        Some(self.evidence(text, &names.each_ref().map(String::as_str)))
    }

    /// How storage was used and waited for; absent where it was not sampled.
    pub fn of_storage(&self) -> Option<Evidence> {
        let disks = self.mean("disk/read")?;
        let mut text = format!("All disks together delivered {}/s", size(disks as i64));
        if let Some(own) = self.mean("process/read") {
            text += &format!(", {}/s of it to this process", size(own as i64));
        }
        if let Some(waited) = self.pressure("io") {
            text += &format!("; something waited for storage {} of the time", percent(waited));
        }
        let places: Vec<String> =
            self.read_from().iter().take(2).map(|(at, kind)| format!("{at} ({kind})")).collect();
        if !places.is_empty() {
            text += &format!("; the files are on {}", places.join(" and "));
        }
        Some(self.evidence(text, &["disk/read", "process/read", "pressure/io", "pressure/own/io"]))
    }

    /// How the cores were used, and by whom; absent where it was not sampled.
    pub fn of_cores(&self) -> Option<Evidence> {
        let (all, cores) = (self.mean("cpu/all")?, self.fact("cpu_count")?);
        let mut text = format!("{:.1} of {cores} cores were busy", all * cores);
        if let Some(own) = self.mean("cpu/process") {
            text += &format!(", {own:.1} of them with this process and its children");
        }
        Some(self.evidence(text, &["cpu/all", "cpu/process"]))
    }
}

/// A machine has at most so many.
/// Source: choice, a bound on the work.
const MOST_GPUS: usize = 16;

/// File systems that reach over a network, or may: those in user space mostly stand for a bucket.
fn is_afar(file_system: &str) -> bool {
    const AFAR: [&str; 14] = [
        "9p",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "glusterfs",
        "gpfs",
        "lustre",
        "nfs",
        "nfs4",
        "orangefs",
        "smb3",
        "virtiofs",
        "wekafs",
    ];
    AFAR.contains(&file_system) || file_system == "fuse" || file_system.starts_with("fuse.")
}

#[cfg(test)]
mod tests {
    use super::Samples;
    use crate::testing::Beside;

    #[test]
    fn storage_and_cores_are_said_as_far_as_they_were_sampled() {
        let beside = Beside::cpu()
            .counter("disk/read", &[120e6; 8])
            .counter("process/read", &[100e6; 8])
            .counter("pressure/io", &[0.4; 8])
            .counter("cpu/all", &[0.75; 8]);
        let tables = beside.tables();
        let samples = Samples::of(&tables).unwrap();
        let storage = samples.of_storage().unwrap();
        assert_eq!(
            storage.text,
            "All disks together delivered 120 MB/s, 100 MB/s of it to this process; something waited \
             for storage 40% of the time"
        );
        assert_eq!((storage.table, storage.rows), (Some("hardware"), vec![0, 1, 2]));
        let cores = samples.of_cores().unwrap();
        assert_eq!(cores.text, "1.5 of 2 cores were busy");
        // The control group's own word comes before the machine's.
        let own = beside.counter("pressure/own/io", &[0.1; 8]).tables();
        assert_eq!(Samples::of(&own).unwrap().pressure("io").map(|it| it.round()), Some(0.0));
    }

    #[test]
    fn files_are_said_to_lie_where_they_do() {
        let beside = Beside::cpu().counter("disk/read", &[0.0; 8]).said("files on /data", "nfs4");
        let tables = beside.said("files on /", "overlay").tables();
        let samples = Samples::of(&tables).unwrap();
        let text = samples.of_storage().unwrap().text;
        assert!(text.ends_with("the files are on /data (nfs4) and / (overlay)"), "{text}");
        assert_eq!(samples.read_from_afar(), Some(("/data", "nfs4")));
        let near = Beside::cpu().said("files on /", "ext4").tables();
        assert_eq!(Samples::of(&near).unwrap().read_from_afar(), None);
        let bucket = Beside::cpu().said("files on /b", "fuse.gcsfuse").tables();
        assert!(Samples::of(&bucket).unwrap().read_from_afar().is_some());
    }

    #[test]
    fn the_busiest_gpu_says_what_it_counts() {
        let tables = Beside::gpu()
            .counter("gpu 0/sm_busy", &[0.2; 8])
            .counter("gpu 1/sm_busy", &[0.9; 8])
            .counter("gpu 1/sm_occupancy", &[0.4; 8])
            .counter("gpu 1/tensor_busy", &[0.0; 8])
            .tables();
        let found = Samples::of(&tables).unwrap().of_gpus().unwrap();
        assert_eq!(
            found.text,
            "Hardware counters of GPU 1: multiprocessors busy 90%, 40% of the warps resident, tensor \
             cores busy 0.0%"
        );
        assert_eq!((found.table, found.rows.len()), (Some("hardware"), 3));
    }

    #[test]
    fn what_was_not_sampled_is_not_said() {
        let tables = Beside::cpu().tables();
        let samples = Samples::of(&tables).unwrap();
        assert_eq!((samples.of_gpus(), samples.read_from_afar()), (None, None));
        assert_eq!((samples.of_storage(), samples.of_cores()), (None, None));
        assert_eq!(samples.pressure("io"), None);
    }
}
