//! Text helpers: bars, sparklines, and lines that drop parts when room is short.

use super::{Role, Theme};
use crate::analysis::labels::{cut_end, display_width};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

/// Horizontal bar of `columns` columns, filled to `share` (0 to 1) in eighths; the empty part is faint.
pub fn bar(share: f64, columns: usize, style: Style, theme: &Theme) -> Vec<Span<'static>> {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * columns as f64 * 8.0).round() as usize;
    // Draw at least one eighth for a non-zero share.
    let eighths = if share > 0.0 { eighths.max(1) } else { eighths };
    let (full, part) = (eighths / 8, eighths % 8);
    let filled = format!("{}{}", "█".repeat(full), EIGHTHS[part]);
    let rest = columns.saturating_sub(full + usize::from(part > 0));
    vec![Span::styled(filled, style), Span::styled(" ".repeat(rest), theme.style(Role::BarEmpty))]
}

/// Shades the empty part of a bar, so that its full length is visible.
pub fn shade_track(mut bar: Vec<Span<'static>>) -> Vec<Span<'static>> {
    if let Some(rest) = bar.last_mut() {
        rest.content = rest.content.replace(' ', "░").into();
    }
    bar
}

/// Counts as eighth blocks, one column each, relative to the largest count; non-zero counts are always visible.
pub fn sparkline(counts: &[u32]) -> String {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = counts.iter().copied().max().unwrap_or(0);
    counts
        .iter()
        .map(|&n| if n == 0 || most == 0 { ' ' } else { LEVELS[((f64::from(n) / f64::from(most) * 8.0).ceil() as usize).clamp(1, 8) - 1] })
        .collect()
}

/// Part of a line; if room is short, the parts with the highest rank are dropped first.
#[derive(Clone, Debug)]
pub struct LinePart {
    /// Drop order; a part with rank 0 is never dropped.
    pub rank: u8,
    pub spans: Vec<Span<'static>>,
}

/// Creates a part from styled spans.
pub fn part(rank: u8, spans: Vec<Span<'static>>) -> LinePart {
    LinePart { rank, spans }
}

fn part_width(part: &LinePart) -> usize {
    part.spans.iter().map(|s| display_width(&s.content)).sum()
}

/// Joins parts like [`fit_parts`]; also returns the start and width of each remaining part.
pub fn fit_placed<T>(parts: Vec<(T, LinePart)>, separator: &Span<'static>, columns: usize) -> (Line<'static>, Vec<(T, usize, usize)>) {
    let gap = display_width(&separator.content);
    let mut kept = parts;
    let total = |all: &[(T, LinePart)]| all.iter().map(|p| part_width(&p.1)).sum::<usize>() + gap * all.len().saturating_sub(1);
    while total(&kept) > columns {
        // Among parts of equal rank, drop the last one first.
        let worst = kept.iter().enumerate().max_by_key(|(i, p)| (p.1.rank, *i)).filter(|(_, p)| p.1.rank > 0).map(|(i, _)| i);
        let Some(worst) = worst else { break };
        kept.remove(worst);
    }
    let mut at = 0;
    let mut places = Vec::new();
    let mut parts = Vec::new();
    for (what, part) in kept {
        let wide = part_width(&part);
        places.push((what, at, wide));
        at += wide + gap;
        parts.push(part);
    }
    (fit_parts(parts, separator, columns), places)
}

/// Joins parts with a separator, dropping the least important until the line fits.
pub fn fit_parts(mut parts: Vec<LinePart>, separator: &Span<'static>, columns: usize) -> Line<'static> {
    let gap = display_width(&separator.content);
    parts.retain(|p| part_width(p) > 0);
    loop {
        let total: usize = parts.iter().map(part_width).sum::<usize>() + gap * parts.len().saturating_sub(1);
        if total <= columns {
            break;
        }
        // Among parts of equal rank, drop the last one first.
        let worst = parts.iter().enumerate().max_by_key(|(i, p)| (p.rank, *i)).filter(|(_, p)| p.rank > 0).map(|(i, _)| i);
        match worst {
            Some(i) => {
                parts.remove(i);
            }
            None => break,
        }
    }
    let mut spans = Vec::new();
    let mut left = columns;
    for (i, part) in parts.into_iter().enumerate() {
        if i > 0 {
            spans.push(separator.clone());
            left = left.saturating_sub(gap);
        }
        for span in part.spans {
            let text = cut_end(&span.content, left);
            left -= display_width(&text);
            spans.push(Span::styled(text, span.style));
        }
    }
    Line::from(spans)
}

/// Right-aligns text in a field; truncates text that is too long.
pub fn align_right(text: &str, columns: usize) -> String {
    let text = cut_end(text, columns);
    format!("{}{text}", " ".repeat(columns - display_width(&text)))
}

/// Left-aligns text in a field; truncates text that is too long.
pub fn align_left(text: &str, columns: usize) -> String {
    let text = cut_end(text, columns);
    let pad = columns - display_width(&text);
    format!("{text}{}", " ".repeat(pad))
}

/// Highlights some characters of a string; `at` contains their indices in ascending order.
pub fn highlight_chars(text: &str, at: &[usize], plain: Style, lit: Style) -> Vec<Span<'static>> {
    let mut out: Vec<Span<'static>> = Vec::new();
    let mut run = String::new();
    let mut run_lit = false;
    for (i, c) in text.chars().enumerate() {
        let now = at.binary_search(&i).is_ok();
        if now != run_lit && !run.is_empty() {
            out.push(Span::styled(std::mem::take(&mut run), if run_lit { plain.patch(lit) } else { plain }));
        }
        run_lit = now;
        run.push(c);
    }
    if !run.is_empty() {
        out.push(Span::styled(run, if run_lit { plain.patch(lit) } else { plain }));
    }
    out
}

/// Splits a C++ name where it may be wrapped: after a space, a comma, an opening bracket or `::`.
fn split_at_breaks(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest
            .char_indices()
            .find(|&(i, c)| matches!(c, ' ' | ',' | '<' | '(') || (c == ':' && i > 0 && rest[..i].ends_with(':')))
            .map_or(rest.len(), |(i, c)| i + c.len_utf8());
        let (word, tail) = rest.split_at(end);
        rest = tail;
        Some(word)
    })
}

