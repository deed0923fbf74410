//! Help page: keys of this screen, global keys, and the glossary, in two columns if there is room.

use super::glossary::GLOSSARY;
use super::text::{align_left, fit_parts, part, wrap_text};
use super::{Role, Theme};
use crate::analysis::Family;
use crate::analysis::labels::display_width;
use crate::app::{ACTIONS, ActionId, App, KeyScope};
use crate::config::keys::Key;
use crate::config::keys::spell_out_keys;
use ratatui::text::{Line, Span};

/// Minimum width for two lists side by side.
const TWO: usize = 92;
/// Width of the key column.
const KEYS: usize = 9;
/// Maximum number of keys listed per action; `warpscope help keys` lists all of them.
const NAMED: usize = 3;

/// Actions of one group with their keys and a short description.
fn action_lines(
    app: &App,
    title: &str,
    which: impl Fn(ActionId, KeyScope) -> bool,
    (columns, ascii): (usize, bool),
    theme: &Theme,
) -> Vec<Line<'static>> {
    let mut out = Vec::new();
    // Sort by footer priority; actions that the footer never shows, such as movement, come last.
    let mut actions: Vec<_> = ACTIONS.iter().filter(|a| which(a.id, a.on)).collect();
    actions.sort_by_key(|a| a.footer.map_or(u8::MAX, |f| f.0));
    for action in actions {
        let keys: Vec<String> = app.session.settings.keymap.keys(action.id).iter().take(NAMED).map(Key::label).collect();
        if keys.is_empty() {
            continue;
        }
        let mut keys = keys.join(" ");
        let shown = |keys: String| if ascii { spell_out_keys(&keys) } else { keys };
        keys = shown(keys);
        if display_width(&keys) >= KEYS {
            keys = shown(app.session.key_label(action.id));
        }
        push_entry(&mut out, &keys, action.help, columns, theme);
    }
    if !out.is_empty() {
        out.insert(0, Line::styled(title.to_owned(), theme.style(Role::Title)));
        out.push(Line::default());
    }
    out
}

fn push_entry(out: &mut Vec<Line<'static>>, word: &str, meaning: &str, columns: usize, theme: &Theme) {
    for (at, line) in wrap_text(meaning, columns.saturating_sub(KEYS + 1).max(16)).into_iter().enumerate() {
        let word = if at == 0 { word } else { "" };
        out.push(Line::from(vec![
            Span::styled(align_left(word, KEYS), theme.style(Role::Key)),
            Span::styled(format!(" {line}"), theme.style(Role::Text)),
        ]));
    }
}

/// Explanation of signs, terms and colors.
fn glossary_lines(columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut out = vec![Line::styled("Signs and words", theme.style(Role::Title))];
    for (word, meaning) in GLOSSARY {
        push_entry(&mut out, word, meaning, columns, theme);
    }
    out.push(Line::default());
    out.push(Line::styled("Families, guessed from the name", theme.style(Role::Title)));
    let mut line = Line::default();
    for family in Family::ALL {
        let style = theme.family_style(family);
        let swatch = if style.fg.is_some() { "▌" } else { "" };
        let spans = [Span::styled(swatch, style), Span::styled(format!("{}  ", family.display_name()), theme.style(Role::Text))];
        if line.width() + spans.iter().map(Span::width).sum::<usize>() > columns {
            out.push(std::mem::take(&mut line));
        }
        line.spans.extend(spans);
    }
    out.push(line);
    out.push(Line::default());
    for text in [
        "spread: standard deviation over mean. durations: histogram from min to max, log scale.",
        "span: from the first operation on a GPU to the last, or from the first step if that begins earlier.",
        "busy: share of the span in which a GPU was running something, averaged over the GPUs in use. idle gaps: over 10 µs without a kernel, memcpy or memset.",
        "ncu's durations differ from the timeline's: ncu flushes caches and locks clocks.",
        "roofline: ● work per byte of device memory traffic, ◆ of L2, ▲ of L1; other results show device memory only; ◂ ▸ ▾ are off the chart.",
        "hints: 40–59% is what the change is expected to save of the kernel's time; at most 90%, or ≤90%, is a bound and no estimate.",
        "mouse: click to select and open, wheel to scroll; column headers, keys in the last line and sections can be clicked.",
    ] {
        out.extend(wrap_text(text, columns).into_iter().map(|l| Line::styled(l, theme.style(Role::Dim))));
    }
    out
}

/// Places two lists side by side.
fn join_columns(a: Vec<Line<'static>>, b: Vec<Line<'static>>, columns: usize) -> Vec<Line<'static>> {
    let rows = a.len().max(b.len());
    let (mut a, mut b) = (a.into_iter(), b.into_iter());
    (0..rows)
        .map(|_| {
            let mut line = a.next().unwrap_or_default();
            // Move the line's style to its spans: as the style of the joined line, it would also apply to the text
            // beside it.
            let own = std::mem::take(&mut line.style);
            line.spans.iter_mut().for_each(|s| s.style = own.patch(s.style));
            let beside = b.next().unwrap_or_default();
            let pad = columns.saturating_sub(line.width());
            line.push_span(Span::raw(" ".repeat(pad + 3)));
            line.spans.extend(beside.spans.into_iter().map(|s| Span::styled(s.content, beside.style.patch(s.style))));
            line
        })
        .collect()
}

/// The keys that lead through all screens, in one line.
fn first_keys(app: &App, columns: usize, ascii: bool, theme: &Theme) -> Line<'static> {
    let words = [
        (ActionId::Down, "next"),
        (ActionId::Open, "leads on"),
        (ActionId::Back, "leads back"),
        (ActionId::Palette, "finds any action"),
        (ActionId::Quit, "quits"),
    ];
    let key = |id| if ascii { spell_out_keys(&app.session.key_label(id)) } else { app.session.key_label(id) };
    let say = |(id, word): (ActionId, &'static str)| {
        part(1, vec![Span::styled(key(id), theme.style(Role::Key)), Span::styled(format!(" {word}"), theme.style(Role::Text))])
    };
    fit_parts(words.into_iter().map(say).collect(), &Span::raw("   "), columns)
}

/// Help page for the current screen, `columns` wide.
pub fn page(app: &App, columns: usize, ascii: bool, theme: &Theme) -> Vec<Line<'static>> {
    let here = app.current_scope();
    let two = columns >= TWO;
    let each = if two { (columns - 3) / 2 } else { columns };
    let title = format!("Here: {}", here.as_str());
    let own_keys = |_, on: KeyScope| on != KeyScope::Everywhere && on.applies_to(here);
    let mut own = action_lines(app, &title, own_keys, (each, ascii), theme);
    own.extend(action_lines(app, "Everywhere", |_, on| on == KeyScope::Everywhere, (each, ascii), theme));
    let signs = glossary_lines(each, theme);
    let mut out = vec![first_keys(app, columns, ascii, theme), Line::default()];
    out.extend(if two { join_columns(own, signs, each) } else { own.into_iter().chain(signs).collect() });
    out.push(Line::default());
    out.push(Line::styled(
        "t begins or ends a tour of five steps; `warpscope help keys` lists all keys, `warpscope help` explains more",
        theme.style(Role::Dim),
    ));
    out
}
