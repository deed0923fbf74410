//! Converts terminal mouse events to explorer input.

use crate::app::{Mouse, Pointer};
use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

/// Rows scrolled per wheel step.
const WHEEL: isize = 3;

/// Converts a mouse event over the element `hit`.
pub fn to_mouse_action(mouse: MouseEvent, hit: Mouse) -> Option<Mouse> {
    // Many terminals reserve Shift for their own mouse selection, so the right button also selects.
    let shift = mouse.modifiers.contains(KeyModifiers::SHIFT);
    let wheel = |by: isize| match hit {
        Mouse::Spot(_, column) => Mouse::Point(Pointer::Wheel(column, by)),
        _ => Mouse::Wheel(by * WHEEL),
    };
    Some(match (mouse.kind, hit) {
        (MouseEventKind::Down(button @ (MouseButton::Left | MouseButton::Right)), Mouse::Spot(row, column)) => {
            Mouse::Point(Pointer::Press(row, column, shift || button == MouseButton::Right))
        }
        (MouseEventKind::Down(MouseButton::Left), hit) => hit,
        (MouseEventKind::Drag(button @ (MouseButton::Left | MouseButton::Right)), Mouse::Spot(_, column)) => {
            Mouse::Point(Pointer::Drag(column, shift || button == MouseButton::Right))
        }
        (MouseEventKind::ScrollDown, _) => wheel(1),
        (MouseEventKind::ScrollUp, _) => wheel(-1),
        _ => return None,
    })
}
