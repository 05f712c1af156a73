use std::collections::BTreeMap;

use capture::live::{Gpu, Hardware, Memory, Series, Snapshot, State, Steps};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;
use session::report::Share;
use trace::Dur;

use super::{View, draw, text_of};
use crate::output::Colour;
use crate::top::breakdown::{Breakdown, Parts};

fn series(now: f64) -> Series {
    let mut cells = vec![None; 200];
    cells.extend(vec![Some(now); 100]);
    Series { now: Some(now), cells }
}

fn gpu() -> Gpu {
    Gpu {
        name: "NVIDIA T4".to_owned(),
        memory_bytes: Some(16e9),
        max_clock_mhz: Some(1590.0),
        power_limit_w: Some(70.0),
        busy: series(0.93),
        memory: series(11.2e9),
        clock: series(954.0),
        power: series(70.0),
        temperature: series(77.0),
        throttled: Some(vec!["power limit"]),
    }
}

fn snapshot(n_gpus: usize) -> Snapshot {
    Snapshot {
        folder: "/runs/7".into(),
        unix_ns: 0,
        name: "train.py".to_owned(),
        command: vec!["python".to_owned(), "train.py".to_owned()],
        host: None,
        elapsed_ns: Some(761_000_000_000),
        state: State::Captured,
        reason: "12 steps".to_owned(),
        frameworks: BTreeMap::from([("jax".to_owned(), "0.10.2".to_owned())]),
        python: Some("3.12.1".to_owned()),
        pid: Some(4712),
        n_stepping: 1,
        steps: Some(Steps {
            count: 23_456,
            kind: "function".to_owned(),
            name: "train_step".to_owned(),
            rate_now: Some(31.24),
            rate_run: Some(30.9),
            median_ns: Some(31_000_000),
            p95_ns: Some(38_200_000),
            statistics_over: 100,
            examples_per_step: Some(64),
            examples_now: Some(1998.0),
            silent_ns: None,
            slowest_ns: series(44.1e6).cells,
        }),
        saved_unix_ns: Some(1),
        hardware: Some(Hardware {
            cores: Some(2.0),
            cpu_process: series(1.94),
            cpu_all: series(0.97),
            memory: Memory { process: series(1.21e9), of_bytes: Some(7.8e9), is_limit: false },
            disk_read: series(12.3e6),
            disk_write: Series::default(),
            network_in: series(0.0),
            network_out: series(0.0),
            gpus: vec![gpu(); n_gpus],
            ..Hardware::default()
        }),
        damaged_lines: 0,
    }
}

fn parts() -> Breakdown {
    let share = |category, share| Share { category, per_step: Dur(1), share };
    let shares = vec![share("input", 0.75), share("compute", 0.25)];
    Breakdown::Read(Parts { shares, step: Dur(31_000_000_000), n_steps: 12 })
}

fn screen(size: (u16, u16), view: &View<'_>) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
    terminal.draw(|frame| draw(frame, view)).unwrap();
    text_of(terminal.backend().buffer())
}

/// The line that begins so.
fn line<'a>(lines: &'a [String], begin: &str) -> &'a str {
    let found = lines.iter().find(|it| it.starts_with(begin));
    found.unwrap_or_else(|| panic!("no line begins with {begin:?}:\n{}", lines.join("\n")))
}

#[test]
fn a_small_terminal_shows_what_matters() {
    let (snapshot, parts) = (snapshot(2), parts());
    let lines = screen((80, 24), &View::plain(&snapshot, &parts));
    assert_eq!(lines.len(), 24);
    assert!(lines[0].starts_with(" train.py · JAX 0.10.2 · Python 3.12.1 · pid 4712"));
    assert!(lines[0].ends_with(" 12:41"), "{}", lines[0]);
    assert_eq!(lines[1], " captured  12 steps");
    assert_eq!(
        line(&lines, " steps/s"),
        " steps/s        31.2 now            30.9 over the run · 23,456 steps"
    );
    assert!(line(&lines, " examples/s").contains("1,998 now"));
    assert_eq!(
        line(&lines, " step time"),
        " step time      31.0 ms median      38.2 ms p95 · last 100 of train_step"
    );
    line(&lines, " where 31 ms go, of 12 captured steps");
    // Three quarters of 78 cells, and a pattern beside each name.
    assert_eq!(line(&lines, " █████").matches('█').count(), 59);
    assert_eq!(line(&lines, " █ input"), " █ input 75%   ▒ compute 25%");
    assert!(line(&lines, " CPU").starts_with(" CPU            1.94 of 2 cores     "));
    assert!(line(&lines, " CPU").ends_with('▇'));
    assert!(line(&lines, " memory").contains("1.21 of 7.80 GB"));
    let gpu = line(&lines, " GPU 0");
    assert!(gpu.contains("93 % busy"), "{gpu}");
    assert!(gpu.ends_with("▇▇▇  power limit · 11.2 GB · 954 MHz"), "{gpu}");
    assert_eq!(line(&lines, " q quit"), lines[23]);
}

#[test]
fn a_large_terminal_shows_all_of_a_gpu() {
    let (snapshot, parts) = (snapshot(2), parts());
    let lines = screen((200, 50), &View::plain(&snapshot, &parts));
    assert_eq!(lines.len(), 50);
    for begin in [" disk write", " network out", " GPU 1", "   power", "   clock"] {
        line(&lines, begin);
    }
    assert!(line(&lines, "   clock").contains("954 of 1590 MHz"));
    assert_eq!(lines.iter().filter(|it| it.contains("throttled: power limit · 77 °C")).count(), 2);
    assert!(lines.iter().all(|it| it.chars().count() <= 200));
    let marks = line(&lines, " CPU").chars().filter(|it| "▇█".contains(*it)).count();
    assert_eq!(marks, 100, "a hundred seconds are known");
}

