//! Exports the screen as a text, HTML or SVG file that looks like the terminal.

use super::theme::Theme;
use super::view::View;
use crate::analysis::labels::display_width;
use crate::app::App;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use std::fmt::Write as _;

/// Format of an exported file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Text,
    Html,
    Svg,
}

impl Form {
    /// Format that matches a file name's extension; `None` if the extension is unknown.
    pub fn from_file_name(name: &str) -> Option<Self> {
        match name.rsplit_once('.')?.1.to_ascii_lowercase().as_str() {
            "txt" | "text" => Some(Self::Text),
            "html" | "htm" => Some(Self::Html),
            "svg" => Some(Self::Svg),
            _ => None,
        }
    }
}

/// Size of a cell in a 14-pixel monospaced font, in pixels.
const CELL: (f64, f64) = (8.4, 17.0);
/// Default text and background colors for dark and light themes, which leave them to the terminal.
const DARK: [&str; 2] = ["#d7d7d7", "#111418"];
const LIGHT: [&str; 2] = ["#24292f", "#ffffff"];
const FONTS: &str = "'DejaVu Sans Mono','Menlo','Consolas',monospace";

/// Renders the current screen in the format `form`.
pub fn export_screen(app: &App, view: &mut View, theme: &Theme, light: bool, form: Form) -> String {
    let (columns, rows) = app.session.size;
    let Ok(mut terminal) = Terminal::new(TestBackend::new(columns, rows));
    let Ok(drawn) = terminal.draw(|frame| super::draw(frame, app, view, theme));
    let buffer = drawn.buffer;
    match form {
        Form::Text => to_text(buffer),
        Form::Html => to_html(buffer, light),
        Form::Svg => to_svg(buffer, light),
    }
}

/// Cells of a row, without the cells covered by a wide character.
fn row_cells(buffer: &Buffer, y: u16) -> Vec<(u16, &Cell)> {
    let area = buffer.area;
    let (mut out, mut x) = (Vec::new(), area.left());
    while x < area.right() {
        let Some(cell) = buffer.cell((x, y)) else { break };
        out.push((x, cell));
        x += u16::try_from(display_width(cell.symbol()).max(1)).unwrap_or(1);
    }
    out
}

fn to_text(buffer: &Buffer) -> String {
    let line = |y| row_cells(buffer, y).iter().map(|(_, c)| c.symbol()).collect::<String>().trim_end().to_owned();
    let mut lines: Vec<String> = (buffer.area.top()..buffer.area.bottom()).map(line).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines.join("\n") + "\n"
}

/// The sixteen colors of a terminal, with xterm's values.
const SIXTEEN: [u32; 16] = [
    0x00_00_00, 0xcd_00_00, 0x00_cd_00, 0xcd_cd_00, 0x1e_90_ff, 0xcd_00_cd, 0x00_cd_cd, 0xe5_e5_e5, 0x7f_7f_7f, 0xff_00_00, 0x00_ff_00,
    0xff_ff_00, 0x5c_5c_ff, 0xff_00_ff, 0x00_ff_ff, 0xff_ff_ff,
];

/// Converts a color to `#rrggbb`; `None` if it is the terminal's default.
fn to_hex(of: Color) -> Option<String> {
    let numbered = |n: u8| match n {
        0..=15 => SIXTEEN[usize::from(n)],
        16..=231 => {
            let n = u32::from(n) - 16;
            let level = |l: u32| if l == 0 { 0 } else { 55 + 40 * l };
            level(n / 36) << 16 | level(n / 6 % 6) << 8 | level(n % 6)
        }
        232..=255 => (8 + 10 * (u32::from(n) - 232)) * 0x01_01_01,
    };
    let value = match of {
        Color::Reset => return None,
        Color::Rgb(r, g, b) => u32::from(r) << 16 | u32::from(g) << 8 | u32::from(b),
        Color::Indexed(n) => numbered(n),
        Color::Black => numbered(0),
        Color::Red => numbered(1),
        Color::Green => numbered(2),
        Color::Yellow => numbered(3),
        Color::Blue => numbered(4),
        Color::Magenta => numbered(5),
        Color::Cyan => numbered(6),
        Color::Gray => numbered(7),
        Color::DarkGray => numbered(8),
        Color::LightRed => numbered(9),
        Color::LightGreen => numbered(10),
        Color::LightYellow => numbered(11),
        Color::LightBlue => numbered(12),
        Color::LightMagenta => numbered(13),
        Color::LightCyan => numbered(14),
        Color::White => numbered(15),
    };
    Some(format!("#{value:06x}"))
}

