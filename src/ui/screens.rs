//! Drawing of the screens: each implements [`ScreenView`] in its own file.

use super::{Theme, View};
use crate::app::overlay::FilterInput;
use crate::app::{App, Open};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

/// Area of a screen.
#[derive(Clone, Copy)]
pub struct Place {
    pub area: Rect,
    /// True if the terminal has room for borders.
    pub bordered: bool,
}

/// Functions that draw a screen.
pub trait ScreenView {
    fn draw(&self, frame: &mut Frame<'_>, at: Place, app: &App, view: &mut View, theme: &Theme);

    /// Text of the `next:` line.
    fn next_step(&self, app: &App) -> Option<String>;

    /// Header lines that replace the report's.
    fn header(&self, _app: &App, _theme: &Theme, _columns: usize) -> Option<[Line<'static>; 2]> {
        None
    }

    /// Filter of the list, if there is one.
    fn filter(&self) -> Option<&FilterInput> {
        None
    }

    /// Rows that the screen needs if details of its selection are shown next to or below it; `None` if it has no
    /// details.
    fn rows_beside_details(&self) -> Option<usize> {
        None
    }
}

macro_rules! views {
    ($($name:ident($screen:ident $(, $make:expr)?) { $($scopes:tt)+ })+) => {
        /// Returns the drawing functions of an open screen.
        pub fn view_of(open: &Open) -> &dyn ScreenView {
            match open {
                $(Open::$name(screen) => screen),+
            }
        }
    };
}

warpscope_app::with_screens!(views);
