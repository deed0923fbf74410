//! Overlay with hints for an unprofiled launch: findings from its launch shape, suggested changes, and the
//! command that confirms them.

use super::text::wrap_text;
use super::widgets::{key_value_lines, severity_glyph};
use super::{Role, Theme};
use crate::analysis::hints::{Evidence, Hint};
use crate::analysis::readable::readable_name;
use crate::model::text::escape_unsafe;
use crate::model::units;
use crate::report::hints::{Advice, format_value, no_hints_reason};
use ratatui::text::{Line, Span};

/// Width of the label column.
const WORD: usize = 10;

pub fn lines(advice: &Advice, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let subject = &advice.subject;
    let mut out = vec![Line::from(vec![
        Span::styled(escape_unsafe(&readable_name(&subject.kernel)).into_owned(), theme.style(Role::Title)),
        Span::styled(format!("  launch {}, not profiled", units::format_grouped(i64::from(subject.launch))), theme.style(Role::Dim)),
    ])];
    for (at, hint) in subject.hints.iter().enumerate() {
        out.push(Line::default());
        out.extend(hint_lines(hint, columns, theme));
        // Several hints on a launch often share a command: print it only once.
        if let Some(command) = advice.commands.get(at).and_then(Option::as_deref).filter(|c| !is_already_shown(advice, at, c)) {
            let words = [("confirm", hint.confirm.why.as_str())];
            out.extend(key_value_lines(words, (WORD, columns), theme.style(Role::Dim), theme.style(Role::Text)));
            out.extend(key_value_lines([("", command)], (WORD, columns), theme.style(Role::Dim), theme.style(Role::Key)));
        }
    }
    if subject.hints.is_empty() {
        out.push(Line::default());
        out.extend(
            wrap_text(&escape_unsafe(&no_hints_reason(subject)), columns).into_iter().map(|l| Line::styled(l, theme.style(Role::Text))),
        );
    }
    if !advice.reasoning.is_empty() {
        out.push(Line::default());
        out.push(Line::styled("what is known", theme.style(Role::Head)));
        for line in &advice.reasoning {
            out.extend(wrap_text(&escape_unsafe(line), columns).into_iter().map(|l| Line::styled(l, theme.style(Role::Dim))));
        }
    }
    out
}

/// Returns true if an earlier hint already shows `command`.
fn is_already_shown(advice: &Advice, at: usize, command: &str) -> bool {
    advice.commands.iter().take(at).flatten().any(|c| c == command)
}

/// Renders a hint: id, potential gain, evidence, and suggested change.
fn hint_lines(hint: &Hint, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let (dim, text) = (theme.style(Role::Dim), theme.style(Role::Text));
    let (mark, role) = severity_glyph(hint.severity);
    let mut out = vec![Line::from(vec![
        Span::styled(format!("{mark} {}", hint.id.id()), theme.style(role)),
        Span::styled(format!("  {}, {}", hint.sure.as_str(), hint.gain_text()), dim),
    ])];
    out.extend(wrap_text(&escape_unsafe(&hint.headline), columns).into_iter().map(|l| Line::styled(l, text)));
    let figures: Vec<String> = hint.evidence.iter().map(|e: &Evidence| format!("{} {}", e.name, format_value(e))).collect();
    out.extend(key_value_lines([("evidence", figures.join(", ").as_str())], (WORD, columns), dim, text));
    let changes = hint.actions.iter().enumerate().map(|(i, a)| (if i == 0 { "change" } else { "" }, a.as_str()));
    out.extend(key_value_lines(changes, (WORD, columns), dim, theme.style(Role::Next)));
    out
}
