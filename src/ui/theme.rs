//! Themes: TOML files that define the style of each role, with a palette and a parent theme. Code uses roles, never
//! colors.

use crate::analysis::Family;
use crate::analysis::fuzzy::nearest_match;
use crate::analysis::roofline::Precision;
use crate::analysis::triage::TimeCategory;
use crate::config::ColorMode;
use ratatui::style::{Color, Modifier, Style};
use std::collections::BTreeMap;

/// Purpose of a part of the screen, which determines its style.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    Text,
    Dim,
    Faint,
    Title,
    Brand,
    Border,
    Head,
    /// Header of the sorted column.
    Sorted,
    Selected,
    /// Bar of a measurement.
    Bar,
    /// Bar of a measurement that has reached its threshold.
    Peak,
    /// Empty part of a bar.
    BarEmpty,
    /// Letters that match a filter.
    Match,
    Mark,
    Good,
    Warn,
    Bad,
    Key,
    /// Suggested next step.
    Next,
    Family(Family),
    /// Category of device time.
    Part(TimeCategory),
    /// Precision of floating-point work.
    Work(Precision),
}

/// Role names in theme files.
const ROLES: [(&str, Role); 44] = [
    ("text", Role::Text),
    ("dim", Role::Dim),
    ("faint", Role::Faint),
    ("title", Role::Title),
    ("brand", Role::Brand),
    ("border", Role::Border),
    ("head", Role::Head),
    ("sorted", Role::Sorted),
    ("selected", Role::Selected),
    ("bar", Role::Bar),
    ("peak", Role::Peak),
    ("bar_empty", Role::BarEmpty),
    ("match", Role::Match),
    ("mark", Role::Mark),
    ("good", Role::Good),
    ("warn", Role::Warn),
    ("bad", Role::Bad),
    ("key", Role::Key),
    ("next", Role::Next),
    ("gemm", Role::Family(Family::Gemm)),
    ("attention", Role::Family(Family::Attention)),
    ("convolution", Role::Family(Family::Convolution)),
    ("norm", Role::Family(Family::Norm)),
    ("reduce", Role::Family(Family::Reduce)),
    ("elementwise", Role::Family(Family::Elementwise)),
    ("copy", Role::Family(Family::Copy)),
    ("nccl", Role::Family(Family::Nccl)),
    ("triton", Role::Family(Family::Triton)),
    ("other", Role::Family(Family::Other)),
    ("kernels", Role::Part(TimeCategory::Kernels)),
    ("collectives", Role::Part(TimeCategory::Collectives)),
    ("copies", Role::Part(TimeCategory::Copies)),
    ("synchronising", Role::Part(TimeCategory::Synchronising)),
    ("launching", Role::Part(TimeCategory::Launching)),
    ("computing", Role::Part(TimeCategory::Computing)),
    ("waiting", Role::Part(TimeCategory::Waiting)),
    ("allocating", Role::Part(TimeCategory::Allocating)),
    ("compiling", Role::Part(TimeCategory::Compiling)),
    ("capturing", Role::Part(TimeCategory::Graphs)),
    ("unknown", Role::Part(TimeCategory::Other)),
    ("fp64", Role::Work(Precision::Double)),
    ("fp32", Role::Work(Precision::Single)),
    ("fp16", Role::Work(Precision::Half)),
    ("tensor", Role::Work(Precision::Tensor)),
];

/// Built-in themes. A new theme needs a file and a row here.
pub static THEMES: &[(&str, &str)] = &[
    ("dark", include_str!("../../themes/dark.toml")),
    ("light", include_str!("../../themes/light.toml")),
    ("high-contrast", include_str!("../../themes/high-contrast.toml")),
    ("sixteen", include_str!("../../themes/sixteen.toml")),
    ("mono", include_str!("../../themes/mono.toml")),
    ("nord", include_str!("../../themes/nord.toml")),
    ("gruvbox", include_str!("../../themes/gruvbox.toml")),
];

/// Styles of all roles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Theme {
    styles: BTreeMap<Role, Style>,
}

/// Theme files by name: built-in themes and the user's own.
#[derive(Clone, Debug, Default)]
pub struct Library {
    files: Vec<(String, String)>,
}

#[derive(Clone, Debug, Default)]
struct Parsed {
    palette: BTreeMap<String, String>,
    style: BTreeMap<String, String>,
}

