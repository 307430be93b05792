//! Stripes in memory as a store for the scan, and what they must give, for tests.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use encodings::{BlockCodecs, NoPglz};
use stripe::scan::{
    BatchLayout, ChunkPlan, RowsOut, ScanClause, ScanColumn, Store, StripeInfo, StripeScan, VectorRequest,
};
use stripe::{EncodedStripe, OpenStripe, StripeBytes, StripeOptions, StripeReader, write_stripe};
use vector::{LogicalType, Predicate, Result, Vector};

use super::{LAYOUTS, Random, any_column, satisfies};

pub const CHUNK_ROWS: u32 = 64;

/// Stripes in memory. Row numbers have gaps between stripes.
pub struct Memory {
    pub stripes: Vec<(u64, EncodedStripe)>,
    pub out: Vec<Range<u64>>,
    /// How often bytes were read.
    pub reads: Rc<Cell<usize>>,
    /// The device that they lie on.
    pub device: Rc<Device>,
}

/// What a scan says to a store whose bytes are far away.
#[derive(Default)]
pub struct Device {
    pub is_far: Cell<bool>,
    /// Bytes that were named: stripe, range, and how many bytes had been named by then.
    named: RefCell<Vec<(usize, Range<u64>, u64)>>,
    awaited: Cell<u64>,
    /// The most bytes that were named and not awaited.
    pub most_ahead: Cell<u64>,
    /// Bytes that were read, and those of them that had been awaited.
    pub read: Cell<u64>,
    pub foreseen: Cell<u64>,
}

impl Device {
    /// How many bytes were named.
    pub fn named(&self) -> u64 {
        self.named.borrow().last().map_or(0, |last| last.2)
    }

    fn read(&self, at: usize, range: &Range<u64>) {
        let holds = |(stripe, named, number): &(usize, Range<u64>, u64)| {
            let within = named.start <= range.start && range.end <= named.end;
            *stripe == at && within && *number <= self.awaited.get()
        };
        let length = range.end - range.start;
        self.read.set(self.read.get() + length);
        if self.named.borrow().iter().any(holds) {
            self.foreseen.set(self.foreseen.get() + length);
        }
    }
}

pub struct Bytes<'a>(&'a Memory, usize);

impl StripeBytes for Bytes<'_> {
    fn read(&self, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        let Self(store, at) = *self;
        store.reads.set(store.reads.get() + 1);
        store.device.read(at, &range);
        out.extend_from_slice(&store.stripes[at].1.bytes[range.start as usize..range.end as usize]);
        Ok(())
    }
}

impl Store for Memory {
    type Stripe = Rc<StripeReader>;
    type Bytes<'a> = Bytes<'a>;

    fn stripe(&self, at: usize) -> Option<StripeInfo<'_>> {
        let (first_row, stripe) = self.stripes.get(at)?;
        let footer = stripe.footer_offset..stripe.footer_offset + u64::from(stripe.footer_length);
        let EncodedStripe { row_count, summary, .. } = stripe;
        Some(StripeInfo { first_row: *first_row, row_count: *row_count, summary, footer })
    }

    fn open(&self, at: usize) -> Result<Rc<StripeReader>> {
        let stripe = &self.stripes[at].1;
        Ok(Rc::new(StripeReader::open(&stripe.bytes[stripe.footer_offset as usize..])?))
    }

    fn reader(stripe: &Rc<StripeReader>) -> &dyn OpenStripe {
        stripe.as_ref()
    }

    fn bytes(&self, at: usize) -> Result<Bytes<'_>> {
        Ok(Bytes(self, at))
    }

    fn rows_out(&self, rows: Range<u64>, out: &mut RowsOut) {
        for range in self.out.iter().rev() {
            match range.end - range.start {
                1 => out.row(range.start),
                _ => out.rows(range.start.max(rows.start)..range.end),
            }
        }
    }

    fn codecs(&self) -> &'static dyn BlockCodecs {
        &NoPglz
    }

    fn number(&self) -> u32 {
        7
    }

    fn reach(&self) -> u64 {
        if self.device.is_far.get() { u64::MAX } else { 0 }
    }

    fn read_ahead(&self, at: usize, ranges: &[Range<u64>]) -> u64 {
        let device = &self.device;
        for range in ranges {
            let number = device.named() + range.end - range.start;
            device.named.borrow_mut().push((at, range.clone(), number));
        }
        device.most_ahead.set(device.most_ahead.get().max(device.named() - device.awaited.get()));
        device.named()
    }

    fn await_ahead(&self, number: u64) {
        assert!(number <= self.device.named(), "what was never named is awaited");
        self.device.awaited.set(self.device.awaited.get().max(number));
    }
}

