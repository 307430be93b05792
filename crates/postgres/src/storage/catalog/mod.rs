//! The side tables `engine.stripe`, `engine.row_proxy`, `engine.delete_bitmap` and `engine.row_move`, as
//! tables.
//!
//! - `side_table`: their names, columns and keys; insertion, deletion, walks by index
//! - `by_heap`: walks over every tuple version, without the index
//! - `indexes`: insertion into their indexes
//!
//! What the rows mean is known in `directory` and `change`.

pub mod by_heap;
pub mod indexes;
pub mod side_table;
