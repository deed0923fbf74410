//! Filter of a list, shown in the line above it.

use super::super::{Role, Theme};
use crate::app::overlay::FilterInput;
use crate::ui::text::{LinePart, part};
use ratatui::text::Span;

/// The pattern, with a cursor while the user is typing; `None` if there is no filter.
pub fn filter_part(filter: &FilterInput, theme: &Theme) -> Option<LinePart> {
    let pattern = filter.text();
    if !filter.typing && pattern.is_empty() {
        return None;
    }
    let cursor = filter.typing.then(|| Span::styled("▏", theme.style(Role::Key)));
    let spans = [Span::styled("filter ", theme.style(Role::Dim)), Span::styled(pattern.to_owned(), theme.style(Role::Match))];
    Some(part(0, spans.into_iter().chain(cursor).collect()))
}