/// Rows with their columns, in memory and in stripes.
pub struct Table {
    /// Columns of each stripe.
    pub columns: Vec<Vec<Vector>>,
    pub first_rows: Vec<u64>,
    pub stripes: Vec<EncodedStripe>,
    pub out: Vec<Range<u64>>,
    pub types: Vec<LogicalType>,
}

impl Table {
    pub fn random(random: &mut Random, types: &[LogicalType]) -> Self {
        let mut table = Self::of(Vec::new());
        table.types = types.to_vec();
        for _ in 0..1 + random.below(4) {
            let rows = random.pick(&[1usize, 63, 64, 200, 333]);
            table.add(types.iter().map(|&logical| any_column(random, logical, rows)).collect());
        }
        for (&first, stripe) in table.first_rows.iter().zip(&table.stripes) {
            let at = |random: &mut Random| first + random.below(stripe.row_count.into());
            match random.below(4) {
                0 => {}
                1 => table.out.push(first..first + u64::from(stripe.row_count)),
                _ => {
                    for _ in 0..random.below(20) {
                        let row = at(random);
                        table.out.push(row..row + 1);
                    }
                    let row = at(random);
                    table.out.push(row..row + random.below(150));
                }
            }
        }
        table
    }

    pub fn of(stripes: Vec<Vec<Vector>>) -> Self {
        let mut table = Self {
            columns: Vec::new(),
            first_rows: Vec::new(),
            stripes: Vec::new(),
            out: Vec::new(),
            types: stripes.first().map_or(Vec::new(), |columns| columns.iter().map(|c| c.logical).collect()),
        };
        stripes.into_iter().for_each(|columns| table.add(columns));
        table
    }

    pub fn add(&mut self, columns: Vec<Vector>) {
        // In turns, so that one scan meets both.
        let layout = LAYOUTS[self.stripes.len() % LAYOUTS.len()];
        let options = StripeOptions { layout, chunk_rows: CHUNK_ROWS, ..Default::default() };
        let rows = columns[0].len();
        let last = self.first_rows.last().zip(self.stripes.last());
        self.first_rows.push(last.map_or(1000, |(first, stripe)| first + u64::from(stripe.row_count) + 17));
        self.stripes.push(write_stripe(rows as u32, &columns, &options).unwrap());
        self.columns.push(columns);
    }

    pub fn is_out(&self, row: u64) -> bool {
        self.out.iter().any(|range| range.contains(&row))
    }

    /// Rows that pass, as stripe, position and number.
    pub fn passing(&self, wanted: &Predicate) -> Vec<(usize, usize, u64)> {
        let mut rows = Vec::new();
        for (stripe, columns) in self.columns.iter().enumerate() {
            for row in 0..columns[0].len() {
                let number = self.first_rows[stripe] + row as u64;
                if !self.is_out(number) && satisfies(columns, row, wanted) == Some(true) {
                    rows.push((stripe, row, number));
                }
            }
        }
        rows
    }

    /// The values of a column for such rows.
    pub fn values(&self, column: usize, rows: &[(usize, usize, u64)]) -> Vec<Vector> {
        rows.iter().map(|&(stripe, row, _)| self.columns[stripe][column].take(&[row as u32])).collect()
    }

    pub fn scan(&self) -> StripeScan<Memory> {
        let stripes = self.first_rows.iter().copied().zip(self.stripes.iter().cloned()).collect();
        let (reads, device) = (Rc::default(), Rc::default());
        StripeScan::new(Memory { stripes, out: self.out.clone(), reads, device })
    }

    pub fn plan(&self, clauses: Vec<ScanClause>) -> ChunkPlan {
        let column = |(index, &logical)| ScanColumn { index, logical, wanted: true };
        let columns = self.types.iter().enumerate().map(column).collect();
        ChunkPlan::new(columns, clauses, Vec::new(), Vec::new(), &NoPglz)
    }

    pub fn layout(&self, request: &VectorRequest) -> Arc<BatchLayout> {
        Arc::new(BatchLayout {
            columns: request.columns().to_vec(),
            missing: vec![None; self.types.len()],
            conditions: request.conditions().to_vec(),
            ..Default::default()
        })
    }
}