/// Wraps text at spaces. A word longer than a line is broken at commas, brackets and `::`, or anywhere if there are
/// none.
pub fn wrap_text(text: &str, columns: usize) -> Vec<String> {
    use unicode_segmentation::UnicodeSegmentation;
    let columns = columns.max(1);
    let mut out = vec![String::new()];
    let mut used = 0;
    let words = text.split_inclusive(' ').flat_map(|word| {
        let fits = display_width(word.trim_end()) <= columns;
        std::iter::once(word).filter(move |_| fits).chain(split_at_breaks(word).filter(move |_| !fits))
    });
    for word in words {
        let visible = display_width(word.trim_end());
        if used > 0 && used + visible > columns {
            out.push(String::new());
            used = 0;
        }
        for g in word.graphemes(true) {
            let w = display_width(g);
            if used + w > columns {
                if g == " " {
                    continue;
                }
                out.push(String::new());
                used = 0;
            }
            if let Some(line) = out.last_mut() {
                line.push_str(g);
            }
            used += w;
        }
    }
    out.iter().map(|l| l.trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_fill_in_eighths_and_never_vanish() {
        let theme = super::super::theme::Library::new(Vec::new()).theme("mono", crate::config::ColorMode::None).unwrap();
        let text = |share| bar(share, 4, Style::default(), &theme).iter().map(|s| s.content.to_string()).collect::<String>();
        assert_eq!(text(0.5), "██  ");
        assert_eq!(text(0.001), "▏   ");
        assert_eq!(text(1.0), "████");
        assert_eq!(text(0.0), "    ");
        assert_eq!(sparkline(&[0, 1, 100, 50]), " ▁█▄");
    }

    #[test]
    fn parts_drop_by_rank_until_they_fit() {
        let p = |rank, t: &str| part(rank, vec![Span::raw(t.to_owned())]);
        let line = |n| fit_parts(vec![p(0, "file"), p(2, "tool"), p(1, "gpu")], &Span::raw(" · "), n).to_string();
        assert_eq!(line(40), "file · tool · gpu");
        assert_eq!(line(12), "file · gpu");
        assert_eq!(line(5), "file");
        assert_eq!(line(3), "fi…");
    }

    #[test]
    fn wrapping_keeps_every_letter() {
        let text = "void at::native::vectorized<float, (int)4, averyveryverylongargument>(int, T1 *)";
        for columns in [7, 20, 33, 100] {
            let lines = wrap_text(text, columns);
            assert!(lines.iter().all(|l| display_width(l) <= columns), "{lines:?}");
            assert_eq!(lines.concat().replace(' ', ""), text.replace(' ', ""));
        }
    }
}
