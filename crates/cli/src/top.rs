//! `strobe top`: the live view of a run, on a terminal or as lines for a log.

mod breakdown;
mod layout;
mod plain;
mod screen;
pub mod words;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use capture::live::{Live, Snapshot, State};
use clap::ValueEnum;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use self::breakdown::Reader;
use self::screen::View;
use crate::output::Output;

/// Watch a running training job
///
/// Shows how fast it steps, where the time goes once that is captured, and what the machine does.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A process, or the folder of a run [default: the newest running one]
    #[arg(value_name = "PID|PATH")]
    run: Option<PathBuf>,
    /// Print lines for a log instead of a screen, until the run ends
    #[arg(long)]
    plain: bool,
    /// How often to print a line
    #[arg(long, default_value_t = 5.0, value_name = "SECONDS", value_parser = crate::run::seconds)]
    interval: f64,
    /// Print how things stand now, and end
    #[arg(long)]
    once: bool,
    /// How to print; JSON is one object with --once, and a line of it each time otherwise
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// Four times a second: files are written twice.
const REFRESH: Duration = Duration::from_millis(250);
/// How soon the end of a run is noticed by who prints lines.
const LOOK_EVERY: Duration = Duration::from_millis(500);

pub fn run(args: &Args, out: &mut Output) -> anyhow::Result<ExitCode> {
    let mut live = Live::open(&find(args.run.as_ref())?)?;
    if args.once {
        let snapshot = live.snapshot();
        let mut reader = Reader::default();
        reader.follow(&snapshot);
        reader.wait();
        match args.format {
            Format::Json => out.json(&plain::as_json(&snapshot, reader.state()))?,
            Format::Text => plain::page(&View::plain(&snapshot, reader.state()), out)?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    if args.plain || args.format == Format::Json || !out.is_terminal {
        return print_lines(args, &mut live, out);
    }
    watch(live, out)
}

/// The folder of the run that is meant.
fn find(said: Option<&PathBuf>) -> anyhow::Result<PathBuf> {
    let Some(said) = said else { return newest(capture::going_on(), &capture::run_folders()) };
    let Some(pid) = said.to_str().and_then(|it| it.parse::<u32>().ok()) else {
        return Ok(said.clone());
    };
    if let Some(folder) = capture::run_of_process(pid) {
        return Ok(folder);
    }
    if !capture::exists(pid) {
        bail!("there is no process {pid}, and no run of such a one was kept");
    }
    bail!(
        "process {pid} was not started by `strobe run`, which the live view needs\n  hint: start \
         it by `strobe run -- CMD`, or look into it as it is: strobe attach {pid}"
    )
}

/// The newest run that goes on, or what to do where none does.
fn newest(going_on: Vec<PathBuf>, kept: &[PathBuf]) -> anyhow::Result<PathBuf> {
    going_on.into_iter().next().ok_or_else(|| {
        let newest = kept.first().map(|it| format!("\n  newest: strobe top {}", it.display()));
        anyhow!(
            "no run is active\n  hint: start one with `strobe run -- python train.py`; one that has \
             ended is shown by its folder{}",
            newest.unwrap_or_default()
        )
    })
}

fn print_lines(args: &Args, live: &mut Live, out: &mut Output) -> anyhow::Result<ExitCode> {
    use std::io::Write as _;
    let interval = Duration::from_secs_f64(args.interval);
    let mut reader = Reader::default();
    let mut due = Instant::now();
    loop {
        let snapshot = live.snapshot();
        let has_ended = snapshot.state == State::Ended;
        reader.follow(&snapshot);
        if has_ended {
            reader.wait();
        }
        if has_ended || Instant::now() >= due {
            match args.format {
                Format::Text => writeln!(out, "{}", plain::line(&snapshot))?,
                Format::Json => writeln!(out, "{}", plain::as_json(&snapshot, reader.state()))?,
            }
            out.flush()?;
            // A machine that slept does not make up for it.
            due = (due + interval).max(Instant::now());
        }
        if has_ended {
            return Ok(ExitCode::SUCCESS);
        }
        std::thread::sleep(due.saturating_duration_since(Instant::now()).min(LOOK_EVERY));
        live.look()?;
    }
}

/// The terminal as it was, whatever happens; a panic has its own way there.
struct Restore;

impl Drop for Restore {
    fn drop(&mut self) {
        // Twice would put what the panic said under the prompt.
        if !std::thread::panicking() {
            ratatui::restore();
        }
    }
}

/// A profile that cannot be read is said on the screen: a panic of the threads that read it must
/// neither write on it nor take it away.
fn only_own_panics_restore() {
    let own = std::thread::current().id();
    let restores = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if std::thread::current().id() == own {
            restores(info);
        }
    }));
}

