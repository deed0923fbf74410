//! Compact ratatui backend for slow connections: groups cells by style across the whole screen and sends only the
//! differences between styles.

use crate::analysis::labels::display_width;
use ratatui::backend::{Backend, ClearType, CrosstermBackend, WindowSize};
use ratatui::buffer::Cell;
use ratatui::layout::{Position, Size};
use ratatui::style::{Color, Modifier};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{self, Write};

/// Maximum gap, in cells, between two runs of the same style that is resent rather than skipped: skipping takes a
/// cursor move, which is no shorter.
const NEAR: u16 = 5;

/// Shortest run of blanks that is erased (ECH, ECMA-48 8.3.38) rather than sent: erasing does not move the cursor, so
/// the text after the run needs a cursor move as well.
const ERASED: u16 = 11;

/// SGR codes (ECMA-48 8.3.117) of the modifiers: set, unset.
const MODIFIERS: [(Modifier, u8, u8); 8] = [
    (Modifier::BOLD, 1, 22),
    (Modifier::DIM, 2, 22),
    (Modifier::ITALIC, 3, 23),
    (Modifier::UNDERLINED, 4, 24),
    (Modifier::SLOW_BLINK, 5, 25),
    (Modifier::REVERSED, 7, 27),
    (Modifier::HIDDEN, 8, 28),
    (Modifier::CROSSED_OUT, 9, 29),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pen {
    fg: Color,
    bg: Color,
    modifier: Modifier,
}

impl Pen {
    const PLAIN: Self = Self { fg: Color::Reset, bg: Color::Reset, modifier: Modifier::empty() };

    fn from_cell(cell: &Cell) -> Self {
        Self { fg: cell.fg, bg: cell.bg, modifier: cell.modifier }
    }

    /// Returns the escape sequence that switches from this pen to `next`; empty if they are equal.
    fn switch_to(self, next: Self) -> String {
        let mut codes = String::new();
        let mut say = |code: &str| {
            if !codes.is_empty() {
                codes.push(';');
            }
            codes.push_str(code);
        };
        if next == Self::PLAIN && self != next {
            return "\x1b[m".to_owned();
        }
        let mut has = self.modifier;
        for (modifier, _, unset) in MODIFIERS {
            if has.contains(modifier) && !next.modifier.contains(modifier) {
                say(&unset.to_string());
                // One code resets both bold and dim.
                has -= if unset == 22 { Modifier::BOLD | Modifier::DIM } else { modifier };
            }
        }
        for (modifier, set, _) in MODIFIERS {
            if next.modifier.contains(modifier) && !has.contains(modifier) {
                say(&set.to_string());
            }
        }
        if self.fg != next.fg {
            say(&color_parameters(next.fg, 0));
        }
        if self.bg != next.bg {
            say(&color_parameters(next.bg, 10));
        }
        if codes.is_empty() { codes } else { format!("\x1b[{codes}m") }
    }
}

/// SGR parameters of a foreground color, or of a background color if `ground` is 10.
fn color_parameters(color: Color, ground: u8) -> String {
    let basic = |code: u8| (code + ground).to_string();
    match color {
        Color::Reset => basic(39),
        Color::Black => basic(30),
        Color::Red => basic(31),
        Color::Green => basic(32),
        Color::Yellow => basic(33),
        Color::Blue => basic(34),
        Color::Magenta => basic(35),
        Color::Cyan => basic(36),
        Color::Gray => basic(37),
        Color::DarkGray => basic(90),
        Color::LightRed => basic(91),
        Color::LightGreen => basic(92),
        Color::LightYellow => basic(93),
        Color::LightBlue => basic(94),
        Color::LightMagenta => basic(95),
        Color::LightCyan => basic(96),
        Color::White => basic(97),
        Color::Indexed(i) => format!("{};5;{i}", 38 + ground),
        Color::Rgb(r, g, b) => format!("{};2;{r};{g};{b}", 38 + ground),
    }
}

/// Crossterm's backend with a compact encoding of cells.
pub struct CompactBackend<W: Write> {
    inner: CrosstermBackend<W>,
    size: (u16, u16),
    /// Current cells of the terminal, row by row.
    shown: Vec<Cell>,
}

impl<W: Write> CompactBackend<W> {
    /// Creates a backend for a blank terminal of the given size.
    pub fn new(writer: W, (width, height): (u16, u16)) -> Self {
        let cells = usize::from(width) * usize::from(height);
        Self { inner: CrosstermBackend::new(writer), size: (width, height), shown: vec![Cell::EMPTY; cells] }
    }

    fn cell_index(&self, x: u16, y: u16) -> Option<usize> {
        (x < self.size.0 && y < self.size.1).then(|| usize::from(y) * usize::from(self.size.0) + usize::from(x))
    }

    fn shown_row(&self, y: u16) -> &[Cell] {
        let from = usize::from(y) * usize::from(self.size.0);
        self.shown.get(from..from + usize::from(self.size.0)).unwrap_or_default()
    }

    /// Returns the text between two columns of a row if every cell there matches the pen; otherwise `None`.
    fn text_between(&self, (from, to): (u16, u16), y: u16, pen: Pen) -> Option<String> {
        let mut out = String::new();
        for x in from..to {
            let cell = self.shown.get(self.cell_index(x, y)?)?;
            let blank = plain_blank(cell) && cell.bg == pen.bg && is_invisible_on_blank(pen.modifier);
            if !blank && Pen::from_cell(cell) != pen {
                return None;
            }
            out.push_str(cell.symbol());
        }
        Some(out)
    }
}

/// A cell with its column and row.
type Placed<'a> = (u16, u16, &'a Cell);

