//! Takes over the terminal like the explorer, then panics: `tests/suite/tty.rs`
//! checks the state the terminal is left in.

#![allow(missing_docs, clippy::panic)]

fn main() -> std::io::Result<()> {
    warpscope::ui::terminal::restore_on_panic();
    let _screen = warpscope::ui::terminal::Screen::take_over((80, 24))?;
    panic!("on purpose");
}
