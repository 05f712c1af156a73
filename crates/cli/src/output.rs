//! How things look on the terminal: width, colours, aligned tables; and as CSV, Markdown, JSON.

mod clean;

use std::fmt::{Display, Write as _};
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};

use clap::ValueEnum;
use serde_json::Value;
use trace::Dur;

pub use clean::is_clean;
use clean::{clean, clean_json, escape};

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Json,
    Md,
    Csv,
}

/// Where to print, and what it can show. All that the program says goes through here, line by
/// line, and nothing that a terminal would obey comes out but our own styles.
pub struct Output {
    to: Box<dyn Write>,
    /// The line that is not whole yet.
    line: Vec<u8>,
    pub is_terminal: bool,
    pub width: usize,
    pub colour: Colour,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    None,
    /// The sixteen every terminal has.
    Basic,
    True,
}

impl Output {
    pub fn of_stdout() -> Output {
        let stdout = io::stdout();
        let is_terminal = stdout.is_terminal();
        Output::of(BufWriter::new(stdout), is_terminal)
    }

    /// For what `strobe run` says: stdout is the command's own.
    pub fn of_stderr() -> Output {
        let stderr = io::stderr();
        let is_terminal = stderr.is_terminal();
        Output::of(BufWriter::new(stderr), is_terminal)
    }

    pub fn of_file(file: File) -> Output {
        Output::of(BufWriter::new(file), false)
    }

    fn of(to: impl Write + 'static, is_terminal: bool) -> Output {
        let said = std::env::var("COLUMNS").ok().and_then(|it| it.parse().ok());
        let seen = terminal_size::terminal_size().map(|it| usize::from(it.0.0));
        let width = said.or(seen.filter(|_| is_terminal)).unwrap_or(80).clamp(40, 240);
        let truecolour = std::env::var("COLORTERM")
            .is_ok_and(|it| it.contains("truecolor") || it.contains("24bit"));
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty())
            && std::env::var("TERM").map_or(true, |it| it != "dumb");
        let colour = match (is_terminal && wanted, truecolour) {
            (false, _) => Colour::None,
            (true, false) => Colour::Basic,
            (true, true) => Colour::True,
        };
        Output { to: Box::new(to), line: Vec::new(), is_terminal, width, colour }
    }

    pub fn json(&mut self, value: &Value) -> io::Result<()> {
        let text = serde_json::to_string_pretty(value)?;
        writeln!(self, "{}", clean_json(&text))
    }

    /// The text in a category's colour.
    pub fn paint(&self, category: &str, text: &str) -> String {
        let (rgb, basic) = colour_of(category);
        match self.colour {
            Colour::None => text.to_owned(),
            Colour::Basic => styled(&format!("{basic}m"), text),
            Colour::True => {
                let [r, g, b] = rgb;
                styled(&format!("38;2;{r};{g};{b}m"), text)
            }
        }
    }

    pub fn strong(&self, text: &str) -> String {
        match self.colour {
            Colour::None => text.to_owned(),
            _ => styled("1m", text),
        }
    }

    pub fn faint(&self, text: &str) -> String {
        match self.colour {
            Colour::None => text.to_owned(),
            _ => styled("2m", text),
        }
    }
}

fn styled(code: &str, text: &str) -> String {
    format!("{}{text}{}", escape(code), escape("0m"))
}

