//! Every built-in theme is legible: contrast of text and bars, also on the selected row, and distinct severities.

use ratatui::style::Color;
use warpscope::analysis::Family;
use warpscope::analysis::triage::TimeCategory;
use warpscope::config::ColorMode;
use warpscope::ui::Role;
use warpscope::ui::theme::{Library, THEMES, Theme};

/// Assumed terminal background for themes that do not set one: the lightest of the common dark ones.
const DARK: (u8, u8, u8) = (0x1e, 0x1e, 0x1e);

fn rgb(color: Option<Color>) -> Option<(u8, u8, u8)> {
    match color? {
        Color::Rgb(r, g, b) => Some((r, g, b)),
        _ => None,
    }
}

/// Relative luminance (WCAG 2.2).
fn luminance((r, g, b): (u8, u8, u8)) -> f64 {
    let part = |v: u8| {
        let v = f64::from(v) / 255.0;
        if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b)
}

fn contrast(a: (u8, u8, u8), b: (u8, u8, u8)) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

const TEXTS: [Role; 14] = [
    Role::Text,
    Role::Dim,
    Role::Faint,
    Role::Title,
    Role::Brand,
    Role::Head,
    Role::Sorted,
    Role::Match,
    Role::Mark,
    Role::Good,
    Role::Warn,
    Role::Bad,
    Role::Key,
    Role::Next,
];

const FAMILIES: [Family; 10] = [
    Family::Gemm,
    Family::Attention,
    Family::Convolution,
    Family::Norm,
    Family::Reduce,
    Family::Elementwise,
    Family::Copy,
    Family::Nccl,
    Family::Triton,
    Family::Other,
];

fn bars() -> Vec<Role> {
    let families = FAMILIES.into_iter().map(Role::Family);
    [Role::Bar, Role::Peak].into_iter().chain(families).chain(TimeCategory::ALL.into_iter().map(Role::Part)).collect()
}

/// Themes with their own colours; the other two use the terminal's or none.
fn coloured() -> Vec<(&'static str, Theme)> {
    let library = Library::new(Vec::new());
    let own = THEMES.iter().filter(|(name, _)| !["sixteen", "mono"].contains(name));
    own.map(|(name, _)| (*name, library.theme(name, ColorMode::True).unwrap())).collect()
}

#[test]
fn text_and_bars_have_contrast() {
    let mut low = Vec::new();
    for (name, theme) in coloured() {
        let ground = rgb(theme.style(Role::Text).bg).unwrap_or(DARK);
        let mut check = |role: Role, ground, least: f64, what: &str| {
            let colour = rgb(theme.style(role).fg).unwrap();
            let found = contrast(colour, ground);
            if found < least {
                low.push(format!("{name}: {role:?} on {what}: {found:.2}, at least {least}"));
            }
        };
        for role in TEXTS {
            check(role, ground, 4.5, "the ground");
        }
        for role in bars() {
            check(role, ground, 3.0, "the ground");
        }
        // The selected row has no dimmed text (`parts::select`); if the selection has its own text colour, that colour
        // is the background of severities.
        let selected = theme.style(Role::Selected);
        let lit = rgb(selected.bg).unwrap();
        match rgb(selected.fg) {
            None => {
                for role in [Role::Text, Role::Title, Role::Good, Role::Warn, Role::Bad, Role::Match, Role::Mark, Role::Key] {
                    check(role, lit, 4.5, "the selected row");
                }
                for role in bars() {
                    check(role, lit, 2.4, "the selected row");
                }
            }
            Some(fg) => {
                assert!(contrast(fg, lit) >= 4.5, "{name}: the selected row");
                for role in [Role::Good, Role::Warn, Role::Bad] {
                    check(role, fg, 4.5, "the selected row's text");
                }
            }
        }
    }
    assert!(low.is_empty(), "{}", low.join("\n"));
}

#[test]
fn severities_differ_in_every_theme_with_colours() {
    let library = Library::new(Vec::new());
    for name in library.names().iter().filter(|n| *n != "mono") {
        for mode in [ColorMode::True, ColorMode::Indexed, ColorMode::Sixteen] {
            let theme = library.theme(name, mode).unwrap();
            let all = [Role::Good, Role::Warn, Role::Bad, Role::Text].map(|r| theme.style(r).fg);
            for (at, colour) in all.iter().enumerate() {
                assert!(!all[..at].contains(colour), "{name} {mode:?}: {all:?}");
            }
        }
    }
}
