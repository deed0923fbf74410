//! SVG images. Colors are classes, which the page's style sheet defines for light and dark mode.

use super::block::Picture;
use super::paths::strip_paths;
use std::fmt::Write as _;

/// Width of every image, in user units.
pub const WIDTH: f64 = 1000.0;

/// Escapes text for HTML and SVG.
pub fn escape_xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in crate::model::text::escape_unsafe(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Escapes text after removing paths, for which images have no room.
fn escape_without_paths(text: &str) -> String {
    escape_xml(&strip_paths(text))
}

/// Builder of an SVG image.
pub struct Svg {
    body: String,
    height: f64,
}

impl Svg {
    pub fn new(height: f64) -> Self {
        Self { body: String::new(), height }
    }

    /// Adds a box of a class, with `about` as its tooltip.
    pub fn add_rect(&mut self, (x, y, width, height): (f64, f64, f64, f64), class: &str, about: &str) {
        let title = if about.is_empty() { String::new() } else { format!("<title>{}</title>", escape_without_paths(about)) };
        let class = escape_xml(class);
        // Writing to a `String` cannot fail.
        let _ = write!(
            self.body,
            "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" class=\"{class}\">{title}</rect>"
        );
    }

    /// Adds text with its baseline at the given point; `anchor` is start, middle or end.
    pub fn add_text(&mut self, (x, y): (f64, f64), anchor: &str, class: &str, text: &str) {
        let text = escape_without_paths(text);
        let _ = write!(self.body, "<text x=\"{x:.2}\" y=\"{y:.2}\" text-anchor=\"{anchor}\" class=\"{class}\">{text}</text>");
    }

    pub fn add_line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), class: &str) {
        let _ = write!(self.body, "<line x1=\"{x1:.2}\" y1=\"{y1:.2}\" x2=\"{x2:.2}\" y2=\"{y2:.2}\" class=\"{class}\"/>");
    }

    pub fn add_circle(&mut self, (x, y): (f64, f64), radius: f64, class: &str, about: &str) {
        let about = escape_without_paths(about);
        let _ =
            write!(self.body, "<circle cx=\"{x:.2}\" cy=\"{y:.2}\" r=\"{radius:.2}\" class=\"{class}\"><title>{about}</title></circle>");
    }

    /// Adds a filled polygon.
    pub fn add_polygon(&mut self, points: &[(f64, f64)], class: &str) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.2},{y:.2}")).collect();
        let _ = write!(self.body, "<polygon points=\"{}\" class=\"{class}\"/>", points.join(" "));
    }

    /// Returns the image with its description.
    pub fn into_picture(self, words: String) -> Picture {
        let label = escape_without_paths(&words);
        let svg = format!(
            "<svg viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" aria-label=\"{label}\" xmlns=\"http://www.w3.org/2000/svg\">{}</svg>",
            self.height, self.body
        );
        Picture { svg, words }
    }
}
