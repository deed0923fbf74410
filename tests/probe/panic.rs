//! Takes the terminal as the explorer does, and panics: `tests/suite/tty.rs` looks at what is left of the terminal.

#![allow(missing_docs, clippy::panic)]

fn main() -> std::io::Result<()> {
    warpscope::ui::terminal::restore_on_panic();
    let _screen = warpscope::ui::terminal::Screen::take_over((80, 24))?;
    panic!("on purpose");
}
