//! The page of the live view: how far the run is, how its steps go, where their time goes, and
//! what the machine does. Every sparkline has the same axis: a mark is a second, the newest right.

use capture::live::{Gpu, Hardware, Series, Snapshot, State, Steps};
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::breakdown::{Breakdown, Parts};
use super::layout::{BESIDE, Piece, Row, What, fact, place};
use super::words::{UNKNOWN, bytes, elapsed, short, time, time_and_unit};
use crate::output::{Colour, colour_of, shorten};
use crate::report::FILLS;
use session::report::words::{percent, thousands};

/// Columns and rows below which a page says nothing.
pub const SMALLEST: (u16, u16) = (60, 12);

/// What is drawn.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    pub snapshot: &'a Snapshot,
    pub breakdown: &'a Breakdown,
    pub colour: Colour,
    pub is_paused: bool,
    pub help: bool,
}

impl<'a> View<'a> {
    /// As text.
    pub fn plain(snapshot: &'a Snapshot, breakdown: &'a Breakdown) -> View<'a> {
        View { snapshot, breakdown, colour: Colour::None, is_paused: false, help: false }
    }

    fn category(&self, name: &str) -> Style {
        let ([r, g, b], basic) = colour_of(name);
        match self.colour {
            Colour::None => Style::default(),
            Colour::True => Style::default().fg(Color::Rgb(r, g, b)),
            // The sixteen: 30 to 37, and 90 to 97 for the light ones.
            Colour::Basic => {
                let index = if basic >= 90 { basic - 90 + 8 } else { basic.saturating_sub(30) };
                Style::default().fg(Color::Indexed(index))
            }
        }
    }

    fn modified(&self, by: Modifier) -> Style {
        match self.colour {
            Colour::None => Style::default(),
            _ => Style::default().add_modifier(by),
        }
    }

    fn faint(&self) -> Style {
        self.modified(Modifier::DIM)
    }

    fn strong(&self) -> Style {
        self.modified(Modifier::BOLD)
    }

    fn fact(&self, label: &str, number: &str, unit: &str) -> Line<'static> {
        fact(label, number, unit, self.faint(), self.strong())
    }

    fn said(&self, rank: u8, label: &str, text: String) -> Piece {
        let label = Span::styled(format!(" {label:<11} "), self.faint());
        line(rank, Line::from(vec![label, Span::raw(text)]))
    }
}

pub fn draw(frame: &mut Frame<'_>, view: &View<'_>) {
    render(frame.buffer_mut(), view);
}

pub fn render(buffer: &mut Buffer, view: &View<'_>) {
    let area = buffer.area;
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        let text = format!(
            "strobe top needs {} columns and {} rows; here are {} and {}. q quits.",
            SMALLEST.0, SMALLEST.1, area.width, area.height
        );
        let lines = crate::output::wrap(&text, usize::from(area.width).max(1), "");
        for (y, line) in (area.top()..area.bottom()).zip(lines.lines()) {
            buffer.set_stringn(area.x, y, line, usize::from(area.width), Style::default());
        }
        return;
    }
    let body = Rect { height: area.height - 1, ..area };
    let pieces = if view.help { help(view) } else { pieces(view, body.width, body.height) };
    place(buffer, body, pieces);
    footer(buffer, Rect { y: area.bottom() - 1, height: 1, ..area }, view);
}

/// The lines of what was drawn.
pub fn text_of(buffer: &Buffer) -> Vec<String> {
    let width = usize::from(buffer.area.width).max(1);
    let line = |cells: &[ratatui::buffer::Cell]| {
        cells.iter().map(|it| it.symbol()).collect::<String>().trim_end().to_owned()
    };
    buffer.content().chunks(width).map(line).collect()
}

fn line(rank: u8, line: Line<'static>) -> Piece {
    Piece { rank, what: What::Line(line) }
}

fn row(rank: u8, row: Row) -> Piece {
    Piece { rank, what: What::Row(row) }
}

const BLANK: Piece = Piece { rank: 0, what: What::Blank };

