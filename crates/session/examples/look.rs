#![allow(clippy::print_stdout)]
use analyses::{step::Step, step_time::{CATEGORIES, StepTime}};
fn main() {
    for path in std::env::args().skip(1) {
        let s = match session::Session::open(std::path::Path::new(&path)) { Ok(s)=>s, Err(e)=>{println!("{path}: {e}"); continue} };
        let steps = s.tables().get::<Step>();
        let mut d: Vec<i64> = steps.iter().filter(|it| it.counts()).map(|it| it.dur_ps).collect();
        println!("{path} events {} steps {} counted {} warm {} by {:?} {:?} median {:.3} ms", s.trace().events.len(), steps.len(), d.len(), steps.iter().filter(|i| i.warmup).count(), steps.first().map(|i| i.found_by), steps.first().map(|i| i.marker.clone()), analyses::step::median(&mut d).unwrap_or(0) as f64/1e9);
        println!("   {:?}", steps.iter().map(|i| (i.dur_ps as f64/1e6).round()/1e3).take(16).collect::<Vec<_>>());
        let t = s.tables().get::<StepTime>();
        let total: i64 = t.iter().filter(|i| i.counts).map(|i| i.dur_ps).sum();
        let mut l = String::new();
        for (n, f) in CATEGORIES { let v: i64 = t.iter().filter(|i| i.counts).map(f).sum(); if v != 0 { l += &format!(" {n} {:.4}", v as f64/total as f64) } }
        println!("   {l}   notes {:?}", s.trace().notes);
    }
}
