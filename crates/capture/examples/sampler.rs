//! What the sampler itself costs: its share of a core, for several rhythms and sizes of a tree.
//!
//! usage: sampler [SECONDS [REPEATS]]; `sampler watch PID` to see what it sees of a process;
//! `sampler record PID FOLDER` to keep its samples until it ends.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement, run by hand")]

#[cfg(target_os = "linux")]
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("watch") => linux::watch(args.get(1).and_then(|it| it.parse().ok()).unwrap_or(1)),
        Some("record") if args.len() == 3 => linux::record(args[1].parse().unwrap(), &args[2]),
        _ => {
            let number =
                |at: usize, or: u32| args.get(at).and_then(|it| it.parse().ok()).unwrap_or(or);
            linux::measure(number(0, 10), number(1, 5));
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("samples are taken on Linux only");
}

#[cfg(target_os = "linux")]
mod linux {
    use std::process::{Child, Command};
    use std::time::{Duration, Instant};

    use capture::hardware::Sampler;

    pub fn measure(seconds: u32, repeats: u32) {
        println!(
            "| processes | rhythm | share of a core, median of {repeats} | least to most | rows/s | of which with the tree |"
        );
        println!("|---|---|---|---|---|---|");
        for n in [1, 50] {
            let tree = Tree::start(n);
            for hertz in [1, 20, 100] {
                let every = Duration::from_secs(1) / hertz;
                let mut shares = Vec::new();
                let mut rows = [0.0; 2];
                for _ in 0..repeats {
                    let (share, n_rows) = once(&tree, every, Duration::from_secs(seconds.into()));
                    shares.push(share * 100.0);
                    rows = n_rows.map(|it| it / f64::from(seconds));
                }
                shares.sort_by(f64::total_cmp);
                let [least, middle, most] =
                    [0, shares.len() / 2, shares.len() - 1].map(|it| shares[it]);
                println!(
                    "| {n} | {hertz} Hz | {middle:.2} % | {least:.2} to {most:.2} % | {:.1} | {:.1} |",
                    rows[0], rows[1]
                );
            }
        }
    }

    /// Processor time over wall time, from the first row on, and the rows written: all, and those
    /// that tell of the processes.
    fn once(tree: &Tree, every: Duration, length: Duration) -> (f64, [f64; 2]) {
        let folder = tempfile::tempdir().unwrap();
        let sampler = Sampler::start(folder.path(), tree.0.id(), every).unwrap();
        while sampler.latest().is_none() {
            std::thread::sleep(Duration::from_millis(20));
        }
        let (began, before) = (Instant::now(), process_time());
        std::thread::sleep(length);
        let share = (process_time() - before).as_secs_f64() / began.elapsed().as_secs_f64();
        sampler.stop();
        let text = std::fs::read_to_string(folder.path().join("hardware.jsonl")).unwrap();
        let header: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        let columns = header["columns"].as_array().unwrap();
        let at = columns.iter().position(|it| it == "process/threads").unwrap();
        let tells = |it: &&str| it.trim_end_matches(']').split(',').nth(at + 1) != Some("null");
        let rows: Vec<&str> = text.lines().skip(1).collect();
        (share, [rows.len(), rows.iter().filter(|it| tells(it)).count()].map(|it| it as f64))
    }

    fn process_time() -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
    }

    /// A shell and the processes it started, which end with it.
    struct Tree(Child);

    impl Tree {
        fn start(n: u32) -> Tree {
            let script = format!(
                "for i in $(seq 2 {n}); do sleep 3600 & done; trap 'kill $(jobs -p)' TERM; sleep 3600 & wait"
            );
            let child = Command::new("bash").args(["-c", &script]).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(500));
            Tree(child)
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let id = self.0.id().to_string();
            let _ = Command::new("kill").args(["-TERM", &id]).status();
            let _ = self.0.wait();
        }
    }

    pub fn record(pid: u32, folder: &str) {
        let sampler = Sampler::start(folder.as_ref(), pid, capture::hardware::EVERY).unwrap();
        let ended = || sampler.latest().is_some_and(|it| it.get("process/count") == Some(0.0));
        while !ended() {
            std::thread::sleep(Duration::from_millis(100));
        }
        sampler.stop();
    }

    pub fn watch(pid: u32) {
        let folder = tempfile::tempdir().unwrap();
        let sampler = Sampler::start(folder.path(), pid, Duration::from_millis(50)).unwrap();
        for _ in 0..10 {
            std::thread::sleep(Duration::from_millis(500));
            let Some(sample) = sampler.latest() else { continue };
            println!("{}", sample.time_unix_ns);
            for (column, value) in sample.columns.iter().zip(&sample.values) {
                println!("  {column:24} {value:?}");
            }
        }
        let text = std::fs::read_to_string(folder.path().join("hardware.jsonl")).unwrap();
        println!("{}", text.lines().next().unwrap());
    }
}
