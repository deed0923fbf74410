//! Values of table cells, and their machine-readable and human-readable forms.

use crate::model::units::format_scaled;
use crate::model::units::{format_grouped, format_percent, format_percent_change, format_whole_percent};
use crate::model::{Bytes, Nanos, config};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::borrow::Cow;
use std::fmt::Write;

/// Unit of a column, which determines both forms of its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Text,
    /// A number that identifies something: no digit grouping.
    Id,
    /// A position in a list, which users type to refer to the row; digits are therefore grouped only on screens.
    Index,
    Count,
    /// A hardware counter or a number of samples: rounded in human-readable form, and empty if 0.
    Counter,
    Ns,
    Seconds,
    /// A time in ns on the report's clock; in seconds when human-readable.
    Time,
    /// Like `Time`, but with all digits when human-readable.
    ExactTime,
    /// A difference of durations in ns, with its sign.
    NsChange,
    Bytes,
    /// A difference of bytes, with its sign.
    BytesChange,
    Percent,
    /// A percentage; without decimals when human-readable.
    WholePercent,
    /// A relative difference in percent, with its sign.
    PercentChange,
    FlopPerSecond,
    /// Probability that a difference is due to chance.
    Probability,
    /// Extents of a grid or a block.
    Dims,
    /// A number or string, exactly as in the report.
    Literal,
    /// A boolean; a word when human-readable.
    Flag,
    /// Nested names, outermost first.
    Path,
    /// A JSON object with these fields.
    Record(&'static [Field]),
}

/// Field of a JSON object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    pub id: &'static str,
    pub unit: Unit,
    pub meaning: &'static str,
}

impl Field {
    pub const fn new(id: &'static str, unit: Unit, meaning: &'static str) -> Self {
        Self { id, unit, meaning }
    }
}

impl Unit {
    /// Returns true if values are strings, which are left-aligned; numbers are right-aligned.
    pub fn is_text(self) -> bool {
        matches!(self, Self::Text | Self::Flag | Self::Path | Self::Record(_))
    }

    /// Symbol for the metadata of exported columns; empty for strings and plain numbers.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Text
            | Self::Id
            | Self::Index
            | Self::Count
            | Self::Counter
            | Self::Probability
            | Self::Dims
            | Self::Literal
            | Self::Flag
            | Self::Path
            | Self::Record(_) => "",
            Self::Ns | Self::Time | Self::ExactTime | Self::NsChange => "ns",
            Self::Seconds => "s",
            Self::Bytes | Self::BytesChange => "byte",
            Self::Percent | Self::WholePercent | Self::PercentChange => "%",
            Self::FlopPerSecond => "FLOP/s",
        }
    }

    /// Rounds to the meaningful digits: times to a tenth of a nanosecond, the last digit that `nsys stats` prints for a
    /// mean; percentages to a ten-thousandth; rates to whole numbers.
    fn round(self, v: f64) -> f64 {
        let to = |digits: i32| {
            let scale = 10_f64.powi(digits);
            // Doubles from 1e15 on are too coarse for these decimals.
            if v.abs() < 1e15 { (v * scale).round() / scale } else { v }
        };
        match self {
            Self::Ns | Self::Time | Self::ExactTime | Self::NsChange => to(1),
            Self::Percent | Self::WholePercent | Self::PercentChange => to(4),
            Self::Bytes | Self::BytesChange | Self::FlopPerSecond => to(0),
            Self::Counter => to(3),
            _ => v,
        }
    }

    fn format_int(self, v: i64) -> String {
        match self {
            Self::Count => format_grouped(v),
            Self::Ns => Nanos(v).to_string(),
            Self::Time => format!("{:.6} s", v as f64 / 1e9),
            Self::ExactTime => format!("{:.9} s", v as f64 / 1e9),
            Self::NsChange => format!("{}{}", if v > 0 { "+" } else { "" }, Nanos(v)),
            Self::Bytes => Bytes(v.unsigned_abs()).to_string(),
            Self::BytesChange => format!("{}{}", ["−", "", "+"][(v.signum() + 1) as usize], Bytes(v.unsigned_abs())),
            _ => v.to_string(),
        }
    }

    fn format_real(self, v: f64) -> String {
        match self {
            Self::Ns => Nanos::format_ns(v),
            Self::Counter if v > 0.0 => format_grouped(v.round() as i64),
            Self::Counter => String::new(),
            Self::Percent => format_percent(v),
            Self::WholePercent => format_whole_percent(v),
            Self::PercentChange => format_percent_change(v),
            Self::FlopPerSecond => {
                let (value, unit) = format_scaled(v, "FLOP/s");
                format!("{value} {unit}")
            }
            Self::Probability if v < 0.001 => "<0.001".to_owned(),
            Self::Probability => format!("{v:.3}"),
            _ => v.to_string(),
        }
    }
}

