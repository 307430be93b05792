//! Adds up values where there are few groups.
//!
//! Called by sums and counts. Rows of one group that follow each other would wait for one another, because
//! each reads the state that the row before is still writing. So the rows of a batch go to several copies of
//! the states in turn. At its end the copies are joined. Invariant: joined copies equal one state to which
//! all rows were added (for floats, except for the order of additions).

/// The most groups whose states are copied.
const GROUPS: usize = 64;
/// The number of copies.
const COPIES: usize = 4;
/// The fewest rows of a batch for which states are copied.
const ROWS: usize = 1_024;

/// Adds each value to the state of its group. `empty` is the state that changes nothing when it is joined.
#[inline]
pub fn each<S: Copy, V: Copy>(
    states: &mut [S],
    empty: S,
    (groups, values): (&[u32], &[V]),
    add: impl Fn(&mut S, V),
    join: impl Fn(&mut S, S),
) {
    if states.len() > GROUPS || values.len() < ROWS {
        groups.iter().zip(values).for_each(|(&group, &value)| add(&mut states[group as usize], value));
        return;
    }
    let mut copies = [[empty; GROUPS]; COPIES];
    let (groups, last_groups) = groups[..values.len()].as_chunks::<COPIES>();
    let (values, last_values) = values.as_chunks::<COPIES>();
    for (groups, values) in groups.iter().zip(values) {
        for ((copy, &group), &value) in copies.iter_mut().zip(groups).zip(values) {
            add(&mut copy[group as usize % GROUPS], value);
        }
    }
    let [first, ..] = &mut copies;
    last_groups.iter().zip(last_values).for_each(|(&g, &value)| add(&mut first[g as usize % GROUPS], value));
    for copy in &copies {
        states.iter_mut().zip(copy).for_each(|(state, &copy)| join(state, copy));
    }
}
