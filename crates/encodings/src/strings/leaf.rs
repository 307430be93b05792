//! A condition on byte strings that is prepared once and tested on many values.
//!
//! Called only by the `test` of string nodes. Text and bytes are compared bytewise (`vector::LogicalType`).

use vector::{CompareOp, Scalar};

use crate::encoding::Leaf;

/// Up to this many constants are compared one after the other.
const FEW: usize = 8;

/// A prepared condition.
#[derive(Debug)]
pub enum BytesTest<'p> {
    /// Bytewise comparison.
    Compare(CompareOp, &'p [u8]),
    /// One of these, sorted.
    In(Vec<&'p [u8]>),
    /// Starts with.
    Prefix(&'p [u8]),
}

impl<'p> BytesTest<'p> {
    /// The condition of a leaf. `None` if its constant is not a byte string.
    pub fn of(leaf: &Leaf<'p>) -> Option<Self> {
        let bytes = |scalar: &'p Scalar| match scalar {
            Scalar::Bytes(bytes) => Some(bytes.as_ref()),
            _ => None,
        };
        Some(match *leaf {
            Leaf::Compare(op, scalar) => Self::Compare(op, bytes(scalar)?),
            Leaf::In(scalars) => {
                let mut values = scalars.iter().map(bytes).collect::<Option<Vec<_>>>()?;
                values.sort_unstable();
                Self::In(values)
            }
            Leaf::StartsWith(prefix) => Self::Prefix(prefix),
        })
    }

    /// Does the value pass?
    #[inline]
    pub fn passes(&self, value: &[u8]) -> bool {
        match self {
            Self::Compare(op, constant) => match op {
                CompareOp::Equal => value == *constant,
                CompareOp::NotEqual => value != *constant,
                CompareOp::Less => value < *constant,
                CompareOp::LessOrEqual => value <= *constant,
                CompareOp::Greater => value > *constant,
                CompareOp::GreaterOrEqual => value >= *constant,
            },
            Self::In(values) if values.len() <= FEW => values.contains(&value),
            Self::In(values) => values.binary_search(&value).is_ok(),
            Self::Prefix(prefix) => value.starts_with(prefix),
        }
    }
}

/// A condition whose constants were mapped into the domain of an encoding. The encoding keeps equality, so
/// mapped values are compared.
#[derive(Debug)]
pub enum Mapped<T> {
    /// The values that pass or, if negated, those that do not.
    Among {
        /// Mapped constants, sorted.
        values: Vec<T>,
        /// True for `<>`.
        negated: bool,
    },
    /// An order comparison, if the mapping also keeps order.
    Order(CompareOp, T),
}

/// Maps the constants of a leaf. If `map` returns `None` for a constant of an equality, it equals no value.
/// An order comparison is mapped only if `ordered` is set and its constant can be mapped. Prefixes are never
/// mapped.
pub fn mapped<'p, T: Ord>(
    leaf: &Leaf<'p>,
    ordered: bool,
    map: impl Fn(&'p [u8]) -> Option<T>,
) -> Option<Mapped<T>> {
    Some(match BytesTest::of(leaf)? {
        BytesTest::Compare(op @ (CompareOp::Equal | CompareOp::NotEqual), constant) => {
            Mapped::Among { values: map(constant).into_iter().collect(), negated: op == CompareOp::NotEqual }
        }
        BytesTest::In(constants) => {
            let mut values: Vec<T> = constants.into_iter().filter_map(map).collect();
            values.sort_unstable();
            Mapped::Among { values, negated: false }
        }
        BytesTest::Compare(op, constant) if ordered => Mapped::Order(op, map(constant)?),
        BytesTest::Compare(..) | BytesTest::Prefix(_) => return None,
    })
}

impl<T: Ord> Mapped<T> {
    /// Does a mapped value pass?
    #[inline]
    pub fn passes<B: Ord + ?Sized>(&self, value: &B) -> bool
    where
        T: std::borrow::Borrow<B>,
    {
        match self {
            Self::Among { values, negated } => {
                let among = match values.len() {
                    ..=FEW => values.iter().any(|one| one.borrow() == value),
                    _ => values.binary_search_by(|one| one.borrow().cmp(value)).is_ok(),
                };
                among != *negated
            }
            Self::Order(op, constant) => op.holds(value.cmp(constant.borrow())),
        }
    }
}
