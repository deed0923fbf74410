//! Steps of a guided run: progress, and the command of the next step.

use super::text::wrap_text;
use super::{Role, Theme};
use crate::analysis::labels::cut_end;
use crate::app::{ActionId, App, Watched};
use crate::model::text::escape_unsafe;
use crate::report::runs::format_clock;
use crate::rerun::shell;
use ratatui::text::{Line, Span};

/// Maximum number of lines for the next step's command.
const COMMAND: usize = 2;

/// Lines with the steps and the key that ends a step; empty if the run has no steps or has ended.
pub fn lines(screen: &Watched, stop: &str, theme: &Theme, columns: usize) -> Vec<Line<'static>> {
    let (steps, next) = screen.steps();
    if steps.is_empty() || !screen.is_live() {
        return Vec::new();
    }
    let mut spans = vec![Span::styled("steps ", theme.style(Role::Head))];
    for (i, step) in steps.iter().enumerate() {
        let (mark, role) = match i.cmp(&next) {
            std::cmp::Ordering::Less if step.left_out => ("–", Role::Dim),
            std::cmp::Ordering::Less => ("✓", Role::Good),
            std::cmp::Ordering::Equal => ("▸", Role::Next),
            std::cmp::Ordering::Greater => ("·", Role::Faint),
        };
        spans.push(Span::styled(format!(" {mark} {} ", step.role), theme.style(role)));
    }
    let mut out = vec![Line::from(spans)];
    let Some(step) = steps.get(next) else {
        out.push(Line::styled("all steps are done", theme.style(Role::Dim)));
        return out;
    };
    let mut what = vec![Span::styled(escape_unsafe(&step.what).into_owned(), theme.style(Role::Title))];
    if let Some(since) = screen.doing {
        what.push(Span::styled(
            format!("  running for {}, {stop} ends it", format_clock(screen.now_ms.saturating_sub(since).max(0))),
            theme.style(Role::Warn),
        ));
    }
    out.push(Line::from(what));
    if !step.argv.is_empty() {
        let mut lines = wrap_text(&escape_unsafe(&shell::command_line(&step.argv)), columns);
        if lines.len() > COMMAND {
            let rest = lines[COMMAND - 1..].join(" ");
            lines.truncate(COMMAND - 1);
            lines.push(cut_end(&rest, columns));
        }
        out.extend(lines.into_iter().map(|l| Line::styled(l, theme.style(Role::Dim))));
    }
    out
}

/// Suggested next step of a guided run.
pub fn next(app: &App, screen: &Watched) -> Option<String> {
    let key = |id| app.session.key_link(id);
    let step = screen.next_step()?;
    if screen.doing.is_some() {
        return Some(format!("{}; {}", step.why.trim_end_matches('.'), "the run continues meanwhile"));
    }
    let does = if step.argv.is_empty() { "stops it".to_owned() } else { format!("does it ({})", step.role) };
    Some(format!("{} {does}, {} skips it if you do it in another terminal", key(ActionId::Step), key(ActionId::SkipStep)))
}
