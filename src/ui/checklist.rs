//! Checklist overlay: completed and remaining analysis steps of this session.

use super::text::{align_left, wrap_text};
use super::{Role, Theme};
use crate::analysis::checklist::{Item, Tick};
use crate::app::Keymap;
use ratatui::text::{Line, Span};

pub fn lines(items: &[Item], keymap: &Keymap, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    const WHAT: usize = 28;
    if items.is_empty() {
        return vec![Line::raw("nothing has been read yet")];
    }
    let mut out = Vec::new();
    for item in items {
        let (mark, role) = match item.tick {
            Tick::Done => ("✓", Role::Good),
            Tick::Partly => ("▸", Role::Warn),
            Tick::Open => ("○", Role::Text),
            Tick::NotNeeded => ("·", Role::Faint),
        };
        let title = theme.style(if item.tick == Tick::NotNeeded { Role::Faint } else { Role::Title });
        for (at, have) in wrap_text(&item.have, columns.saturating_sub(WHAT + 2).max(20)).into_iter().enumerate() {
            let (mark, what) = if at == 0 { (mark, item.what) } else { (" ", "") };
            out.push(Line::from(vec![
                Span::styled(format!("{mark} "), theme.style(role)),
                Span::styled(align_left(what, WHAT), title),
                Span::styled(have, theme.style(Role::Dim)),
            ]));
        }
        if matches!(item.tick, Tick::Partly | Tick::Open) {
            let lines = wrap_text(&keymap.spell(&item.next), columns.saturating_sub(4).max(20)).into_iter().enumerate();
            out.extend(lines.map(|(i, l)| Line::styled(format!("  {}{l}", if i == 0 { "→ " } else { "  " }), theme.style(Role::Next))));
        }
    }
    out
}
