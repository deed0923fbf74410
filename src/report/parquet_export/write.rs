//! Writes a table by row group and column, so that only a chunk of one column is in memory.

use super::table::{Column, Get, Table};
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type};
use std::io::{self, Write};
use std::sync::Arc;

/// Rows per row group.
const GROUP: usize = 1 << 20;
/// Rows of a column in memory at once.
const PIECE: usize = 1 << 16;

fn schema(table: &Table<'_>) -> Result<Type, ParquetError> {
    let field = |column: &Column<'_>| {
        let physical = match column.get {
            Get::Int(_) => Physical::INT64,
            Get::Real(_) => Physical::DOUBLE,
            Get::Text(_) => Physical::BYTE_ARRAY,
        };
        let logical = matches!(column.get, Get::Text(_)).then_some(LogicalType::String);
        let made = Type::primitive_type_builder(column.name, physical).with_repetition(Repetition::OPTIONAL).with_logical_type(logical);
        made.build().map(Arc::new)
    };
    let fields = table.columns.iter().map(field).collect::<Result<_, _>>()?;
    Type::group_type_builder("schema").with_fields(fields).build()
}

/// Passes values and definition levels to `put`, chunk by chunk.
fn write_pieces<T>(
    rows: std::ops::Range<usize>,
    get: &dyn Fn(usize) -> Option<T>,
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

fn write_column(out: &mut SerializedColumnWriter<'_>, of: &Column<'_>, rows: std::ops::Range<usize>) -> Result<(), ParquetError> {
    match &of.get {
        Get::Int(get) => {
            let out = out.typed::<Int64Type>();
            write_pieces(rows, get, |values, there| out.write_batch(values, Some(there), None).map(drop))
        }
        Get::Real(get) => {
            let out = out.typed::<DoubleType>();
            write_pieces(rows, get, |values, there| out.write_batch(values, Some(there), None).map(drop))
        }
        Get::Text(get) => {
            let out = out.typed::<ByteArrayType>();
            write_pieces(rows, get, |values, there| out.write_batch(values, Some(there), None).map(drop))
        }
    }
}

fn writer_properties(table: &Table<'_>, facts: &[(&str, String)]) -> Result<WriterProperties, ParquetError> {
    let mut keys: Vec<KeyValue> = facts.iter().map(|(key, value)| KeyValue::new(format!("warpscope.{key}"), value.clone())).collect();
    let mut made = WriterProperties::builder()
        .set_created_by(format!("warpscope {}", env!("CARGO_PKG_VERSION")))
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_max_row_group_row_count(Some(GROUP));
    for column in &table.columns {
        let path = ColumnPath::from(column.name);
        if !column.unit.is_empty() {
            keys.push(KeyValue::new(format!("unit.{}", column.name), column.unit.to_owned()));
        }
        if !column.about.is_empty() {
            keys.push(KeyValue::new(format!("about.{}", column.name), column.about.to_owned()));
        }
        // Times rarely repeat: a dictionary would be as large as the values.
        if column.unit == "ns" {
            made = made.set_column_dictionary_enabled(path.clone(), false).set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
    }
    Ok(made.set_key_value_metadata(Some(keys)).build())
}

/// Writes a table as one Parquet file; `facts` go into its metadata.
///
/// # Errors
/// Returns an error if the table cannot be written.
pub fn write_table(out: impl Write + Send, table: &Table<'_>, facts: &[(&str, String)]) -> io::Result<()> {
    let written = || -> Result<(), ParquetError> {
        let mut file = SerializedFileWriter::new(out, Arc::new(schema(table)?), Arc::new(writer_properties(table, facts)?))?;
        for from in (0..table.rows).step_by(GROUP) {
            let rows = from..(from + GROUP).min(table.rows);
            let mut group = file.next_row_group()?;
            for of in &table.columns {
                let Some(mut out) = group.next_column()? else { break };
                write_column(&mut out, of, rows.clone())?;
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
