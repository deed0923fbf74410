//! Colour of a kernel's family, beside its name.

use super::super::{Role, Theme};
use crate::analysis::Family;
use crate::analysis::labels::cut_middle;
use crate::analysis::readable::readable_name;
use crate::model::Kernel;
use crate::model::text::escape_unsafe;
use crate::ui::text::align_left;
use ratatui::text::Span;

/// Swatch of one column; blank without colours, where it would mean nothing, and in ASCII, where it would look like a bar.
pub fn family_swatch(family: Option<Family>, ascii: bool, theme: &Theme) -> Span<'static> {
    match family.filter(|_| !ascii).map(|f| theme.family_style(f)) {
        Some(style) if style.fg.is_some() => Span::styled("▌", style),
        _ => Span::raw(" "),
    }
}

/// Swatch and readable name of a kernel, in this many columns.
pub fn kernel_label(kernel: Option<&Kernel>, columns: usize, ascii: bool, theme: &Theme) -> [Span<'static>; 2] {
    let family = kernel.map(|k| Family::guess(k.function(), k.demangled()));
    let room = columns.saturating_sub(1);
    let name = cut_middle(&escape_unsafe(&kernel.map_or_else(Default::default, readable_name)), room);
    [family_swatch(family, ascii, theme), Span::styled(align_left(&name, room), theme.style(Role::Text))]
}