/// Style of a piece of a row: text color, background and modifiers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Look {
    text: String,
    ground: Option<String>,
    modifier: Modifier,
}

fn cell_look(cell: &Cell, own: [&str; 2]) -> Look {
    let (text, ground) = (to_hex(cell.fg).unwrap_or_else(|| own[0].to_owned()), to_hex(cell.bg));
    let modifier = cell.modifier & (Modifier::BOLD | Modifier::DIM | Modifier::ITALIC | Modifier::UNDERLINED);
    if cell.modifier.contains(Modifier::REVERSED) {
        return Look { text: ground.unwrap_or_else(|| own[1].to_owned()), ground: Some(text), modifier };
    }
    Look { text, ground, modifier }
}

/// Pieces of a row, each with a single style: first column, width, text, style.
fn styled_pieces(buffer: &Buffer, y: u16, own: [&str; 2]) -> Vec<(u16, u16, String, Look)> {
    let mut out: Vec<(u16, u16, String, Look)> = Vec::new();
    for (x, cell) in row_cells(buffer, y) {
        let (look, wide) = (cell_look(cell, own), u16::try_from(display_width(cell.symbol()).max(1)).unwrap_or(1));
        match out.last_mut() {
            Some((_, columns, text, of)) if *of == look => {
                *columns += wide;
                text.push_str(cell.symbol());
            }
            _ => out.push((x, wide, cell.symbol().to_owned(), look)),
        }
    }
    out
}

fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn to_css(look: &Look) -> String {
    let mut out = format!("color:{}", look.text);
    if let Some(ground) = &look.ground {
        let _ = write!(out, ";background:{ground}");
    }
    for (modifier, rule) in [
        (Modifier::BOLD, ";font-weight:bold"),
        (Modifier::DIM, ";opacity:.7"),
        (Modifier::ITALIC, ";font-style:italic"),
        (Modifier::UNDERLINED, ";text-decoration:underline"),
    ] {
        if look.modifier.contains(modifier) {
            out.push_str(rule);
        }
    }
    out
}

fn to_html(buffer: &Buffer, light: bool) -> String {
    let own = if light { LIGHT } else { DARK };
    let mut out = format!(
        "<!doctype html>\n<meta charset=\"utf-8\"><title>warpscope</title>\n<style>body{{margin:1em;background:{}}}pre{{font:14px/1.2 {FONTS};color:{}}}</style>\n<pre>\n",
        own[1], own[0]
    );
    for y in buffer.area.top()..buffer.area.bottom() {
        for (_, _, text, look) in styled_pieces(buffer, y, own) {
            if text.trim().is_empty() && look.ground.is_none() {
                out.push_str(&text);
            } else {
                let _ = write!(out, "<span style=\"{}\">{}</span>", to_css(&look), escape_html(&text));
            }
        }
        out.push('\n');
    }
    out + "</pre>\n"
}

/// Splits text at runs of spaces, because not all viewers preserve spaces; each piece has its first column.
fn split_words(text: &str) -> Vec<(usize, &str)> {
    let mut out = Vec::new();
    let (mut column, mut rest) = (0, text);
    loop {
        let trimmed = rest.trim_start_matches(' ');
        column += rest.len() - trimmed.len();
        if trimmed.is_empty() {
            return out;
        }
        let end = trimmed.find("  ").unwrap_or_else(|| trimmed.trim_end_matches(' ').len());
        out.push((column, &trimmed[..end]));
        column += display_width(&trimmed[..end]);
        rest = &trimmed[end..];
    }
}

