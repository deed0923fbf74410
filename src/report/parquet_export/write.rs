//! Writes a table by row group and column, so that only a chunk of one column is in memory at a time.

use crate::analysis::table::{Column, Unit, Value};
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::Arc;

/// Keys and values of a file's metadata.
pub type Facts<'a> = [(&'a str, String)];

/// Number of rows per row group.
const GROUP: usize = 1 << 20;
/// Number of rows of a column that are in memory at once.
const PIECE: usize = 1 << 16;

/// Physical type of a column's values.
fn physical_type(unit: Unit) -> Physical {
    match unit {
        Unit::Text => Physical::BYTE_ARRAY,
        Unit::Percent | Unit::WholePercent | Unit::PercentChange | Unit::FlopPerSecond | Unit::Probability => Physical::DOUBLE,
        _ => Physical::INT64,
    }
}

fn schema<R>(columns: &[Column<R>]) -> Result<Type, ParquetError> {
    let field = |column: &Column<R>| {
        let physical = physical_type(column.unit);
        let logical = (physical == Physical::BYTE_ARRAY).then_some(LogicalType::String);
        let made = Type::primitive_type_builder(column.id, physical).with_repetition(Repetition::OPTIONAL).with_logical_type(logical);
        made.build().map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<Result<_, _>>()?;
    Type::group_type_builder("schema").with_fields(fields).build()
}

/// Passes values and definition levels to `put` chunk by chunk.
fn write_pieces<T>(
    rows: std::ops::Range<usize>,
    mut get: impl FnMut(usize) -> Option<T>,
    mut put: impl FnMut(&[T], &[i16]) -> Result<(), ParquetError>,
) -> Result<(), ParquetError> {
    let (mut values, mut there) = (Vec::with_capacity(PIECE.min(rows.len())), Vec::with_capacity(PIECE.min(rows.len())));
    for from in rows.clone().step_by(PIECE) {
        values.clear();
        there.clear();
        for row in from..(from + PIECE).min(rows.end) {
            let value = get(row);
            there.push(i16::from(value.is_some()));
            values.extend(value);
        }
        put(&values, &there)?;
    }
    Ok(())
}

/// Strings that rows borrow from the report, by address: each is copied once, no matter how many rows share it.
#[derive(Default)]
struct SharedTexts(FxHashMap<(usize, usize), ByteArray>);

impl SharedTexts {
    /// Bytes of a string.
    fn bytes(&mut self, value: Value<'_>) -> Option<ByteArray> {
        match value {
            Value::Text(Cow::Borrowed(text)) => {
                let of = || ByteArray::from(text);
                // The report outlives the export, so an address refers to the same string until the end.
                Some(self.0.entry((text.as_ptr() as usize, text.len())).or_insert_with(of).clone())
            }
            Value::Text(Cow::Owned(text)) => Some(ByteArray::from(text.into_bytes())),
            _ => None,
        }
    }
}

fn write_column<R>(
    out: &mut SerializedColumnWriter<'_>,
    of: &Column<R>,
    row: &impl Fn(usize) -> Option<R>,
    rows: std::ops::Range<usize>,
) -> Result<(), ParquetError> {
    match physical_type(of.unit) {
        Physical::DOUBLE => {
            let get = |at| match (of.value)(&row(at)?) {
                Value::Real(v) => Some(v),
                Value::Int(v) => Some(v as f64),
                _ => None,
            };
            let out = out.typed::<DoubleType>();
            write_pieces(rows, get, |values, there| out.write_batch(values, Some(there), None).map(drop))
        }
        Physical::BYTE_ARRAY => {
            let mut shared = SharedTexts::default();
            let get = |at| shared.bytes((of.value)(&row(at)?));
            let out = out.typed::<ByteArrayType>();
            write_pieces(rows, get, |values, there| out.write_batch(values, Some(there), None).map(drop))
        }
        _ => {
            let get = |at| match (of.value)(&row(at)?) {
                Value::Int(v) => Some(v),
                _ => None,
            };
            let out = out.typed::<Int64Type>();
            write_pieces(rows, get, |values, there| out.write_batch(values, Some(there), None).map(drop))
        }
    }
}

fn writer_properties<R>(columns: &[Column<R>], facts: &Facts<'_>) -> Result<WriterProperties, ParquetError> {
    let mut keys: Vec<KeyValue> = facts.iter().map(|(key, value)| KeyValue::new(format!("warpscope.{key}"), value.clone())).collect();
    let mut made = WriterProperties::builder()
        .set_created_by(format!("warpscope {}", env!("CARGO_PKG_VERSION")))
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_max_row_group_row_count(Some(GROUP));
    for column in columns {
        let path = ColumnPath::from(column.id);
        let unit = column.unit.symbol();
        if !unit.is_empty() {
            keys.push(KeyValue::new(format!("unit.{}", column.id), unit.to_owned()));
        }
        keys.push(KeyValue::new(format!("about.{}", column.id), column.meaning.to_owned()));
        // Times rarely repeat: a dictionary would be as large as the values.
        if unit == "ns" {
            made = made.set_column_dictionary_enabled(path.clone(), false).set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
    }
    Ok(made.set_key_value_metadata(Some(keys)).build())
}

/// Writes rows as one Parquet file; `facts` become its metadata.
///
/// # Errors
/// Returns an error if the rows cannot be written.
pub fn write_rows<R>(
    out: &mut (dyn Write + Send),
    columns: &[Column<R>],
    rows: usize,
    row: &impl Fn(usize) -> Option<R>,
    facts: &Facts<'_>,
) -> io::Result<()> {
    let written = || -> Result<(), ParquetError> {
        let mut file = SerializedFileWriter::new(out, Arc::new(schema(columns)?), Arc::new(writer_properties(columns, facts)?))?;
        for from in (0..rows).step_by(GROUP) {
            let rows = from..(from + GROUP).min(rows);
            let mut group = file.next_row_group()?;
            for of in columns {
                let Some(mut out) = group.next_column()? else { break };
                write_column(&mut out, of, row, rows.clone())?;
                out.close()?;
            }
            group.close()?;
        }
        file.close().map(drop)
    };
    written().map_err(|e| match e {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(e) => *e,
            Err(e) => io::Error::other(e),
        },
        other => io::Error::other(other),
    })
}
