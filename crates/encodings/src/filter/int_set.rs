//! A set of integers in which many values are looked up.

/// With this many bits for each member, most other values have a bucket that is not marked.
const BITS_PER_MEMBER: usize = 16;

/// Members of an `IN` list.
///
/// Invariant: a value whose bucket is not marked is no member. If buckets are one value wide, a value whose
/// bucket is marked is a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntSet {
    /// Ascending, each once.
    values: Vec<i128>,
    /// The buckets that have members, from the smallest member on.
    marked: Vec<u64>,
    /// A bucket is 2^`shift` values wide.
    shift: u32,
}

impl IntSet {
    /// A set of values that ascend, each once.
    pub fn new(values: Vec<i128>) -> Self {
        let first = values.first().copied().unwrap_or_default();
        let width = values.last().map_or(0, |&last| last.wrapping_sub(first).cast_unsigned());
        let bits = (values.len() * BITS_PER_MEMBER).next_power_of_two();
        let shift = (u128::BITS - width.leading_zeros()).saturating_sub(bits.ilog2());
        let mut set = Self { values, marked: Vec::new(), shift };
        let mut marked = vec![0; bits.div_ceil(64)];
        for bucket in set.values.iter().filter_map(|&value| set.bucket(value)) {
            if let Some(word) = marked.get_mut(bucket / 64) {
                *word |= 1 << (bucket % 64);
            }
        }
        set.marked = marked;
        set
    }

    /// The bucket of a value. `None` below the smallest member and far above the largest.
    fn bucket(&self, value: i128) -> Option<usize> {
        let first = *self.values.first()?;
        if value < first {
            return None;
        }
        // This is right even if the difference has 128 bits.
        usize::try_from(value.wrapping_sub(first).cast_unsigned() >> self.shift).ok()
    }

    /// Is this integer a member?
    #[inline]
    pub fn contains(&self, value: i128) -> bool {
        let Some(bucket) = self.bucket(value) else { return false };
        let is_marked = self.marked.get(bucket / 64).is_some_and(|word| word >> (bucket % 64) & 1 == 1);
        is_marked && (self.shift == 0 || self.values.binary_search(&value).is_ok())
    }

    /// The members, ascending.
    pub fn values(&self) -> &[i128] {
        &self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_its_members_and_nothing_else() {
        let sparse: Vec<i128> = (0..500).map(|i| i * i * i * 7919 - 40_000_000).collect();
        let dense = (-300..300).filter(|value| value % 3 != 0).collect();
        let ends = vec![i128::MIN, i128::MIN + 1, -1, 0, 1, i128::MAX - 1, i128::MAX];
        let clusters = (0..100).chain(1 << 100..(1 << 100) + 100).collect();
        for values in [sparse, dense, ends, clusters, vec![5, 7], vec![i128::MAX], Vec::new()] {
            let set = IntSet::new(values.clone());
            let probes = values
                .iter()
                .flat_map(|&value| [-64, -1, 0, 1, 2, 63, 64, 4096].map(|by| value.wrapping_add(by)));
            for probe in probes.chain([0, i128::MIN, i128::MAX, i128::from(i64::MIN)]) {
                assert_eq!(
                    set.contains(probe),
                    values.binary_search(&probe).is_ok(),
                    "{probe} in {values:?}"
                );
            }
        }
    }
}
