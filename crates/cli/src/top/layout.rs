//! A page of lines and sparklines that fits its height: what matters least gives way first.
//!
//! ```text
//! label      number unit          ▁▂▃▅▂▁▁▂  beside
//! ```

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

const LABEL: usize = 11;
const NUMBER: usize = 8;
const UNIT: usize = 14;
/// Where sparklines begin: behind a margin, the three columns and the gaps between them.
pub const BESIDE: u16 = (1 + LABEL + NUMBER + 1 + UNIT + 1) as u16;

/// A part of the page. Of too many the one with the lowest rank goes first.
#[derive(Debug)]
pub struct Piece {
    pub rank: u8,
    pub what: What,
}

#[derive(Debug)]
pub enum What {
    Blank,
    Line(Line<'static>),
    Row(Row),
}

/// A number that changes, and how it did.
#[derive(Debug, Default)]
pub struct Row {
    pub fact: Line<'static>,
    /// The newest last.
    pub cells: Vec<Option<f64>>,
    /// What fills the height.
    pub most: f64,
    pub style: Style,
    /// The height it may grow to.
    pub tallest: u16,
    /// Behind the sparkline; what comes last gives way to it.
    pub beside: Vec<String>,
}

/// A label, a number that stands below other numbers, and its unit.
pub fn fact(label: &str, number: &str, unit: &str, faint: Style, strong: Style) -> Line<'static> {
    Line::from(vec![
        Span::styled(format!(" {label:<LABEL$}"), faint),
        Span::styled(format!("{number:>NUMBER$}"), strong),
        Span::raw(format!(" {unit:<UNIT$} ")),
    ])
}

/// Draws as many pieces as there is room for, and lets sparklines grow into what is left.
pub fn place(buffer: &mut Buffer, area: Rect, mut pieces: Vec<Piece>) {
    while pieces.len() > usize::from(area.height) {
        // The last of its rank: what stands further up matters more.
        let Some(lowest) = pieces.iter().map(|it| it.rank).min() else { return };
        let Some(at) = pieces.iter().rposition(|it| it.rank == lowest) else { return };
        pieces.remove(at);
    }
    let heights = heights(&pieces, area.height);
    let mut y = area.y;
    for (piece, height) in pieces.iter().zip(heights) {
        let area = Rect { y, height, ..area };
        match &piece.what {
            What::Blank => (),
            What::Line(line) => {
                buffer.set_line(area.x, y, line, area.width);
                if line.width() > usize::from(area.width) {
                    buffer.set_string(area.right().saturating_sub(1), y, "…", Style::default());
                }
            }
            What::Row(row) => draw_row(buffer, area, row),
        }
        y += height;
    }
}

/// The first sparkline, that of the steps, grows first; the others grow together or not at all.
fn heights(pieces: &[Piece], rows: u16) -> Vec<u16> {
    let mut heights = vec![1; pieces.len()];
    let mut left = usize::from(rows).saturating_sub(pieces.len());
    let tallest = |at: usize| match &pieces[at].what {
        What::Row(row) => row.tallest.max(1),
        _ => 1,
    };
    let sparklines: Vec<usize> = (0..pieces.len()).filter(|&it| tallest(it) > 1).collect();
    let Some((first, others)) = sparklines.split_first() else { return heights };
    for group in [std::slice::from_ref(first), others] {
        loop {
            let grow: Vec<usize> =
                group.iter().copied().filter(|&it| heights[it] < tallest(it)).collect();
            if grow.is_empty() || grow.len() > left {
                break;
            }
            left -= grow.len();
            grow.iter().for_each(|&it| heights[it] += 1);
        }
    }
    heights
}

/// A narrower sparkline says nothing.
const NARROWEST: u16 = 10;

/// The number stands on the sparkline's ground.
fn draw_row(buffer: &mut Buffer, area: Rect, row: &Row) {
    let ground = area.bottom().saturating_sub(1);
    buffer.set_line(area.x, ground, &row.fact, area.width.min(BESIDE));
    let mut room = area.width.saturating_sub(BESIDE + 1);
    let mut beside = String::new();
    for part in &row.beside {
        let longer = if beside.is_empty() { part.clone() } else { format!("{beside} · {part}") };
        if longer.chars().count() > usize::from(room.saturating_sub(NARROWEST + 2)) {
            break;
        }
        beside = longer;
    }
    if let Some(width) = u16::try_from(beside.chars().count()).ok().filter(|&it| it > 0) {
        room -= width + 2;
        buffer.set_string(area.x + BESIDE + room + 2, ground, &beside, Style::default());
    }
    let area = Rect { x: area.x + BESIDE, width: room, ..area };
    sparkline(buffer, area, &row.cells, row.most, row.style);
}

const LEVELS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// A known nothing is a line on the ground, the unknown is empty. The top eighth stays free, so
/// that neighbours do not touch.
fn sparkline(buffer: &mut Buffer, area: Rect, cells: &[Option<f64>], most: f64, style: Style) {
    let full = usize::from(area.height) * 8 - usize::from(area.height > 0);
    let shown = cells.len().min(usize::from(area.width));
    let newest = &cells[cells.len() - shown..];
    let left = area.right().saturating_sub(u16::try_from(shown).unwrap_or(area.width));
    for (x, value) in (left..).zip(newest) {
        let Some(value) = value else { continue };
        let share = if most > 0.0 { (value / most).clamp(0.0, 1.0) } else { 0.0 };
        let level = ((share * full as f64).round() as usize).max(1);
        for (above, y) in (area.top()..area.bottom()).rev().enumerate() {
            let here = level.saturating_sub(above * 8).min(8);
            if here > 0 {
                buffer.set_string(x, y, LEVELS[here], style);
            }
        }
    }
}
