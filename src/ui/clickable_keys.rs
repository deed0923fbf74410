//! Makes key names clickable: finds text on the screen in the style of keys that names a key.

use super::view::View;
use super::{Role, Theme};
use crate::app::{ACTIONS, ActionId, App, Mouse};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

/// Back arrow before the name of a screen's subject.
const BACK: &str = "‹";

/// Finds the drawn key names. Other click targets at the same position take precedence.
pub fn find_keys(buffer: &Buffer, app: &App, view: &mut View, theme: &Theme) {
    let here = app.current_scope();
    // Overlays have their own keys.
    if app.over.is_some() {
        return;
    }
    let named = |text: &str| {
        let bound = |id: ActionId| app.session.key_label(id) == text;
        ACTIONS.iter().find(|a| a.on.applies_to(here) && bound(a.id)).map(|a| a.id)
    };
    let style = theme.style(Role::Key);
    let mut found = Vec::new();
    let area = buffer.area;
    for y in area.top()..area.bottom() {
        let mut x = area.left();
        while x < area.right() {
            let from = x;
            let mut text = String::new();
            while let Some(cell) = buffer.cell((x, y)).filter(|c| x < area.right() && c.symbol() != " " && has_style(c.style(), style)) {
                text.push_str(cell.symbol());
                x += 1;
            }
            let action = match text.as_str() {
                // Skip blank cells quickly, since most of the screen contains no keys.
                "" => None,
                BACK => Some(ActionId::Back),
                text => named(text),
            };
            if let Some(action) = action {
                found.push((Rect { x: from, y, width: x - from, height: 1 }, Mouse::Action(action)));
            }
            x = x.max(from + 1);
        }
    }
    found.append(&mut view.hits);
    view.hits = found;
}

/// Returns true if a cell has the colour and the boldness of the style.
fn has_style(cell: Style, style: Style) -> bool {
    let bold = |s: Style| s.add_modifier.contains(Modifier::BOLD);
    cell.fg.filter(|c| *c != ratatui::style::Color::Reset) == style.fg && bold(cell) == bold(style)
}