#[test]
fn the_unknown_is_not_zero() {
    let mut snapshot = snapshot(0);
    let parts = Breakdown::None;
    let lines = screen((80, 24), &View::plain(&snapshot, &parts));
    assert_eq!(line(&lines, " disk write"), " disk write        – not measured");
    assert!(line(&lines, " network in").contains("0 B/s"));
    assert!(line(&lines, " network in").ends_with('▁'), "known, and nothing");
    assert!(!lines.iter().any(|it| it.starts_with(" GPU")));
    if let Some(hardware) = &mut snapshot.hardware {
        hardware.missing = vec![("NVIDIA GPUs".to_owned(), "the library is missing ".repeat(5))];
    }
    let with_reason = screen((80, 24), &View::plain(&snapshot, &parts));
    let gpu = line(&with_reason, " GPU         none seen: the library is missing");
    assert!(gpu.ends_with('…') && gpu.chars().count() == 80, "{gpu}");
    line(&lines, " once the steps are captured");
    snapshot.hardware = None;
    snapshot.steps = None;
    snapshot.state = State::Searching;
    let lines = screen((80, 24), &View::plain(&snapshot, &parts));
    line(&lines, " searching for steps");
    assert_eq!(line(&lines, " machine"), " machine     no hardware samples");
    assert_eq!(line(&lines, " steps"), " steps       none seen yet");
    assert!(!lines[1..].concat().contains('0'), "{lines:?}");
}

#[test]
fn steps_that_stop_are_said() {
    let mut snapshot = snapshot(0);
    if let Some(steps) = &mut snapshot.steps {
        steps.silent_ns = Some(12_000_000_000);
    }
    snapshot.reason = "a reason that is much too long for a line ".repeat(5);
    let lines = screen((80, 24), &View::plain(&snapshot, &parts()));
    assert!(lines[1].ends_with("…  no step for 12 s"), "{}", lines[1]);
    assert!(lines[1].chars().count() <= 80);
}

#[test]
fn every_size_is_drawn_and_too_small_ones_say_so() {
    let parts = parts();
    for n_gpus in [0, 1, 8, 64] {
        let snapshot = snapshot(n_gpus);
        for (width, height) in [(1, 1), (20, 5), (59, 30), (60, 12), (61, 13), (80, 24), (300, 100)]
        {
            for help in [false, true] {
                let view = View { help, ..View::plain(&snapshot, &parts) };
                let lines = screen((width, height), &view);
                let is_small = width < 60 || height < 12;
                assert_eq!(!is_small, lines.concat().contains(" q quit "), "{width}×{height}");
            }
        }
    }
    let snapshot = snapshot(8);
    let lines = screen((40, 10), &View::plain(&snapshot, &parts));
    assert!(lines.join(" ").starts_with("strobe top needs 60 columns and 12 rows"), "{lines:?}");
    let lines = screen((60, 12), &View::plain(&snapshot, &parts));
    for begin in [" captured", " steps/s", " step time", " CPU", " memory", " █████"] {
        line(&lines, begin);
    }
}

#[test]
fn gpus_that_have_no_room_are_counted() {
    let parts = parts();
    for (n_gpus, size) in [(8, (60, 12)), (8, (80, 18)), (8, (80, 24)), (64, (80, 24))] {
        let lines = screen(size, &View::plain(&snapshot(n_gpus), &parts));
        let is_gpu = |it: &&String| it.starts_with(" GPU ") && it.contains("% busy");
        let shown = lines.iter().filter(is_gpu).count();
        let more = format!(" GPU         {} more: a higher terminal", n_gpus - shown);
        let is_said = lines.iter().any(|it| it.starts_with(&more));
        assert_eq!(is_said, shown < n_gpus, "{shown} of {n_gpus}:\n{}", lines.join("\n"));
        assert!(size.1 < 24 || shown > 7, "{}", lines.join("\n"));
    }
}

#[test]
fn colours_are_those_of_the_categories_and_none_without() {
    let (snapshot, parts) = (snapshot(0), parts());
    let colours = |colour| {
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        let view = View { colour, ..View::plain(&snapshot, &parts) };
        terminal.draw(|frame| draw(frame, &view)).unwrap();
        let mut seen: Vec<Color> =
            terminal.backend().buffer().content().iter().map(|it| it.fg).collect();
        seen.dedup();
        seen
    };
    assert_eq!(colours(Colour::None), [Color::Reset]);
    assert!(colours(Colour::True).contains(&Color::Rgb(0xFF, 0xB5, 0x47)), "input");
    assert!(colours(Colour::Basic).contains(&Color::Indexed(3)), "input");
}

#[test]
fn pausing_and_help_are_seen() {
    let (snapshot, parts) = (snapshot(0), parts());
    let view = View { is_paused: true, ..View::plain(&snapshot, &parts) };
    assert!(screen((80, 24), &view)[23].ends_with("paused: p resumes"));
    let view = View { help: true, ..View::plain(&snapshot, &parts) };
    let lines = screen((80, 24), &view);
    line(&lines, " q, Esc");
    assert_eq!(line(&lines, " run"), " run         /runs/7");
}