impl Library {
    /// Creates a library of the built-in themes and the user's own (name and text), which override built-in ones with
    /// the same name.
    pub fn new(own: Vec<(String, String)>) -> Self {
        let mut files: Vec<(String, String)> = THEMES.iter().map(|(n, t)| ((*n).to_owned(), (*t).to_owned())).collect();
        for (name, text) in own {
            files.retain(|(n, _)| *n != name);
            files.push((name, text));
        }
        Self { files }
    }

    pub fn names(&self) -> Vec<String> {
        self.files.iter().map(|(n, _)| n.clone()).collect()
    }

    /// Returns a theme by name, reduced to the terminal's colors.
    pub fn theme(&self, name: &str, mode: ColorMode) -> Result<Theme, String> {
        let file = self.load_file(name, 0)?;
        let mut styles = BTreeMap::new();
        for (key, role) in ROLES {
            let text = file.style.get(key).map_or("none", String::as_str);
            let style = parse_style(text, &file.palette).map_err(|e| format!("theme {name}: {key}: {e}"))?;
            styles.insert(role, reduce_style(style, mode));
        }
        // A selection with only a background color would be invisible without colors.
        if let Some(selected) = styles.get_mut(&Role::Selected)
            && selected.bg.is_none()
            && selected.fg.is_none()
        {
            *selected = selected.add_modifier(Modifier::REVERSED);
        }
        Ok(Theme { styles })
    }

    fn load_file(&self, name: &str, depth: usize) -> Result<Parsed, String> {
        let Some((_, text)) = self.files.iter().find(|(n, _)| n == name) else {
            let near = nearest_match(name, self.files.iter().map(|(n, _)| n.as_str()));
            return Err(near.map_or_else(
                || format!("no theme `{name}`; there are {}", self.names().join(", ")),
                |n| format!("no theme `{name}`; did you mean `{n}`?"),
            ));
        };
        if depth > 8 {
            return Err(format!("theme {name}: it inherits from itself"));
        }
        let table: toml::Table =
            text.parse().map_err(|e: toml::de::Error| format!("theme {name}: {}", e.to_string().trim().replace('\n', " ")))?;
        let mut file = match table.get("inherits") {
            Some(toml::Value::String(parent)) => self.load_file(parent, depth + 1)?,
            Some(other) => return Err(format!("theme {name}: inherits {other}, which is not a theme name")),
            None => Parsed::default(),
        };
        for (key, value) in &table {
            match (key.as_str(), value) {
                ("name" | "inherits", _) => {}
                ("palette", toml::Value::Table(t)) => file.palette.extend(string_table(name, t)?),
                ("style", toml::Value::Table(t)) => {
                    let styles = string_table(name, t)?;
                    if let Some(key) = styles.keys().find(|k| !ROLES.iter().any(|(r, _)| r == k)) {
                        let near = nearest_match(key, ROLES.map(|(r, _)| r));
                        return Err(format!(
                            "theme {name}: unknown role `{key}`{}",
                            near.map_or_else(String::new, |n| format!("; did you mean `{n}`?"))
                        ));
                    }
                    file.style.extend(styles);
                }
                _ => {
                    return Err(format!("theme {name}: unknown key `{key}`; the keys are name, inherits, [palette] and [style]"));
                }
            }
        }
        Ok(file)
    }
}

fn string_table(theme: &str, table: &toml::Table) -> Result<BTreeMap<String, String>, String> {
    table
        .iter()
        .map(|(k, v)| v.as_str().map(|s| (k.clone(), s.to_owned())).ok_or_else(|| format!("theme {theme}: {k} is not a string")))
        .collect()
}

const ANSI: [(&str, Color); 16] = [
    ("black", Color::Black),
    ("red", Color::Red),
    ("green", Color::Green),
    ("yellow", Color::Yellow),
    ("blue", Color::Blue),
    ("magenta", Color::Magenta),
    ("cyan", Color::Cyan),
    ("white", Color::Gray),
    ("bright-black", Color::DarkGray),
    ("bright-red", Color::LightRed),
    ("bright-green", Color::LightGreen),
    ("bright-yellow", Color::LightYellow),
    ("bright-blue", Color::LightBlue),
    ("bright-magenta", Color::LightMagenta),
    ("bright-cyan", Color::LightCyan),
    ("bright-white", Color::White),
];