fn watch(mut live: Live, out: &Output) -> anyhow::Result<ExitCode> {
    let told = Told::listen();
    // Also where only the first half of the beginning works.
    let restore = Restore;
    let mut terminal = ratatui::try_init()?;
    only_own_panics_restore();
    let mut reader = Reader::default();
    let (mut paused, mut help): (Option<Snapshot>, bool) = (None, false);
    loop {
        // Also while paused, so that nothing piles up.
        live.look()?;
        let now = live.snapshot();
        reader.follow(&now);
        let is_paused = paused.is_some();
        let snapshot = paused.as_ref().unwrap_or(&now);
        let colour = out.colour;
        let view = View { snapshot, breakdown: reader.state(), colour, is_paused, help };
        terminal.draw(|frame| screen::draw(frame, &view))?;
        match wait_for_key(&told)? {
            Some(Key::Quit) => break,
            Some(Key::Pause) => paused = if is_paused { None } else { Some(now) },
            Some(Key::Help) => help = !help,
            None => (),
        }
    }
    drop(restore);
    if let Some(signal) = told.signal() {
        capture::end_by_signal(signal);
    }
    Ok(ExitCode::SUCCESS)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Quit,
    Pause,
    Help,
}

fn key(event: &KeyEvent) -> Option<Key> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    match event.code {
        KeyCode::Char('c' | 'd') if event.modifiers.contains(KeyModifiers::CONTROL) => {
            Some(Key::Quit)
        }
        KeyCode::Char('q') | KeyCode::Esc => Some(Key::Quit),
        KeyCode::Char('p' | ' ') => Some(Key::Pause),
        KeyCode::Char('?' | 'h') => Some(Key::Help),
        _ => None,
    }
}

/// Until it is time to look again; `None` then, and when the terminal has another size.
fn wait_for_key(told: &Told) -> anyhow::Result<Option<Key>> {
    let until = Instant::now() + REFRESH;
    loop {
        if told.signal().is_some() {
            return Ok(Some(Key::Quit));
        }
        if !event::poll(until.saturating_duration_since(Instant::now()))? {
            // A signal wakes it early.
            if Instant::now() >= until {
                return Ok(None);
            }
            continue;
        }
        match event::read()? {
            Event::Key(event) => {
                if let Some(key) = key(&event) {
                    return Ok(Some(key));
                }
            }
            Event::Resize(..) => return Ok(None),
            _ => (),
        }
    }
}

/// Signals that would leave the terminal as it is.
#[cfg(unix)]
struct Told(std::sync::Arc<std::sync::atomic::AtomicUsize>);

#[cfg(unix)]
impl Told {
    fn listen() -> Told {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let told = Told(std::sync::Arc::default());
        for signal in [SIGTERM, SIGHUP, SIGINT] {
            // Where a signal cannot be listened to, it ends us as ever.
            let _ = signal_hook::flag::register_usize(signal, told.0.clone(), signal as usize);
        }
        told
    }

    fn signal(&self) -> Option<i32> {
        let signal = self.0.load(std::sync::atomic::Ordering::Relaxed);
        i32::try_from(signal).ok().filter(|&it| it > 0)
    }
}

#[cfg(not(unix))]
struct Told;

#[cfg(not(unix))]
impl Told {
    fn listen() -> Told {
        Told
    }

    fn signal(&self) -> Option<i32> {
        None
    }
}

#[cfg(test)]
mod tests {
    use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    use super::{Key, key, newest};

    #[test]
    fn where_no_run_goes_on_it_says_how_to_start_one() {
        let kept = ["/runs/2".into(), "/runs/1".into()];
        assert_eq!(newest(kept.to_vec(), &kept).unwrap(), kept[0]);
        let error = newest(Vec::new(), &kept).unwrap_err().to_string();
        assert!(error.contains("`strobe run -- python train.py`"), "{error}");
        assert!(error.ends_with("newest: strobe top /runs/2"), "{error}");
        assert!(!newest(Vec::new(), &[]).unwrap_err().to_string().contains("newest"));
    }

    #[test]
    fn keys_quit_pause_and_help() {
        let plain = |code| key(&KeyEvent::new(code, KeyModifiers::NONE));
        assert_eq!(plain(KeyCode::Char('q')), Some(Key::Quit));
        assert_eq!(plain(KeyCode::Esc), Some(Key::Quit));
        assert_eq!(plain(KeyCode::Char('p')), Some(Key::Pause));
        assert_eq!(plain(KeyCode::Char('?')), Some(Key::Help));
        assert_eq!(plain(KeyCode::Char('c')), None);
        let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(key(&control_c), Some(Key::Quit));
    }
}
