//! Makes PostgreSQL jsonb containers for tests, by the layout in `utils/jsonb.h`: a second implementation, so
//! that what the encoder reads is checked against something written apart from it.

/// A JSON value; object keys are sorted here as jsonb wants them.
#[derive(Debug, Clone)]
pub enum Json {
    Null,
    Bool(bool),
    /// Scaled integer and display scale.
    Number(i64, u8),
    Text(Vec<u8>),
    Array(Vec<Json>),
    Object(Vec<(&'static str, Json)>),
    /// A numeric's bytes after its length word.
    Raw(Vec<u8>),
}

/// The bytes of a jsonb value without the length in front.
pub fn jsonb(value: &Json) -> Vec<u8> {
    let mut out = Vec::new();
    match value {
        Json::Array(_) | Json::Object(_) => {
            append(value, &mut out);
        }
        scalar => {
            out.extend_from_slice(&0x5000_0001u32.to_le_bytes());
            let place = out.len();
            out.extend_from_slice(&[0; 4]);
            let entry = append(scalar, &mut out);
            out[place..place + 4].copy_from_slice(&(entry | 0x8000_0000).to_le_bytes());
        }
    }
    out
}

fn pad(out: &mut Vec<u8>) {
    while !out.len().is_multiple_of(4) {
        out.push(0);
    }
}

/// Appends a value; returns its entry word with the length.
fn append(value: &Json, out: &mut Vec<u8>) -> u32 {
    let start = out.len();
    let kind = match value {
        Json::Null => 0x4000_0000,
        Json::Bool(false) => 0x2000_0000,
        Json::Bool(true) => 0x3000_0000,
        Json::Text(text) => {
            out.extend_from_slice(text);
            0
        }
        Json::Number(value, scale) => {
            pad(out);
            let body = numeric(*value, *scale);
            out.extend_from_slice(&((body.len() as u32 + 4) << 2).to_le_bytes());
            out.extend_from_slice(&body);
            0x1000_0000
        }
        Json::Raw(body) => {
            pad(out);
            out.extend_from_slice(&((body.len() as u32 + 4) << 2).to_le_bytes());
            out.extend_from_slice(body);
            0x1000_0000
        }
        Json::Array(items) => {
            pad(out);
            out.extend_from_slice(&(items.len() as u32 | 0x4000_0000).to_le_bytes());
            children(&items.iter().map(Child::Value).collect::<Vec<_>>(), out);
            0x5000_0000
        }
        Json::Object(pairs) => {
            pad(out);
            let mut order: Vec<&(&str, Json)> = pairs.iter().collect();
            order.sort_by_key(|(key, _)| (key.len(), *key));
            out.extend_from_slice(&(pairs.len() as u32 | 0x2000_0000).to_le_bytes());
            let keys = order.iter().map(|(key, _)| Child::Key(key));
            let all: Vec<Child<'_>> =
                keys.chain(order.iter().map(|(_, value)| Child::Value(value))).collect();
            children(&all, out);
            0x5000_0000
        }
    };
    kind | (out.len() - start) as u32
}

enum Child<'c> {
    Key(&'c str),
    Value(&'c Json),
}

fn children(all: &[Child<'_>], out: &mut Vec<u8>) {
    let entries = out.len();
    out.resize(entries + 4 * all.len(), 0);
    let mut total = 0;
    for (i, child) in all.iter().enumerate() {
        let mut entry = match child {
            Child::Key(key) => {
                out.extend_from_slice(key.as_bytes());
                key.len() as u32
            }
            Child::Value(value) => append(value, out),
        };
        total += entry & 0x0FFF_FFFF;
        if i % 32 == 0 {
            entry = (entry & 0x7000_0000) | total | 0x8000_0000;
        }
        out[entries + 4 * i..entries + 4 * i + 4].copy_from_slice(&entry.to_le_bytes());
    }
}

/// A numeric in short form, made from its decimal text rather than by arithmetic.
fn numeric(value: i64, scale: u8) -> Vec<u8> {
    let digits = format!("{:0width$}", value.unsigned_abs(), width = usize::from(scale) + 1);
    let (whole, fraction) = digits.split_at(digits.len() - usize::from(scale));
    let mut groups: Vec<u16> = Vec::new();
    let padded = format!("{}{}", "0".repeat((4 - whole.len() % 4) % 4), whole);
    let chunk = |text: &str| {
        text.as_bytes()
            .chunks(4)
            .map(|c| std::str::from_utf8(c).unwrap().parse().unwrap())
            .collect::<Vec<u16>>()
    };
    groups.extend(chunk(&padded));
    let mut weight = groups.len() as i32 - 1;
    groups.extend(chunk(&format!("{}{}", fraction, "0".repeat((4 - fraction.len() % 4) % 4))));
    while groups.first() == Some(&0) {
        groups.remove(0);
        weight -= 1;
    }
    while groups.last() == Some(&0) {
        groups.pop();
    }
    if groups.is_empty() {
        weight = 0;
    }
    let sign = if value < 0 { 0x2000 } else { 0 };
    let header = 0x8000u16 | sign | u16::from(scale) << 7 | (weight as u16 & 0x7F);
    let mut out = header.to_le_bytes().to_vec();
    groups.iter().for_each(|group| out.extend_from_slice(&group.to_le_bytes()));
    out
}