/// Groups cells by pen, in order of first appearance.
fn group_by_pen<'a>(content: impl Iterator<Item = Placed<'a>>) -> Vec<(Pen, Vec<Placed<'a>>)> {
    let mut pens: Vec<(Pen, Vec<Placed<'a>>)> = Vec::new();
    let mut last = 0;
    for (x, y, cell) in content {
        let mut pen = Pen::from_cell(cell);
        if let Some((with, _)) = pens.get(last)
            && plain_blank(cell)
            && with.bg == pen.bg
            && is_invisible_on_blank(with.modifier)
        {
            pen = *with;
        }
        if pens.get(last).is_none_or(|p| p.0 != pen) {
            last = pens.iter().position(|p| p.0 == pen).unwrap_or(pens.len());
        }
        match pens.get_mut(last) {
            Some(cells) => cells.1.push((x, y, cell)),
            None => pens.push((pen, vec![(x, y, cell)])),
        }
    }
    pens
}

/// Minimum length of a vertical line that is sent from top to bottom.
const LINE: usize = 3;

/// Moves vertical lines to the end of the list, column by column, so that each is sent from top to bottom: going from
/// one cell to the one below it takes only two bytes. Lines in the last column stay where they are, because the cursor
/// position after writing there is unknown.
fn lines_last<'a>(cells: &mut Vec<Placed<'a>>, width: u16) {
    let is_line = |c: &Placed<'_>| c.2.symbol() == "│" && c.0.saturating_add(1) < width;
    let mut columns: BTreeMap<u16, Vec<Placed<'a>>> = BTreeMap::new();
    for cell in cells.iter().filter(|c| is_line(c)) {
        columns.entry(cell.0).or_default().push(*cell);
    }
    let runs = columns.into_values().flat_map(|column| {
        let mut runs: Vec<Vec<Placed<'a>>> = Vec::new();
        for cell in column {
            match runs.last_mut().filter(|run| run.last().is_some_and(|last| last.1 + 1 == cell.1)) {
                Some(run) => run.push(cell),
                None => runs.push(vec![cell]),
            }
        }
        runs
    });
    let lines: Vec<Placed<'a>> = runs.filter(|run| run.len() >= LINE).flatten().collect();
    let moved: BTreeSet<(u16, u16)> = lines.iter().map(|c| (c.0, c.1)).collect();
    cells.retain(|c| !moved.contains(&(c.0, c.1)));
    cells.extend(lines);
}