fn pieces(view: &View<'_>, width: u16, rows: u16) -> Vec<Piece> {
    let snapshot = view.snapshot;
    let mut pieces = vec![line(9, headline(view, width)), line(9, state(view, width)), BLANK];
    match &snapshot.steps {
        Some(it) => pieces.extend(steps(view, it, width, rows / STEPS_PART)),
        None => pieces.push(view.said(9, "steps", "none seen yet".to_owned())),
    }
    pieces.push(BLANK);
    pieces.extend(breakdown(view, width));
    pieces.push(BLANK);
    match &snapshot.hardware {
        Some(it) => {
            pieces.extend(machine(view, it));
            let room = |above: u8| {
                let taken = pieces.iter().filter(|it| it.rank > above).count();
                usize::from(rows).saturating_sub(taken)
            };
            let (without_loss, at_most) = (room(0), room(GPU_RANK));
            pieces.extend(gpus(view, it, without_loss, at_most));
        }
        None => pieces.push(view.said(8, "machine", "no hardware samples".to_owned())),
    }
    if snapshot.damaged_lines > 0 {
        let n = thousands(usize::try_from(snapshot.damaged_lines).unwrap_or(usize::MAX));
        pieces.push(view.said(5, "damage", format!("{n} lines of its files cannot be read")));
    }
    pieces
}