/// Says something on stderr.
pub fn note(text: impl Display) {
    let mut out = Output::of_stderr();
    // Nobody is left to be told that it cannot be said.
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

impl Output {
    /// A whole file, which another program reads: its bytes are kept, unless they would go to a
    /// terminal.
    pub fn write_file(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.is_terminal {
            return self.write_all(bytes);
        }
        self.flush()?;
        self.to.write_all(bytes)
    }

    /// Goes back to the start of a terminal's line and empties it.
    pub fn erase_line(&mut self) -> io::Result<()> {
        write!(self, "{}{}", escape("G"), escape("K"))
    }

    /// Passes on the first `n` bytes of what is kept.
    fn pass_on(&mut self, n: usize) -> io::Result<()> {
        let text = String::from_utf8_lossy(&self.line[..n]);
        let passed = self.to.write_all(clean(&text).as_bytes());
        self.line.drain(..n);
        passed
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        let _ = self.flush();
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let ends = bytes.iter().rposition(|&it| it == b'\n');
        let whole = ends.map(|it| self.line.len() + it + 1);
        self.line.extend_from_slice(bytes);
        if let Some(n) = whole {
            self.pass_on(n)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pass_on(self.line.len())?;
        self.to.flush()
    }
}

/// The ten colours of the design, for dark ground, and their nearest among the basic ones.
pub fn colour_of(category: &str) -> ([u8; 3], u8) {
    match category {
        "compute" => ([0x6E, 0xA8, 0xFF], 94),
        "collective" => ([0x62, 0xC5, 0x85], 32),
        "transfer_in" => ([0x4F, 0xD0, 0xD4], 36),
        "transfer_out" => ([0x9A, 0xDF, 0xE0], 96),
        "input" => ([0xFF, 0xB5, 0x47], 33),
        "python" => ([0xF2, 0x7B, 0xAE], 95),
        "compile" => ([0xB1, 0x97, 0xFC], 35),
        "runtime" => ([0x94, 0xA3, 0xB8], 37),
        "output" => ([0xD9, 0xBC, 0x4A], 93),
        _ => ([0x7A, 0x84, 0x92], 90),
    }
}

/// A table of texts; numbers are right-aligned.
#[derive(Debug, Default)]
pub struct Grid {
    pub columns: Vec<String>,
    pub right: Vec<bool>,
    pub rows: Vec<Vec<String>>,
}

impl Grid {
    /// Prints to the width: the widest text columns give way.
    pub fn text(&self, width: usize, indent: usize) -> String {
        let mut widths: Vec<usize> = self.columns.iter().map(|it| it.chars().count()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let room = width.saturating_sub(indent + 2 * widths.len().saturating_sub(1));
        while widths.iter().sum::<usize>() > room {
            // Narrower than this a text says nothing; then lines grow beyond the width.
            let least = |it: usize| self.columns[it].chars().count().max(12);
            let texts = (0..widths.len()).filter(|&it| !self.right[it] && widths[it] > least(it));
            let Some(widest) = texts.max_by_key(|&it| widths[it]) else { break };
            widths[widest] -= 1;
        }
        let mut out = String::new();
        let mut line = |cells: &[String]| {
            let mut text = " ".repeat(indent);
            for (at, cell) in cells.iter().enumerate() {
                // A source's lines would break the table's.
                let cell = shorten(&cell.replace('\n', " "), widths[at]);
                let pad = " ".repeat(widths[at].saturating_sub(cell.chars().count()));
                let gap = if at + 1 < cells.len() { "  " } else { "" };
                let _ = match self.right[at] {
                    true => write!(text, "{pad}{cell}{gap}"),
                    false => write!(text, "{cell}{pad}{gap}"),
                };
            }
            let _ = writeln!(out, "{}", text.trim_end());
        };
        line(&self.columns);
        for row in &self.rows {
            line(row);
        }
        out
    }

    pub fn markdown(&self) -> String {
        let escape = |it: &String| it.replace('|', "\\|").replace('\n', " ");
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let mut out = line(self.columns.iter().map(escape).collect());
        out +=
            &line(self.right.iter().map(|&it| if it { "--:" } else { "---" }.to_owned()).collect());
        for row in &self.rows {
            out += &line(row.iter().map(escape).collect());
        }
        out
    }

    pub fn csv(&self) -> String {
        let quote = |it: &String| match it.contains([',', '"', '\n', '\r']) {
            true => format!("\"{}\"", it.replace('"', "\"\"")),
            false => it.clone(),
        };
        let line =
            |cells: &[String]| cells.iter().map(quote).collect::<Vec<_>>().join(",") + "\r\n";
        let mut out = line(&self.columns);
        for row in &self.rows {
            out += &line(row);
        }
        out
    }
}

/// A sentence beside what it is about, its further lines under its first.
pub fn beside(head: &str, what: &str, width: usize) -> String {
    let indent = " ".repeat(head.chars().count());
    match wrap(what, width, &indent).strip_prefix(&indent) {
        Some(text) => format!("{head}{text}"),
        None => format!("{}\n", head.trim_end()),
    }
}

/// Keeps both ends: an op's scope and its own name both tell.
pub fn shorten(text: &str, width: usize) -> String {
    let n = text.chars().count();
    if n <= width {
        return text.to_owned();
    }
    let keep = width.saturating_sub(1);
    let (head, tail) = (keep / 3, keep - keep / 3);
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(n - tail).collect();
    format!("{start}…{end}")
}

/// Times of one column: one unit, one number of digits, chosen by the largest.
pub fn column(times: &[Dur]) -> Vec<String> {
    const UNITS: [(&str, f64); 5] =
        [("s", 1e12), ("ms", 1e9), ("µs", 1e6), ("ns", 1e3), ("ps", 1.0)];
    let most = times.iter().map(|it| it.0.unsigned_abs()).max().unwrap_or(0) as f64;
    let (unit, scale) = UNITS.into_iter().find(|it| most >= it.1).unwrap_or(UNITS[4]);
    let decimals = match most / scale {
        it if it >= 1000.0 || unit == "ps" => 0,
        it if it >= 100.0 => 1,
        it if it >= 10.0 => 2,
        _ => 3,
    };
    times.iter().map(|it| format!("{:.decimals$} {unit}", it.0 as f64 / scale)).collect()
}

/// Units that stay with the number before them.
const UNITS: [&str; 16] = [
    "ps", "ns", "µs", "ms", "s", "B", "kB", "MB", "GB", "TB", "W", "MHz", "°C", "MB/s", "GB/s",
    "kB/s",
];

/// Breaks a text at words, but not between a number and its unit.
pub fn wrap(text: &str, width: usize, indent: &str) -> String {
    let mut out = String::new();
    let mut line = String::new();
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let is_unit = UNITS.contains(&word.trim_end_matches(['.', ',', ';', ':', ')']));
        match words.last_mut().filter(|it| is_unit && it.ends_with(|it: char| it.is_ascii_digit()))
        {
            Some(number) => {
                number.push(' ');
                *number += word;
            }
            None => words.push(word.to_owned()),
        }
    }
    for word in &words {
        if !line.is_empty()
            && line.chars().count() + 1 + word.chars().count() + indent.len() > width
        {
            let _ = writeln!(out, "{indent}{line}");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += word;
    }
    if !line.is_empty() {
        let _ = writeln!(out, "{indent}{line}");
    }
    out
}

#[cfg(test)]
mod tests {
    use trace::Dur;

    use super::{Grid, column, shorten, wrap};

    fn grid() -> Grid {
        Grid {
            columns: vec!["name".into(), "ms".into()],
            right: vec![false, true],
            rows: vec![
                vec!["model/dense/MatMul".into(), "12.5".into()],
                vec!["a,\"b\"".into(), "3".into()],
            ],
        }
    }

    #[test]
    fn grids_align_and_give_way() {
        assert_eq!(
            grid().text(80, 1),
            " name                  ms\n model/dense/MatMul  12.5\n a,\"b\"                  3\n"
        );
        assert!(grid().text(20, 0).lines().all(|it| it.chars().count() <= 20));
    }

    #[test]
    fn csv_quotes_what_needs_it() {
        assert_eq!(grid().csv().lines().nth(2), Some("\"a,\"\"b\"\"\",3"));
    }

    #[test]
    fn a_column_has_one_unit() {
        let times = [Dur(63_740_000_000), Dur(8_496_000_000), Dur(12_000_000)];
        assert_eq!(column(&times), ["63.74 ms", "8.50 ms", "0.01 ms"]);
    }

    #[test]
    fn texts_give_way_and_break_at_words() {
        assert_eq!(shorten("abcdefghij", 7), "ab…ghij");
        assert_eq!(wrap("one two three", 9, " "), " one two\n three\n");
    }

    /// One visual language: but for idle, which the page hatches and a terminal cannot.
    #[test]
    fn the_page_has_the_same_colours() {
        let tokens = include_str!("../../../web/src/style/tokens.css");
        let (light, dark) = tokens.split_once("[data-theme=\"dark\"]").unwrap();
        for (category, _) in analyses::step_time::CATEGORIES.iter().filter(|it| it.0 != "idle") {
            let [r, g, b] = super::colour_of(category).0;
            let line = format!("--{category}: #{r:02x}{g:02x}{b:02x};");
            assert!(dark.contains(&line), "{line}");
            assert!(light.contains(&format!("--{category}: #")), "{category}");
        }
        assert!(dark.contains("--idle: #") && light.contains("--idle: #"));
    }
}