/// Parses `COLOR on COLOR bold underline`; every part is optional, and `none` is the default style.
fn parse_style(text: &str, palette: &BTreeMap<String, String>) -> Result<Style, String> {
    let mut style = Style::default();
    let mut background = false;
    for word in text.split_whitespace() {
        let modifier = match word {
            "bold" => Modifier::BOLD,
            "dim" => Modifier::DIM,
            "italic" => Modifier::ITALIC,
            "underline" => Modifier::UNDERLINED,
            "reverse" => Modifier::REVERSED,
            "on" => {
                background = true;
                continue;
            }
            "none" => continue,
            color => {
                let color = parse_color(palette.get(color).map_or(color, String::as_str))?;
                style = if background { style.bg(color) } else { style.fg(color) };
                background = false;
                continue;
            }
        };
        style = style.add_modifier(modifier);
    }
    Ok(style)
}

fn parse_color(word: &str) -> Result<Color, String> {
    if let Some((_, color)) = ANSI.iter().find(|(n, _)| *n == word) {
        return Ok(*color);
    }
    // ratatui's color names differ from those of terminals (its `white` is bright white), so do not accept them here.
    let own = word.parse::<Color>().ok().filter(|c| matches!(c, Color::Rgb(..) | Color::Indexed(_)));
    own.ok_or_else(|| format!("unknown colour `{word}`: write #rrggbb, 0–255, a palette name or one of black … bright-white"))
}

/// Reduces a style to the terminal's colors.
fn reduce_style(style: Style, mode: ColorMode) -> Style {
    let color = |c: Option<Color>| c.and_then(|c| reduce_color(c, mode));
    Style { fg: color(style.fg), bg: color(style.bg), ..style }
}

fn reduce_color(color: Color, mode: ColorMode) -> Option<Color> {
    match (mode, color) {
        (ColorMode::None, _) => None,
        (ColorMode::Indexed, Color::Rgb(r, g, b)) => Some(Color::Indexed(to_256(r, g, b))),
        (ColorMode::Sixteen, Color::Rgb(r, g, b)) => Some(to_16(r, g, b)),
        (ColorMode::Sixteen, Color::Indexed(i)) => {
            let (r, g, b) = from_256(i);
            Some(to_16(r, g, b))
        }
        (_, other) => Some(other),
    }
}

fn color_distance(a: (u8, u8, u8), b: (u8, u8, u8)) -> i32 {
    let d = |x: u8, y: u8| (i32::from(x) - i32::from(y)).pow(2);
    d(a.0, b.0) + d(a.1, b.1) + d(a.2, b.2)
}

const CUBE: [u8; 6] = [0, 95, 135, 175, 215, 255];

/// Nearest of xterm's 256 colors: color cube and gray ramp.
fn to_256(r: u8, g: u8, b: u8) -> u8 {
    (16..=255).min_by_key(|&i| color_distance(from_256(i), (r, g, b))).unwrap_or(15)
}

fn from_256(i: u8) -> (u8, u8, u8) {
    match i {
        0..=15 => XTERM_16[i as usize],
        232..=255 => {
            let v = 8 + (i - 232) * 10;
            (v, v, v)
        }
        _ => {
            let n = i - 16;
            (CUBE[(n / 36) as usize], CUBE[(n / 6 % 6) as usize], CUBE[(n % 6) as usize])
        }
    }
}

const XTERM_16: [(u8, u8, u8); 16] = [
    (0, 0, 0),
    (205, 0, 0),
    (0, 205, 0),
    (205, 205, 0),
    (0, 0, 238),
    (205, 0, 205),
    (0, 205, 205),
    (229, 229, 229),
    (127, 127, 127),
    (255, 0, 0),
    (0, 255, 0),
    (255, 255, 0),
    (92, 92, 255),
    (255, 0, 255),
    (0, 255, 255),
    (255, 255, 255),
];

/// Minimum saturation for a color not to count as gray.
const GREY: f64 = 0.25;