fn headline(view: &View<'_>, width: u16) -> Line<'static> {
    let snapshot = view.snapshot;
    let mut about: Vec<String> = snapshot
        .frameworks
        .iter()
        .map(|(name, version)| format!("{} {version}", trace::dialect::title(name)))
        .collect();
    about.extend(snapshot.python.as_ref().map(|it| format!("Python {it}")));
    about.extend(snapshot.pid.map(|it| format!("pid {it}")));
    if snapshot.n_stepping > 1 {
        about.push(format!("1 of {} processes that step", snapshot.n_stepping));
    }
    let elapsed = snapshot.elapsed_ns.map(elapsed).unwrap_or_default();
    let room = usize::from(width).saturating_sub(elapsed.chars().count() + 4);
    let name = shorten(&snapshot.name, room);
    let mut left = room - name.chars().count();
    let mut spans = vec![Span::raw(" "), Span::styled(name, view.strong())];
    for part in about {
        let part = format!(" · {part}");
        let n = part.chars().count();
        if n > left {
            break;
        }
        left -= n;
        spans.push(Span::styled(part, view.faint()));
    }
    spans.push(Span::raw(" ".repeat(left + 2)));
    spans.push(Span::raw(elapsed));
    Line::from(spans)
}

fn state(view: &View<'_>, width: u16) -> Line<'static> {
    let snapshot = view.snapshot;
    let word = snapshot.state.in_words();
    let silent = snapshot.steps.as_ref().and_then(|it| it.silent_ns);
    let silent = silent.map(|it| format!("  no step for {}", elapsed_in_words(it)));
    let silent = silent.unwrap_or_default();
    let taken = word.chars().count() + silent.chars().count() + 4;
    let reason = shorten_end(&snapshot.reason, usize::from(width).saturating_sub(taken));
    Line::from(vec![
        Span::styled(format!(" {word}"), view.strong()),
        Span::raw(if reason.is_empty() { String::new() } else { format!("  {reason}") }),
        Span::styled(silent, view.strong()),
    ])
}

fn elapsed_in_words(ns: i64) -> String {
    match ns / 1_000_000_000 {
        seconds @ 0..100 => format!("{seconds} s"),
        _ => elapsed(ns),
    }
}

/// A sentence is understood by its beginning.
fn shorten_end(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// So many times the usual fills the height: one step that compiles must not flatten all others,
/// and a steady pace is a line with room above.
const STEPS_FILL: f64 = 2.0;
/// Of the page's rows, for the sparkline of the steps.
const STEPS_PART: u16 = 8;

fn steps(view: &View<'_>, steps: &Steps, width: u16, tallest: u16) -> Vec<Piece> {
    let room = usize::from(width.saturating_sub(BESIDE + 1));
    let known = |it: Option<f64>| it.map_or_else(|| UNKNOWN.to_owned(), short);
    let beside = |mut fact: Line<'static>, text: &str| {
        fact.push_span(Span::raw(shorten_end(text, room)));
        fact
    };
    let now = if view.snapshot.state == State::Ended { "at the end" } else { "now" };
    let count = thousands(usize::try_from(steps.count).unwrap_or(0));
    let rates = format!("{} over the run · {count} steps", known(steps.rate_run));
    let mut pieces =
        vec![line(9, beside(view.fact("steps/s", &known(steps.rate_now), now), &rates))];
    if let Some(examples) = steps.examples_now {
        let each = steps.examples_per_step.map(|it| format!("{it} a step")).unwrap_or_default();
        pieces.push(line(5, beside(view.fact("examples/s", &short(examples), now), &each)));
    }
    let (number, unit) = match steps.median_ns {
        Some(it) => time(it),
        None => (UNKNOWN.to_owned(), ""),
    };
    let p95 = steps.p95_ns.map(|it| format!("{} p95 · ", time_and_unit(it))).unwrap_or_default();
    let of = match steps.name.as_str() {
        "" => String::new(),
        name => format!(" of {name}"),
    };
    let over = format!("{p95}last {}{of}", steps.statistics_over);
    let median = view.fact("step time", &number, &format!("{unit} median"));
    pieces.push(line(8, beside(median, &over)));

    let shown = &steps.slowest_ns[steps.slowest_ns.len().saturating_sub(room)..];
    let mut known: Vec<f64> = shown.iter().flatten().copied().collect();
    known.sort_by(f64::total_cmp);
    let slowest = known.last().copied().unwrap_or(0.0);
    let usual = known.get(known.len() / 2).copied().unwrap_or(0.0);
    let (number, unit) = match slowest > 0.0 {
        true => time(slowest as i64),
        false => (UNKNOWN.to_owned(), ""),
    };
    pieces.push(row(
        7,
        Row {
            fact: view.fact("", &number, &format!("{unit} slowest")),
            cells: steps.slowest_ns.clone(),
            most: usual * STEPS_FILL,
            style: view.category("compute"),
            tallest,
            beside: Vec::new(),
        },
    ));
    pieces
}

fn breakdown(view: &View<'_>, width: u16) -> Vec<Piece> {
    let state = view.snapshot.state;
    let text = match view.breakdown {
        Breakdown::Read(parts) => return bar(view, parts, width),
        Breakdown::Reading => "the profile is being read".to_owned(),
        Breakdown::Failed(why) => format!("not known: {why}"),
        Breakdown::None if matches!(state, State::Ended | State::OnlyTimed) => {
            "not known: nothing was captured".to_owned()
        }
        Breakdown::None => "once the steps are captured".to_owned(),
    };
    // As high as what will come, so that nothing moves then.
    let text = shorten_end(&text, usize::from(width) - 2);
    vec![title(view, "where the time goes"), line(8, Line::from(format!(" {text}"))), BLANK]
}

fn title(view: &View<'_>, text: &str) -> Piece {
    line(4, Line::from(Span::styled(format!(" {text}"), view.faint())))
}

fn bar(view: &View<'_>, parts: &Parts, width: u16) -> Vec<Piece> {
    let cells = usize::from(width) - 2;
    let title = format!("where {} go, of {} captured steps", parts.step, parts.n_steps);
    let title = if parts.n_steps == 1 { title.replace("steps", "step") } else { title };
    let (mut bar, mut legend) = (vec![Span::raw(" ")], vec![Span::raw(" ")]);
    let (mut sum, mut drawn, mut used) = (0.0, 0, 1);
    for (at, share) in parts.shares.iter().enumerate() {
        sum += share.share;
        let until = ((sum * cells as f64).round() as usize).min(cells);
        let style = view.category(share.category);
        let fill = if view.colour == Colour::None { FILLS[at % FILLS.len()] } else { "█" };
        bar.push(Span::styled(fill.repeat(until.saturating_sub(drawn)), style));
        drawn = drawn.max(until);
        let text = format!(" {} {}   ", share.category, percent(share.share));
        used += 1 + text.chars().count();
        // The small ones at the end are in the report.
        if used < cells + 4 {
            legend.extend([Span::styled(fill, style), Span::raw(text)]);
        }
    }
    vec![self::title(view, &title), line(8, Line::from(bar)), line(8, Line::from(legend))]
}

fn machine(view: &View<'_>, hardware: &Hardware) -> Vec<Piece> {
    let mut pieces = Vec::new();
    if let Some(silent) = hardware.silent_ns {
        let text = format!("the last hardware sample came {} ago", elapsed_in_words(silent));
        pieces.push(view.said(7, "machine", text));
    }
    let cores = hardware.cores;
    let of_cores = cores.map_or_else(
        || "cores".to_owned(),
        |it| match it.fract() == 0.0 {
            true => format!("of {it:.0} cores"),
            false => format!("of {it:.1} cores"),
        },
    );
    let cpu = &hardware.cpu_process;
    pieces.push(series(view, 8, "CPU", cpu, cores, |it| (short(it), of_cores.clone())));
    pieces.push(series(view, 3, "machine", &hardware.cpu_all, Some(1.0), |it| {
        (format!("{:.0}", it * 100.0), "% of its cores".to_owned())
    }));
    let memory = &hardware.memory;
    let of = memory.of_bytes;
    pieces.push(series(view, 8, "memory", &memory.process, of, |it| of_bytes(it, of)));
    for (rank, label, flow) in [
        (5, "disk read", &hardware.disk_read),
        (2, "disk write", &hardware.disk_write),
        (4, "network in", &hardware.network_in),
        (2, "network out", &hardware.network_out),
    ] {
        pieces.push(series(view, rank, label, flow, None, |it| {
            let (number, unit) = bytes(it, it);
            (number, format!("{unit}/s"))
        }));
    }
    pieces
}

fn of_bytes(value: f64, of: Option<f64>) -> (String, String) {
    let (number, unit) = bytes(value, of.unwrap_or(value));
    match of {
        Some(of) => (number, format!("of {} {unit}", bytes(of, of).0)),
        None => (number, unit.to_owned()),
    }
}

/// Below this a disk or a network rests; its line must not fill the height.
const QUIET_BYTES: f64 = 100e3;

fn series(
    view: &View<'_>,
    rank: u8,
    label: &str,
    series: &Series,
    most: Option<f64>,
    words: impl Fn(f64) -> (String, String),
) -> Piece {
    let (number, unit) = match series.now {
        Some(it) => words(it),
        None => (UNKNOWN.to_owned(), "not measured".to_owned()),
    };
    let seen = || series.cells.iter().flatten().copied().fold(QUIET_BYTES, f64::max);
    row(
        rank,
        Row {
            fact: view.fact(label, &number, &unit),
            cells: series.cells.clone(),
            most: most.unwrap_or_else(seen),
            style: view.category("runtime"),
            tallest: 3,
            beside: Vec::new(),
        },
    )
}

const GPU_RANK: u8 = 6;

/// In detail where all else has its place too.
fn gpus(view: &View<'_>, hardware: &Hardware, without_loss: usize, at_most: usize) -> Vec<Piece> {
    let gpus = &hardware.gpus;
    if gpus.is_empty() {
        let why = hardware.missing.iter().find(|it| it.0.contains("GPU"));
        let why = why.map(|it| format!("none seen: {}", it.1));
        return why.map(|it| vec![view.said(1, "GPU", it)]).unwrap_or_default();
    }
    let details: Vec<Piece> =
        gpus.iter().enumerate().flat_map(|(at, it)| gpu_in_detail(view, at, it)).collect();
    if details.len() <= without_loss {
        return details;
    }
    // Each in a line; what the machine says beside gives way to them.
    let n = if gpus.len() <= at_most { gpus.len() } else { at_most.saturating_sub(1) };
    let mut pieces: Vec<Piece> =
        gpus.iter().take(n).enumerate().map(|(at, it)| gpu_in_short(view, at, it)).collect();
    if n < gpus.len() {
        let text = format!("{} more: a higher terminal shows them", gpus.len() - n);
        pieces.push(view.said(GPU_RANK + 1, "GPU", text));
    }
    pieces
}

fn share_of(value: f64) -> (String, String) {
    (format!("{:.0}", value * 100.0), "% busy".to_owned())
}

/// Why a GPU is held back, and how warm it is.
fn condition(gpu: &Gpu) -> Vec<String> {
    let throttled = gpu.throttled.as_ref().filter(|it| !it.is_empty());
    let throttled = throttled.map(|it| format!("throttled: {}", it.join(", ")));
    throttled.into_iter().chain(gpu.temperature.now.map(|it| format!("{it:.0} °C"))).collect()
}

fn gpu_in_detail(view: &View<'_>, at: usize, gpu: &Gpu) -> Vec<Piece> {
    let of = |of: Option<f64>, unit: &str| match of {
        Some(of) => format!("of {of:.0} {unit}"),
        None => unit.to_owned(),
    };
    let name = format!("GPU {at}");
    let number = |it: f64| format!("{it:.0}");
    let memory = gpu.memory_bytes;
    let clock = |it| (number(it), of(gpu.max_clock_mhz, "MHz"));
    let power = |it| (number(it), of(gpu.power_limit_w, "W"));
    let mut pieces = vec![
        series(view, GPU_RANK, &name, &gpu.busy, Some(1.0), share_of),
        series(view, GPU_RANK, "  memory", &gpu.memory, memory, |it| of_bytes(it, memory)),
        series(view, GPU_RANK, "  clock", &gpu.clock, gpu.max_clock_mhz, clock),
        series(view, GPU_RANK, "  power", &gpu.power, gpu.power_limit_w, power),
    ];
    let mut about = vec![gpu.name.clone()];
    about.extend(condition(gpu));
    about.retain(|it| !it.is_empty());
    if !about.is_empty() {
        pieces.push(view.said(GPU_RANK, "", about.join(" · ")));
    }
    pieces
}

fn gpu_in_short(view: &View<'_>, at: usize, gpu: &Gpu) -> Piece {
    let throttled = gpu.throttled.iter().flatten().next();
    let mut about: Vec<String> = throttled.map(|it| (*it).to_owned()).into_iter().collect();
    about.extend(gpu.memory.now.map(|it| {
        let (number, unit) = bytes(it, it);
        format!("{number} {unit}")
    }));
    about.extend(gpu.clock.now.map(|it| format!("{it:.0} MHz")));
    about.extend(gpu.power.now.map(|it| format!("{it:.0} W")));
    let mut piece = series(view, GPU_RANK, &format!("GPU {at}"), &gpu.busy, Some(1.0), share_of);
    if let What::Row(row) = &mut piece.what {
        row.beside = about;
    }
    piece
}

fn footer(buffer: &mut Buffer, area: Rect, view: &View<'_>) {
    let keys = if view.help { " q quit   ? back" } else { " q quit   p pause   ? help" };
    buffer.set_stringn(area.x, area.y, keys, usize::from(area.width), view.faint());
    let (text, style) = match view.is_paused {
        true => ("paused: p resumes ", view.strong()),
        false => ("a mark is a second ", view.faint()),
    };
    let width = u16::try_from(text.chars().count()).unwrap_or(0);
    buffer.set_string(area.right().saturating_sub(width), area.y, text, style);
}

const HELP: [(&str, &str); 11] = [
    ("q, Esc", "quit; the run continues"),
    ("p", "pause what is shown"),
    ("?", "this page"),
    ("steps/s", "over the last ten seconds, and since such steps began"),
    ("step time", "of the last hundred steps; the line: the slowest of each second"),
    ("where", "parts of the captured steps; the rest is said by strobe report"),
    ("CPU", "of the run's processes, of the cores they may use"),
    ("machine", "all cores, whoever uses them"),
    ("memory", "of the run's processes, of the container's limit or the machine's"),
    ("GPU", "as its driver counts; throttled: its clock is held back"),
    (UNKNOWN, "not known, which is not zero"),
];

fn help(view: &View<'_>) -> Vec<Piece> {
    let folder = view.snapshot.folder.display().to_string();
    let mut pieces: Vec<Piece> =
        HELP.iter().map(|(what, text)| view.said(5, what, (*text).to_owned())).collect();
    pieces.insert(3, BLANK);
    pieces.push(BLANK);
    pieces.push(view.said(1, "run", folder));
    pieces
}

#[cfg(test)]
mod tests;