/// Number of adjacent blanks with the terminal's default background at the beginning of `cells`; 0 if the pen sets a
/// background, because terminals disagree on whether erased cells get it.
fn blank_run(cells: &[Placed<'_>], pen: Pen) -> u16 {
    let Some(&(first, row, _)) = cells.first() else { return 0 };
    if pen.bg != Color::Reset || !is_invisible_on_blank(pen.modifier) {
        return 0;
    }
    let run = cells.iter().zip(first..).take_while(|((x, y, cell), at)| (*x, *y) == (*at, row) && plain_blank(cell));
    u16::try_from(run.count()).unwrap_or(u16::MAX)
}

/// Cursor move to a column further right in the same row: absolute (CHA) or relative (CUF).
fn shortest_jump(from: u16, to: u16) -> String {
    let absolute = format!("\x1b[{}G", to + 1);
    let relative = if to - from == 1 { "\x1b[C".to_owned() } else { format!("\x1b[{}C", to - from) };
    if relative.len() < absolute.len() { relative } else { absolute }
}

fn is_wide(cell: &Cell) -> bool {
    cell.symbol().len() > 1 && display_width(cell.symbol()) > 1
}

/// Returns true if only the background of the cell is visible.
fn plain_blank(cell: &Cell) -> bool {
    cell.symbol() == " " && is_invisible_on_blank(cell.modifier)
}

/// Returns true if a space looks the same with and without these modifiers.
fn is_invisible_on_blank(modifier: Modifier) -> bool {
    !modifier.intersects(Modifier::REVERSED | Modifier::UNDERLINED | Modifier::CROSSED_OUT | Modifier::SLOW_BLINK)
}

impl<W: Write> Write for CompactBackend<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.inner.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        Write::flush(&mut self.inner)
    }
}

impl<W: Write> Backend for CompactBackend<W> {
    type Error = io::Error;

