//! All that differs between the server's major versions. No other file names a version.