/// Value of a cell, borrowed from its row if possible.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// Not recorded or not applicable: an empty cell, or `null` in JSON.
    Absent,
    Int(i64),
    Real(f64),
    Dims([u32; 3]),
    Text(Cow<'a, str>),
    /// Machine-readable and human-readable strings.
    Labelled(Cow<'a, str>, Cow<'a, str>),
    /// A boolean and its human-readable form.
    Flag(bool, &'static str),
    /// Nested names, outermost first; an array in JSON.
    Path(Vec<Cow<'a, str>>),
    /// A JSON object, for columns that exist only in JSON.
    Record(Vec<(&'static str, Value<'a>)>),
}

impl<'a> Value<'a> {
    pub fn text(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }

    /// Converts an integer of any type; if it does not fit, the maximum is used.
    pub fn int(number: impl TryInto<i64>) -> Self {
        Self::Int(number.try_into().unwrap_or(i64::MAX))
    }

    /// Converts an integer, if there is one.
    pub fn maybe_int(number: Option<impl TryInto<i64>>) -> Self {
        number.map_or(Self::Absent, Self::int)
    }

    pub fn maybe_real(number: Option<f64>) -> Self {
        number.map_or(Self::Absent, Self::Real)
    }

    pub fn maybe_dims(dims: Option<[u32; 3]>) -> Self {
        dims.map_or(Self::Absent, Self::Dims)
    }

    /// Drops the digits that are meaningless in this unit.
    #[must_use]
    pub fn rounded(self, unit: Unit) -> Self {
        match self {
            Self::Real(v) => Self::Real(unit.round(v)),
            other => other,
        }
    }

    /// Appends the machine-readable form.
    pub fn write_raw(&self, unit: Unit, out: &mut String) {
        // Writing to a `String` cannot fail.
        let _ = match self {
            Self::Absent | Self::Record(_) => Ok(()),
            Self::Int(v) => write!(out, "{v}"),
            Self::Real(v) if unit == Unit::Probability => write!(out, "{v:.3e}"),
            Self::Real(v) => write!(out, "{}", unit.round(*v)),
            Self::Dims([x, y, z]) => write!(out, "{x}x{y}x{z}"),
            Self::Text(text) | Self::Labelled(text, _) => out.write_str(text),
            Self::Flag(flag, _) => write!(out, "{flag}"),
            Self::Path(names) => names.iter().enumerate().try_for_each(|(at, name)| {
                out.write_str(if at == 0 { "" } else { " › " })?;
                out.write_str(name)
            }),
        };
    }

    /// Returns the human-readable form.
    pub fn to_shown(&self, unit: Unit) -> Cow<'_, str> {
        match self {
            Self::Int(v) => Cow::Owned(unit.format_int(*v)),
            Self::Real(v) => Cow::Owned(unit.format_real(*v)),
            Self::Dims(dims) => Cow::Owned(config::format_dim3(*dims)),
            Self::Text(text) | Self::Labelled(_, text) => Cow::Borrowed(text),
            Self::Flag(_, text) => Cow::Borrowed(text),
            Self::Absent | Self::Path(_) | Self::Record(_) => {
                let mut out = String::new();
                self.write_raw(unit, &mut out);
                Cow::Owned(out)
            }
        }
    }

    /// Returns a key that sorts like the numbers in a column; absent values and strings come first.
    pub fn sort_key(&self) -> i64 {
        match self {
            Self::Int(v) => *v,
            // The bits of a double sort like its value, except for negative numbers (IEEE 754, 5.10).
            Self::Real(v) => {
                let bits = v.to_bits().cast_signed();
                bits ^ ((bits >> 63) & i64::MAX)
            }
            Self::Dims(dims) => dims.iter().fold(1_i64, |n, &d| n.saturating_mul(i64::from(d))),
            Self::Flag(flag, _) => i64::from(*flag),
            _ => i64::MIN,
        }
    }
}

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Absent => to.serialize_none(),
            Self::Int(v) => to.serialize_i64(*v),
            Self::Real(v) => to.serialize_f64(*v),
            Self::Dims(dims) => dims.serialize(to),
            Self::Text(text) | Self::Labelled(text, _) => to.serialize_str(text),
            Self::Flag(flag, _) => to.serialize_bool(*flag),
            Self::Path(names) => names.serialize(to),
            Self::Record(fields) => {
                let mut map = to.serialize_map(Some(fields.len()))?;
                for (name, value) in fields {
                    map.serialize_entry(name, value)?;
                }
                map.end()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_numbers_sort_like_the_numbers() {
        let numbers = [f64::NEG_INFINITY, -3.5, -1e-9, 0.0, 1e-9, 2.0, 1e300];
        let mut keys: Vec<i64> = numbers.iter().map(|&n| Value::Real(n).sort_key()).collect();
        assert!(keys.is_sorted(), "{keys:?}");
        keys.insert(0, Value::Absent.sort_key());
        assert!(keys.is_sorted());
    }

    #[test]
    fn each_unit_has_a_raw_and_a_readable_form() {
        let forms = |value: Value<'_>, unit| {
            let mut raw = String::new();
            value.write_raw(unit, &mut raw);
            (raw, value.to_shown(unit).into_owned())
        };
        let both = |raw: &str, shown: &str| (raw.to_owned(), shown.to_owned());
        assert_eq!(forms(Value::Int(1_500), Unit::Ns), both("1500", "1.50 µs"));
        assert_eq!(forms(Value::Int(-1_500), Unit::NsChange), both("-1500", "-1.50 µs"));
        assert_eq!(forms(Value::Int(1_500), Unit::Count), both("1500", "1,500"));
        assert_eq!(forms(Value::Int(1_500), Unit::Id), both("1500", "1500"));
        assert_eq!(forms(Value::Real(12.34), Unit::PercentChange), both("12.34", "+12.3%"));
        assert_eq!(forms(Value::Real(1_500.123_456), Unit::Ns).0, "1500.1");
        assert_eq!(forms(Value::Real(100.0 / 3.0), Unit::Percent).0, "33.3333");
        assert_eq!(forms(Value::Dims([4, 2, 1]), Unit::Dims), both("4x2x1", "4×2"));
        assert_eq!(forms(Value::Absent, Unit::Ns), both("", ""));
        assert_eq!(forms(Value::Path(vec!["a".into(), "b".into()]), Unit::Text), both("a › b", "a › b"));
    }
}