fn to_svg(buffer: &Buffer, light: bool) -> String {
    let own = if light { LIGHT } else { DARK };
    let (wide, tall) = (f64::from(buffer.area.width) * CELL.0 + 16.0, f64::from(buffer.area.height) * CELL.1 + 16.0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {wide:.1} {tall:.1}\" width=\"{wide:.0}\" height=\"{tall:.0}\" font-family=\"{FONTS}\" font-size=\"14\">\n<rect width=\"100%\" height=\"100%\" fill=\"{}\"/>\n",
        own[1]
    );
    for y in buffer.area.top()..buffer.area.bottom() {
        let top = 8.0 + f64::from(y) * CELL.1;
        for (x, columns, text, look) in styled_pieces(buffer, y, own) {
            let (left, length) = (8.0 + f64::from(x) * CELL.0, f64::from(columns) * CELL.0);
            if let Some(ground) = &look.ground {
                let _ =
                    writeln!(out, "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{length:.1}\" height=\"{}\" fill=\"{ground}\"/>", CELL.1);
            }
            let mut more = String::new();
            for (modifier, attribute) in [
                (Modifier::BOLD, " font-weight=\"bold\""),
                (Modifier::DIM, " opacity=\"0.7\""),
                (Modifier::ITALIC, " font-style=\"italic\""),
                (Modifier::UNDERLINED, " text-decoration=\"underline\""),
            ] {
                if look.modifier.contains(modifier) {
                    more.push_str(attribute);
                }
            }
            for (skipped, words) in split_words(&text) {
                // Positioning every character keeps the columns aligned in any font and viewer.
                let mut at = left + skipped as f64 * CELL.0;
                let mut places = String::new();
                for c in words.chars() {
                    let _ = write!(places, "{at:.1} ");
                    at += display_width(c.encode_utf8(&mut [0; 4])) as f64 * CELL.0;
                }
                let (places, words) = (places.trim_end(), escape_html(words));
                let _ = writeln!(out, "<text x=\"{places}\" y=\"{:.1}\" fill=\"{}\"{more}>{words}</text>", top + 13.0, look.text);
            }
        }
    }
    out + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::style::Style;

    #[test]
    fn a_row_keeps_its_columns_colours_and_hostile_names() {
        let mut buffer = Buffer::empty(ratatui::layout::Rect::new(0, 0, 12, 2));
        buffer.set_string(0, 0, "日 <k&>", Style::new().fg(Color::Indexed(196)).add_modifier(Modifier::BOLD));
        buffer.set_string(8, 0, "x", Style::new().fg(Color::Rgb(1, 2, 3)).bg(Color::Blue));
        assert_eq!(to_text(&buffer), "日 <k&> x\n");
        let page = to_html(&buffer, false);
        assert!(page.contains("<span style=\"color:#ff0000;font-weight:bold\">日 &lt;k&amp;&gt;</span>"), "{page}");
        assert!(page.contains("<span style=\"color:#010203;background:#1e90ff\">x</span>"), "{page}");
        let picture = to_svg(&buffer, true);
        assert!(picture.contains("x=\"8.0 24.8") && picture.contains("x=\"75.2\"") && picture.contains("fill=\"#1e90ff\""), "{picture}");
        assert!(!picture.contains("<k&>"));
        assert_eq!(split_words("  a b   c  "), [(2, "a b"), (8, "c")]);
    }

    #[test]
    fn forms_by_endings() {
        let of = |name: &str| Form::from_file_name(name);
        assert_eq!(
            (of("a.SVG"), of("a.b.html"), of("a.txt"), of("a.png"), of("a")),
            (Some(Form::Svg), Some(Form::Html), Some(Form::Text), None, None)
        );
    }
}
