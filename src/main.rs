//! Entry point; everything else is in the library crate.

fn main() -> std::process::ExitCode {
    warpscope::cli::main()
}
