//! Size and speed of the encodings, one thread, thread CPU time, best of several passes.
//!
//! `encodings_bench micro` prints GB/s per encoding beside a memcpy of the same bytes; `stripes` what stripes
//! cost beside that. `encodings_bench columns DIR CODEC` measures the columns that bench/encodings.py left in
//! DIR and prints one tab-separated line each, for that script to lay beside others' figures. The bytes
//! counted are those of the plain Arrow array, whatever is decoded into.

mod columns;
mod micro;
mod stripes;
mod timing;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["micro"] => micro::run(),
        ["stripes"] => stripes::run(),
        ["columns", folder, codec] => columns::run(folder, codec),
        _ => Err("usage: encodings_bench micro | stripes | columns DIR none|lz4|zstd".to_string()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("encodings_bench: {message}");
            ExitCode::FAILURE
        }
    }
}
