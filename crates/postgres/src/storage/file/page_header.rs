//! The bytes that our pages begin with, after the server's own page header.
//!
//! Every page of ours is a legal heap page without line pointers and without free space: `pd_lower`,
//! `pd_upper` and `pd_special` are all 24, and PD_ALL_VISIBLE is set. So heap code finds nothing to read,
//! prune, freeze or fill. From byte 24 on there are, little-endian:
//!
//! | offset | stripe page | metapage |
//! | --- | --- | --- |
//! | 24 | magic `CNST` (u32) | magic `CNMP` (u32) |
//! | 28 | version (u16), zero (u16) | version (u16), zero (u16) |
//! | 32 | storage id (u64) | storage id (u64) |
//! | 40 | first row number of the stripe (u64) | next row number (u64) |
//! | 48 | full 64-bit xid of the writer (u64) | fingerprint of the dead row numbers at the last sweep of the indexes (u64) |
//! | 56 | page number within the run (u32) | what died before this xid was swept (u32; 0: unknown) |
//! | 60 | check of bytes 24..60 (u32) | check of bytes 24..60 |
//! | 64 | payload | zero |
//!
//! Invariant: a header whose check fails is never believed.

use crate::host::buffer::{PAGE_BYTES, PAGE_HEADER_BYTES};

const STRIPE_MAGIC: u32 = u32::from_le_bytes(*b"CNST");
const META_MAGIC: u32 = u32::from_le_bytes(*b"CNMP");
const VERSION: u16 = 1;
/// Where the payload of a stripe page starts.
pub const PAYLOAD_OFFSET: usize = 64;
/// Payload bytes of one stripe page.
pub const PAYLOAD_BYTES: usize = PAGE_BYTES - PAYLOAD_OFFSET;

/// The writer of a stripe page, for the check that nobody needs the page any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageOwner {
    /// Storage id of the relation's file.
    pub storage_id: u64,
    /// First row number of the stripe (or of the reservation it is written for).
    pub first_row: u64,
    /// Full 64-bit id of the writing top-level transaction.
    pub writer: u64,
}

/// A parsed page header of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Header {
    /// Block 0.
    Meta {
        /// Identity of the file's contents.
        storage_id: u64,
        /// Lowest row number not handed out yet.
        next_row: u64,
        /// Fingerprint of the row numbers that were dead when index entries were last swept.
        swept: u64,
        /// That sweep had all rows that died before this transaction. Invalid if there was no sweep. For
        /// statistics only, as ids of transactions wrap around.
        swept_before: u32,
    },
    /// One page of a run.
    Stripe {
        /// The writer of the page.
        owner: PageOwner,
        /// Position within the run.
        page_number: u32,
    },
}

/// What a page turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parsed {
    /// A heap page, or anything else that is not ours.
    Foreign,
    /// A page of ours that is intact.
    Ours(Header),
    /// A page of ours, by its magic or shape, that is not intact.
    Broken(&'static str),
}

fn field<const N: usize>(page: &[u8], offset: usize) -> [u8; N] {
    let mut out = [0u8; N];
    if let Some(bytes) = page.get(offset..offset + N) {
        out.copy_from_slice(bytes);
    }
    out
}

/// CRC-32C of each byte value followed by no, one, two and three zero bytes.
const CRC_OF_BYTE: [[u32; 256]; 4] = {
    let mut tables = [[0; 256]; 4];
    let mut entry = 0;
    while entry < 4 * 256 {
        let (zeros, byte) = (entry / 256, entry % 256);
        let mut crc = if zeros == 0 { byte as u32 } else { tables[zeros - 1][byte] };
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg());
            bit += 1;
        }
        tables[zeros][byte] = crc;
        entry += 1;
    }
    tables
};

/// CRC-32C of some words, four bytes at a time, because a scan asks for it once a page.
fn check(bytes: &[u8]) -> u32 {
    let (words, _) = bytes.as_chunks::<4>();
    let next = |crc: u32, word: &[u8; 4]| {
        let bytes = (crc ^ u32::from_le_bytes(*word)).to_le_bytes();
        let parts = bytes.iter().zip(CRC_OF_BYTE.iter().rev());
        parts.fold(0, |crc, (&byte, table)| crc ^ table[usize::from(byte)])
    };
    !words.iter().fold(!0u32, next)
}

/// The 40 bytes of a header, to be copied to offset 24 of a page.
pub fn encode(header: &Header) -> [u8; PAYLOAD_OFFSET - PAGE_HEADER_BYTES] {
    let mut out = [0u8; PAYLOAD_OFFSET - PAGE_HEADER_BYTES];
    let (magic, storage_id, row, writer, number) = match *header {
        Header::Meta { storage_id, next_row, swept, swept_before } => {
            (META_MAGIC, storage_id, next_row, swept, swept_before)
        }
        Header::Stripe { owner, page_number } => {
            (STRIPE_MAGIC, owner.storage_id, owner.first_row, owner.writer, page_number)
        }
    };
    out[0..4].copy_from_slice(&magic.to_le_bytes());
    out[4..6].copy_from_slice(&VERSION.to_le_bytes());
    out[8..16].copy_from_slice(&storage_id.to_le_bytes());
    out[16..24].copy_from_slice(&row.to_le_bytes());
    out[24..32].copy_from_slice(&writer.to_le_bytes());
    out[32..36].copy_from_slice(&number.to_le_bytes());
    let sum = check(&out[..36]);
    out[36..40].copy_from_slice(&sum.to_le_bytes());
    out
}

/// Reads the header of a whole page.
pub fn parse(page: &[u8]) -> Parsed {
    if page.len() != PAGE_BYTES {
        return Parsed::Broken("page has the wrong size");
    }
    let lower = u16::from_ne_bytes(field(page, 12));
    let upper = u16::from_ne_bytes(field(page, 14));
    let special = u16::from_ne_bytes(field(page, 16));
    let bare = [lower, upper, special].iter().all(|&p| usize::from(p) == PAGE_HEADER_BYTES);
    let magic = u32::from_le_bytes(field(page, 24));
    if !bare {
        return Parsed::Foreign;
    }
    if magic != STRIPE_MAGIC && magic != META_MAGIC {
        return Parsed::Broken("page has the shape of a stripe page but not its magic number");
    }
    if check(page.get(24..60).unwrap_or(&[])) != u32::from_le_bytes(field(page, 60)) {
        return Parsed::Broken("checksum of the page's header does not match");
    }
    if u16::from_le_bytes(field(page, 28)) != VERSION {
        return Parsed::Broken("page has an unknown format version");
    }
    let storage_id = u64::from_le_bytes(field(page, 32));
    let row = u64::from_le_bytes(field(page, 40));
    let writer = u64::from_le_bytes(field(page, 48));
    let page_number = u32::from_le_bytes(field(page, 56));
    if magic == META_MAGIC {
        let (next_row, swept, swept_before) = (row, writer, page_number);
        return Parsed::Ours(Header::Meta { storage_id, next_row, swept, swept_before });
    }
    Parsed::Ours(Header::Stripe { owner: PageOwner { storage_id, first_row: row, writer }, page_number })
}
