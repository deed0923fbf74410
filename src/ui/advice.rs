//! Overlay with hints for an unprofiled launch: findings from its launch shape, suggested changes, and the
//! command that confirms them.

use super::parts::{glyph, pairs};
use super::text::wrap;
use super::{Role, Theme};
use crate::analysis::hints::{Evidence, Hint};
use crate::model::text::clean;
use crate::model::units;
use crate::report::hints::{Advice, nothing, value};
use ratatui::text::{Line, Span};

/// Width of the label column.
const WORD: usize = 10;

#[must_use]
pub fn lines(advice: &Advice, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let subject = &advice.subject;
    let mut out = vec![Line::from(vec![
        Span::styled(clean(subject.kernel.function()).into_owned(), theme.style(Role::Title)),
        Span::styled(format!("  launch {}, not profiled", units::grouped(i64::from(subject.launch))), theme.style(Role::Dim)),
    ])];
    for (at, hint) in subject.hints.iter().enumerate() {
        out.push(Line::default());
        out.extend(one(hint, columns, theme));
        // Hints of one launch often share a command: print it only once.
        if let Some(command) = advice.commands.get(at).and_then(Option::as_deref).filter(|c| !told(advice, at, c)) {
            let words = [("confirm", hint.confirm.why.as_str())];
            out.extend(pairs(words, (WORD, columns), theme.style(Role::Dim), theme.style(Role::Text)));
            out.extend(pairs([("", command)], (WORD, columns), theme.style(Role::Dim), theme.style(Role::Key)));
        }
    }
    if subject.hints.is_empty() {
        out.push(Line::default());
        out.extend(wrap(&clean(&nothing(subject)), columns).into_iter().map(|l| Line::styled(l, theme.style(Role::Text))));
    }
    if !advice.reasoning.is_empty() {
        out.push(Line::default());
        out.push(Line::styled("what is known", theme.style(Role::Head)));
        for line in &advice.reasoning {
            out.extend(wrap(&clean(line), columns).into_iter().map(|l| Line::styled(l, theme.style(Role::Dim))));
        }
    }
    out
}

/// Returns true if an earlier hint already shows `command`.
fn told(advice: &Advice, at: usize, command: &str) -> bool {
    advice.commands.iter().take(at).flatten().any(|c| c == command)
}

/// Renders a hint: id, potential gain, evidence, and suggested change.
fn one(hint: &Hint, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let (dim, text) = (theme.style(Role::Dim), theme.style(Role::Text));
    let (mark, role) = glyph(hint.severity);
    let mut out = vec![Line::from(vec![
        Span::styled(format!("{mark} {}", hint.id.id()), theme.style(role)),
        Span::styled(format!("  {}, {}", hint.sure.word(), hint.promise()), dim),
    ])];
    out.extend(wrap(&clean(&hint.headline), columns).into_iter().map(|l| Line::styled(l, text)));
    let figures: Vec<String> = hint.evidence.iter().map(|e: &Evidence| format!("{} {}", e.label, value(e))).collect();
    out.extend(pairs([("evidence", figures.join(", ").as_str())], (WORD, columns), dim, text));
    let changes = hint.actions.iter().enumerate().map(|(i, a)| (if i == 0 { "change" } else { "" }, a.as_str()));
    out.extend(pairs(changes, (WORD, columns), dim, theme.style(Role::Next)));
    out
}