    fn draw<'a, I: Iterator<Item = (u16, u16, &'a Cell)>>(&mut self, content: I) -> io::Result<()> {
        let content: Vec<(u16, u16, &Cell)> = content.collect();
        // Overwriting half of a wide character erases the other half: clear and resend rows that contain wide
        // characters.
        let mut wide: BTreeSet<u16> = content.iter().filter(|c| is_wide(c.2)).map(|c| c.1).collect();
        let rows: BTreeSet<u16> = content.iter().map(|c| c.1).collect();
        wide.extend(rows.into_iter().filter(|y| self.shown_row(*y).iter().any(is_wide)));
        for (x, y, cell) in &content {
            if let Some(shown) = self.cell_index(*x, *y).and_then(|at| self.shown.get_mut(at)) {
                *shown = (*cell).clone();
            }
            // A wide character covers the cell to its right.
            if is_wide(cell)
                && let Some(covered) = self.cell_index(x.saturating_add(1), *y).and_then(|at| self.shown.get_mut(at))
            {
                *covered = Cell::EMPTY;
            }
        }
        let mut out = String::new();
        for y in &wide {
            // Writing to a `String` cannot fail.
            let _ = write!(out, "\x1b[{};1H\x1b[2K", y + 1);
        }
        let mut pens = group_by_pen(content.into_iter().filter(|c| !wide.contains(&c.1)));
        for y in &wide {
            let mut covered = false;
            for (x, cell) in (0..).zip(self.shown_row(*y)) {
                if !covered && *cell != Cell::EMPTY {
                    pens.push((Pen::from_cell(cell), vec![(x, *y, cell)]));
                }
                covered = !covered && is_wide(cell);
            }
        }
        let mut pen = Pen::PLAIN;
        // Position after the last write; unknown at first and after the last column.
        let mut cursor: Option<(u16, u16)> = None;
        for (next, mut cells) in pens {
            lines_last(&mut cells, self.size.0);
            out.push_str(&pen.switch_to(next));
            pen = next;
            let mut rest = cells.as_slice();
            while let [(x, y, cell), ..] = *rest {
                match cursor {
                    Some(here) if here == (x, y) => {}
                    Some((from, row)) if row == y && from < x => {
                        let jump = shortest_jump(from, x);
                        match (x - from <= NEAR).then(|| self.text_between((from, x), y, pen)).flatten() {
                            Some(same) if same.len() <= jump.len() => out.push_str(&same),
                            _ => out.push_str(&jump),
                        }
                    }
                    // Down and back to the left: in raw mode, a line feed keeps the column.
                    Some((from, row)) if row + 1 == y && from == x + 1 => out.push_str("\n\x08"),
                    Some((_, row)) if row + 1 == y => {
                        let absolute = format!("\x1b[{};{}H", y + 1, x + 1);
                        let relative = if x == 0 { "\r\n".to_owned() } else { format!("\r\n{}", shortest_jump(0, x)) };
                        out.push_str(if relative.len() < absolute.len() { &relative } else { &absolute });
                    }
                    _ => {
                        let _ = write!(out, "\x1b[{};{}H", y + 1, x + 1);
                    }
                }
                let blanks = blank_run(rest, pen);
                if blanks >= ERASED {
                    let _ = write!(out, "\x1b[{blanks}X");
                    cursor = Some((x, y));
                    rest = rest.get(usize::from(blanks)..).unwrap_or_default();
                    continue;
                }
                rest = &rest[1..];
                out.push_str(cell.symbol());
                // Terminals disagree on the width of characters that are not one column wide, so the cursor position
                // after such a character is unknown.
                let one = cell.symbol().len() == 1 || display_width(cell.symbol()) == 1;
                cursor = (one && x + 1 < self.size.0).then_some((x + 1, y));
            }
        }
        out.push_str(&pen.switch_to(Pen::PLAIN));
        self.inner.write_all(out.as_bytes())
    }

    fn clear(&mut self) -> io::Result<()> {
        self.shown.fill(Cell::EMPTY);
        self.inner.clear()
    }

    fn clear_region(&mut self, kind: ClearType) -> io::Result<()> {
        // The cleared region is not tracked: mark all cells as unknown, so that everything is resent.
        let mut unknown = Cell::EMPTY;
        unknown.modifier = Modifier::all();
        self.shown.fill(unknown);
        self.inner.clear_region(kind)
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        self.inner.hide_cursor()
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        self.inner.show_cursor()
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        self.inner.get_cursor_position()
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        self.inner.set_cursor_position(position)
    }

    fn size(&self) -> io::Result<Size> {
        self.inner.size()
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        self.inner.window_size()
    }

    fn flush(&mut self) -> io::Result<()> {
        Backend::flush(&mut self.inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ratatui::buffer::Buffer;
    use ratatui::layout::Rect;

    const SIZE: (u16, u16) = (24, 6);

    /// Writer that keeps a shared copy of everything written.
    #[derive(Clone, Default)]
    struct Sent(std::rc::Rc<std::cell::RefCell<Vec<u8>>>);

    impl Sent {
        fn take(&self) -> Vec<u8> {
            self.0.take()
        }
    }

    impl Write for Sent {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Text or a space at a position, in one of a few styles.
    fn pieces() -> impl Strategy<Value = Vec<(u16, u16, String, usize)>> {
        prop::collection::vec((0..SIZE.0, 0..SIZE.1, "[a-c ]{1,9}| {10,16}|│|█|漢", 0_usize..STYLES.len()), 0..14)
    }

    const STYLES: [(Color, Color, Modifier); 7] = [
        (Color::Reset, Color::Reset, Modifier::empty()),
        (Color::Red, Color::Reset, Modifier::BOLD),
        (Color::Red, Color::Reset, Modifier::DIM),
        (Color::Rgb(1, 2, 3), Color::Reset, Modifier::UNDERLINED),
        (Color::Indexed(99), Color::LightBlue, Modifier::ITALIC),
        (Color::White, Color::Rgb(9, 8, 7), Modifier::REVERSED),
        (Color::Reset, Color::Indexed(4), Modifier::BOLD.union(Modifier::UNDERLINED)),
    ];

    fn buffer(pieces: &[(u16, u16, String, usize)]) -> Buffer {
        let mut buffer = Buffer::empty(Rect::new(0, 0, SIZE.0, SIZE.1));
        for (x, y, text, style) in pieces {
            let (fg, bg, modifier) = STYLES[*style];
            // A vertical line fills the column.
            let rows = if text == "│" { *y..SIZE.1 } else { *y..*y + 1 };
            for y in rows {
                // Half of a wide character cannot remain.
                if let Some(half) = x.checked_sub(1).and_then(|x| buffer.cell_mut((x, y))).filter(|c| is_wide(c)) {
                    half.set_symbol(" ");
                }
                buffer.set_string(*x, y, text, ratatui::style::Style::reset().fg(fg).bg(bg).add_modifier(modifier));
            }
        }
        buffer
    }

    fn color_of(color: Color) -> vt100::Color {
        match color {
            Color::Red => vt100::Color::Idx(1),
            Color::LightBlue => vt100::Color::Idx(12),
            Color::White => vt100::Color::Idx(15),
            Color::Indexed(i) => vt100::Color::Idx(i),
            Color::Rgb(r, g, b) => vt100::Color::Rgb(r, g, b),
            _ => vt100::Color::Default,
        }
    }

    proptest! {
        #[test]
        fn the_terminal_shows_what_the_buffer_holds(frames in prop::collection::vec(pieces(), 1..5)) {
            let sent = Sent::default();
            let mut backend = CompactBackend::new(sent.clone(), SIZE);
            let mut terminal = vt100::Parser::new(SIZE.1.try_into().unwrap(), SIZE.0.try_into().unwrap(), 0);
            let mut before = buffer(&[]);
            for pieces in frames {
                let next = buffer(&pieces);
                backend.draw(before.diff(&next).into_iter()).unwrap();
                terminal.process(&sent.take());
                for (y, x) in (0..SIZE.1).flat_map(|y| (0..SIZE.0).map(move |x| (y, x))) {
                    let (cell, want) = (terminal.screen().cell(y, x).unwrap(), next.cell((x, y)).unwrap());
                    if cell.is_wide_continuation() {
                        continue;
                    }
                    let text = if cell.has_contents() { cell.contents() } else { " " };
                    prop_assert_eq!(text, want.symbol(), "row {} column {}", y, x);
                    let has = |m| want.modifier.contains(m);
                    prop_assert_eq!(
                        (cell.bgcolor(), cell.inverse(), cell.underline()),
                        (color_of(want.bg), has(Modifier::REVERSED), has(Modifier::UNDERLINED)),
                        "row {} column {}", y, x
                    );
                    if !plain_blank(want) {
                        prop_assert_eq!(
                            (cell.fgcolor(), cell.bold(), cell.dim(), cell.italic()),
                            (color_of(want.fg), has(Modifier::BOLD), has(Modifier::DIM), has(Modifier::ITALIC)),
                            "row {} column {}", y, x
                        );
                    }
                }
                before = next;
            }
        }
    }

    #[test]
    fn a_colour_is_sent_once() {
        let sent = Sent::default();
        let mut backend = CompactBackend::new(sent.clone(), SIZE);
        let (red, blue) = ((Color::Red, Modifier::BOLD), (Color::Blue, Modifier::empty()));
        let mut next = buffer(&[]);
        for (at, (fg, modifier)) in [red, blue, red, blue].into_iter().enumerate() {
            let style = ratatui::style::Style::default().fg(fg).add_modifier(modifier);
            next.set_string(at as u16 * 6, 0, "ab", style);
        }
        let before = buffer(&[]);
        backend.draw(before.diff(&next).into_iter()).unwrap();
        let text = String::from_utf8(sent.take()).unwrap();
        assert_eq!(text, "\x1b[1;31m\x1b[1;1Hab\x1b[13Gab\x1b[22;34m\x1b[1;7Hab\x1b[19Gab\x1b[m");
    }
}
