//! The side tables `engine.stripe`, `engine.row_proxy`, `engine.delete_bitmap`, `engine.row_move`,
//! `engine.column_file` and `engine.column_file_default`, as tables.
//!
//! - `side_table`: their names, columns and keys; insertion, deletion, walks by index
//! - `row_cursor`: one row of them, and who sees it
//! - `by_heap`: walks over every tuple version, without the index
//! - `indexes`: insertion into their indexes
//! - `generation`: how often what they say of a storage id was changed
//!
//! What the rows mean is known in `directory` and `change`.

pub mod by_heap;
pub mod generation;
pub mod indexes;
pub mod row_cursor;
pub mod side_table;