/// Maps a color to one of the terminal's 16 colors by hue, because the hue carries the meaning: by distance, a soft
/// green would become gray.
fn to_16(r: u8, g: u8, b: u8) -> Color {
    let (most, least) = (r.max(g).max(b), r.min(g).min(b));
    if f64::from(most - least) < GREY * f64::from(most.max(100)) {
        return match most {
            0..48 => Color::Black,
            48..160 => Color::DarkGray,
            160..240 => Color::Gray,
            _ => Color::White,
        };
    }
    let [r, g, b, span] = [r, g, b, most - least].map(f64::from);
    let hue = match f64::from(most) {
        m if m <= r => (g - b) / span * 60.0,
        m if m <= g => (b - r) / span * 60.0 + 120.0,
        _ => (r - g) / span * 60.0 + 240.0,
    };
    let bright = most >= 200;
    let (light, dark) = match hue.rem_euclid(360.0) {
        // Reserve red for problems: map orange to yellow and pink to magenta.
        h if !(10.0..350.0).contains(&h) => (Color::LightRed, Color::Red),
        h if h <= 60.0 => (Color::LightYellow, Color::Yellow),
        h if h < 165.0 => (Color::LightGreen, Color::Green),
        h if h < 200.0 => (Color::LightCyan, Color::Cyan),
        h if h < 255.0 => (Color::LightBlue, Color::Blue),
        _ => (Color::LightMagenta, Color::Magenta),
    };
    if bright { light } else { dark }
}

impl Theme {
    /// Style of a role.
    pub fn style(&self, role: Role) -> Style {
        self.styles.get(&role).copied().unwrap_or_default()
    }

    /// Describes how better and worse are emphasized, for legends.
    pub fn accent(&self) -> &'static str {
        if self.style(Role::Bad).fg.is_some() { "in colour" } else { "in bold" }
    }

    /// Style of a kernel family.
    pub fn family_style(&self, family: Family) -> Style {
        self.style(Role::Family(family))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_theme_is_whole_in_every_colour_mode() {
        let library = Library::new(Vec::new());
        assert!(library.names().len() >= 6);
        for name in library.names() {
            for (_, mode) in ColorMode::ALL {
                let theme = library.theme(&name, mode).unwrap_or_else(|e| panic!("{e}"));
                let selected = theme.style(Role::Selected);
                assert_ne!(selected, Style::default(), "{name} {mode:?}: the selection would be invisible");
                if mode == ColorMode::None {
                    assert!(theme.styles.values().all(|s| s.fg.is_none() && s.bg.is_none()), "{name}");
                }
            }
        }
        for (name, text) in THEMES {
            assert!(text.contains(&format!("name = \"{name}\"")), "{name}");
        }
    }

    #[test]
    fn red_is_for_problems_in_sixteen_colours_too() {
        let library = Library::new(Vec::new());
        for name in library.names().iter().filter(|n| *n != "mono") {
            let theme = library.theme(name, ColorMode::Sixteen).unwrap();
            let red = [Some(Color::Red), Some(Color::LightRed)];
            assert!(red.contains(&theme.style(Role::Bad).fg), "{name}: {:?}", theme.style(Role::Bad));
            for (word, role) in ROLES.into_iter().filter(|r| matches!(r.1, Role::Part(_) | Role::Family(_))) {
                assert!(!red.contains(&theme.style(role).fg), "{name}: {word}");
            }
        }
    }

    #[test]
    fn mistakes_in_a_theme_are_named() {
        let with = |text: &str| Library { files: vec![("x".into(), text.into())] }.theme("x", ColorMode::True).unwrap_err();
        assert!(with("[style]\ntxet = 'red'").contains("did you mean `text`?"));
        assert!(with("[style]\ntext = 'blurple'").contains("unknown colour `blurple`"));
        assert!(with("inherits = 'x'").contains("inherits from itself"));
        assert!(Library::new(Vec::new()).theme("drak", ColorMode::True).unwrap_err().contains("did you mean `dark`?"));
    }

    #[test]
    fn colours_come_down_to_what_the_terminal_has() {
        assert_eq!(reduce_color(Color::Rgb(255, 0, 0), ColorMode::Indexed), Some(Color::Indexed(196)));
        assert_eq!(reduce_color(Color::Rgb(250, 10, 10), ColorMode::Sixteen), Some(Color::LightRed));
        assert_eq!(reduce_color(Color::Rgb(149, 196, 116), ColorMode::Sixteen), Some(Color::Green), "a soft green is no grey");
        assert_eq!(reduce_color(Color::Rgb(43, 50, 66), ColorMode::Sixteen), Some(Color::DarkGray));
        assert_eq!(reduce_color(Color::Red, ColorMode::None), None);
    }
}
