//! `cargo run --release --example grow -- OUT.sqlite TIMES [RANGES]`: writes a large export for `tests/compare/compare.sh`.

#[allow(dead_code, missing_docs)]
#[path = "../../benches/support.rs"]
mod support;

#[allow(clippy::print_stdout, missing_docs)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [out, times, rest @ ..] = &args[..] else {
        println!("usage: cargo run --release --example grow -- OUT.sqlite TIMES [RANGES]  (957 launches and 20 ranges a time)");
        return Ok(());
    };
    let launches = support::grow(std::path::Path::new(out), times.parse()?, rest.first().map_or(Ok(1), |r| r.parse())?)?;
    println!("{out}: {launches} launches");
    Ok(())
}
