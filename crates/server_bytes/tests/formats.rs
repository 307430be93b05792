//! Each format is read as it was written: documents against a second implementation of the server's
//! functions, arrays against their elements, pglz against a compressor of its own.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::cast_possible_truncation)]

mod support;

use std::cell::Cell;

use proptest::prelude::*;
use server_bytes::array::{self, Layout};
use server_bytes::{jsonb, pglz};
use support::arrays;
use support::jsonb::{Json, jsonb as document};

const KEYS: [&str; 6] = ["a", "b", "os", "name", "revenue", "a longer key"];

fn scalar() -> impl Strategy<Value = Json> {
    prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        (-2_000_000i64..2_000_000, 0u8..9).prop_map(|(value, scale)| Json::Number(value, scale)),
        // Few, so that equal ones meet.
        (0i64..4, 0u8..3).prop_map(|(value, scale)| Json::Number(value * 10i64.pow(scale.into()), scale)),
        proptest::collection::vec(1u8..128, 0..6).prop_map(Json::Text),
        (0..KEYS.len()).prop_map(|key| Json::Text(KEYS[key].as_bytes().to_vec())),
    ]
}

fn json() -> impl Strategy<Value = Json> {
    scalar().prop_recursive(5, 60, 40, |inner| {
        let pairs = proptest::collection::btree_map(0..KEYS.len(), inner.clone(), 0..=KEYS.len());
        prop_oneof![
            proptest::collection::vec(inner, 0..40).prop_map(Json::Array),
            pairs.prop_map(|pairs| Json::Object(
                pairs.into_iter().map(|(key, value)| (KEYS[key], value)).collect()
            )),
        ]
    })
}

/// Two documents, the second often a part of the first.
fn two() -> impl Strategy<Value = (Json, Json)> {
    (json(), json(), any::<u64>()).prop_map(|(value, other, choice)| match choice % 4 {
        0 => (value, other),
        _ => {
            let part = part(&value, choice / 4);
            (value, part)
        }
    })
}

/// A document with some of the parts of another.
fn part(value: &Json, choice: u64) -> Json {
    let random = Cell::new(choice | 1);
    let next = || {
        random.set(
            random.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407),
        );
        random.get() >> 33
    };
    let kept = || !next().is_multiple_of(3);
    match value {
        Json::Array(items) => {
            Json::Array(items.iter().filter(|_| kept()).map(|item| part(item, next())).collect())
        }
        Json::Object(pairs) => Json::Object(
            pairs.iter().filter(|_| kept()).map(|(key, value)| (*key, part(value, next()))).collect(),
        ),
        Json::Number(value, scale) if *scale < 8 => Json::Number(value * 10, scale + 1),
        other => other.clone(),
    }
}

fn text_of(value: &Json) -> String {
    match value {
        Json::Null => "null".into(),
        Json::Bool(truth) => truth.to_string(),
        Json::Number(value, scale) => {
            let sign = if *value < 0 { "-" } else { "" };
            let scale = usize::from(*scale);
            let digits = format!("{:0width$}", value.unsigned_abs(), width = scale + 1);
            let (whole, fraction) = digits.split_at(digits.len() - scale);
            format!("{sign}{whole}{}{fraction}", if scale > 0 { "." } else { "" })
        }
        Json::Text(text) => {
            let escaped = |byte: &u8| match byte {
                8 => "\\b".into(),
                12 => "\\f".into(),
                b'\n' => "\\n".into(),
                b'\r' => "\\r".into(),
                b'\t' => "\\t".into(),
                b'"' => "\\\"".into(),
                b'\\' => "\\\\".into(),
                byte if *byte < 32 => format!("\\u{byte:04x}"),
                byte => char::from(*byte).to_string(),
            };
            format!("\"{}\"", text.iter().map(escaped).collect::<String>())
        }
        Json::Array(items) => format!("[{}]", items.iter().map(text_of).collect::<Vec<_>>().join(", ")),
        Json::Object(pairs) => {
            let mut pairs: Vec<_> = pairs.iter().collect();
            pairs.sort_by_key(|(key, _)| (key.len(), *key));
            let pair = |(key, value): &(&str, Json)| format!("\"{key}\": {}", text_of(value));
            format!("{{{}}}", pairs.into_iter().map(pair).collect::<Vec<_>>().join(", "))
        }
        Json::Raw(_) => panic!("numerics are made of numbers here"),
    }
}

fn matches(found: &Json, wanted: &Json) -> bool {
    match (found, wanted) {
        (Json::Null, Json::Null) => true,
        (Json::Bool(a), Json::Bool(b)) => a == b,
        (Json::Text(a), Json::Text(b)) => a == b,
        (Json::Number(a, s), Json::Number(b, t)) => {
            i128::from(*a) * 10i128.pow((*t).into()) == i128::from(*b) * 10i128.pow((*s).into())
        }
        (Json::Array(items), Json::Array(wanted)) => {
            wanted.iter().all(|wanted| items.iter().any(|item| matches(item, wanted)))
        }
        (Json::Object(pairs), Json::Object(wanted)) => wanted
            .iter()
            .all(|(key, wanted)| pairs.iter().any(|(k, value)| k == key && matches(value, wanted))),
        _ => false,
    }
}

/// `found @> wanted`: only at the top an array may contain a scalar.
fn contains(found: &Json, wanted: &Json) -> bool {
    match (found, wanted) {
        (_, Json::Array(_) | Json::Object(_)) => matches(found, wanted),
        (Json::Array(items), scalar) => items.iter().any(|item| matches(item, scalar)),
        _ => matches(found, wanted),
    }
}

proptest! {
    #[test]
    fn fields_are_those_that_were_written(value in json()) {
        let bytes = document(&value);
        for key in KEYS {
            let pairs = match &value {
                Json::Object(pairs) => pairs.as_slice(),
                _ => &[],
            };
            let wanted = pairs.iter().find(|(k, _)| *k == key).map(|(_, value)| value);
            let mut out = Vec::new();
            prop_assert_eq!(jsonb::field(&bytes, key.as_bytes(), &mut out).unwrap(), wanted.is_some());
            prop_assert_eq!(&out, &wanted.map(document).unwrap_or_default());
            let mut text = Vec::new();
            let is_value = jsonb::field_text(&bytes, key.as_bytes(), &mut text).unwrap();
            let wanted = match wanted {
                None | Some(Json::Null) => None,
                Some(Json::Text(text)) => Some(text.clone()),
                Some(other) => Some(text_of(other).into_bytes()),
            };
            prop_assert_eq!(is_value.then_some(text), wanted);
            let exists = match &value {
                Json::Object(pairs) => pairs.iter().any(|(k, _)| *k == key),
                Json::Array(items) => {
                    items.iter().any(|item| matches!(item, Json::Text(text) if text == key.as_bytes()))
                }
                Json::Text(text) => text == key.as_bytes(),
                _ => false,
            };
            prop_assert_eq!(jsonb::exists(&bytes, key.as_bytes()).unwrap(), exists);
        }
    }

    #[test]
    fn documents_contain_what_they_should((value, other) in two()) {
        let (bytes, others) = (document(&value), document(&other));
        prop_assert_eq!(jsonb::contains(&bytes, &others).unwrap(), contains(&value, &other));
        prop_assert!(jsonb::contains(&bytes, &bytes).unwrap());
        prop_assert!(!jsonb::is_deep(&bytes).unwrap());
    }

    #[test]
    fn damaged_documents_are_refused_or_read(value in json(), place: prop::sample::Index, byte: u8, cut: bool) {
        let mut bytes = document(&value);
        let place = place.index(bytes.len());
        if cut { bytes.truncate(place) } else { bytes[place] = byte }
        for key in KEYS {
            let mut out = Vec::new();
            let _ = jsonb::exists(&bytes, key.as_bytes());
            let _ = jsonb::field(&bytes, key.as_bytes(), &mut out);
            let _ = jsonb::field_text(&bytes, key.as_bytes(), &mut out);
        }
        let _ = (jsonb::leaves(&bytes), jsonb::contains(&document(&value), &bytes));
    }

    #[test]
    fn arrays_have_the_elements_that_were_written(
        elements in proptest::collection::vec(
            proptest::option::weighted(0.8, proptest::collection::vec(0u8..3, 0..9)), 0..20),
        width in prop::sample::select(vec![None, Some(2usize), Some(4), Some(8)]),
    ) {
        let elements: Vec<Option<Vec<u8>>> = elements
            .into_iter()
            .map(|element| element.map(|mut element| {
                element.resize(width.unwrap_or(element.len()), 1);
                element
            }))
            .collect();
        let layout = width.map_or(Layout::Varlena, Layout::Fixed);
        let bytes = arrays::array(&elements, width);
        prop_assert_eq!(&array::elements_of(&bytes, layout).unwrap(), &elements);
        prop_assert_eq!(array::is_empty(&bytes, layout).unwrap(), elements.is_empty());
        let has_null = elements.iter().any(Option::is_none);
        for element in elements.iter().flatten() {
            prop_assert_eq!(array::has(&bytes, layout, element).unwrap(), Some(true));
            prop_assert!(array::overlaps(&bytes, layout, &[None, Some(element.clone())]).unwrap());
        }
        prop_assert_eq!(array::contains(&bytes, layout, &elements).unwrap(), !has_null);
        prop_assert_eq!(array::has(&bytes, layout, b"another").unwrap(), (!has_null).then_some(false));
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] = 3;
            let _ = (array::elements_of(&changed, layout), array::elements_of(&bytes[..place], layout));
        }
    }

    #[test]
    fn what_was_compressed_comes_back(pieces in proptest::collection::vec(
        (proptest::collection::vec(any::<u8>(), 1..12), 1usize..60), 0..30)) {
        let raw: Vec<u8> = pieces.iter().flat_map(|(piece, times)| piece.repeat(*times)).collect();
        let stream = support::pglz::compressed(&raw);
        prop_assert_eq!(&pglz::expand(&stream, raw.len()).unwrap(), &raw);
        prop_assert!(pglz::expand(&stream, raw.len() + 1).is_err());
        if let Some((last, rest)) = stream.split_last() {
            prop_assert!(pglz::expand(rest, raw.len()).is_err());
            let _ = pglz::expand(&[rest, &[last ^ 1]].concat(), raw.len());
        }
    }
}

#[test]
fn leaves_are_scalars_below_objects_only() {
    let number = || Json::Number(15, 1);
    let inner = Json::Object(vec![("a", Json::Bool(true)), ("b", Json::Text(b"x".to_vec()))]);
    let value = document(&Json::Object(vec![("os", number()), ("name", inner)]));
    let leaf =
        |keys: &[&str], leaf| (keys.iter().map(|key| key.as_bytes().to_vec()).collect::<Vec<_>>(), leaf);
    let wanted = vec![
        leaf(&["os"], jsonb::Leaf::Number),
        leaf(&["name", "a"], jsonb::Leaf::Bool(true)),
        leaf(&["name", "b"], jsonb::Leaf::Text(b"x".to_vec())),
    ];
    assert_eq!(jsonb::leaves(&value).unwrap(), Some(wanted));
    for other in [Json::Null, Json::Array(vec![]), Json::Object(vec![])] {
        assert_eq!(jsonb::leaves(&document(&other)).unwrap(), None);
        assert_eq!(jsonb::leaves(&document(&Json::Object(vec![("a", other)]))).unwrap(), None);
    }
}

#[test]
fn deep_documents_are_written_but_not_compared() {
    let deep = |levels| (0..levels).fold(number_one(), |inner, _| Json::Array(vec![inner]));
    assert!(!jsonb::is_deep(&document(&deep(499))).unwrap());
    let deepest = Json::Object(vec![("a", deep(3000))]);
    let bytes = document(&deepest);
    assert!(jsonb::is_deep(&bytes).unwrap());
    assert_eq!(jsonb::leaves(&bytes).unwrap(), None);
    let mut text = Vec::new();
    assert!(jsonb::field_text(&bytes, b"a", &mut text).unwrap());
    assert_eq!(text, format!("{}1{}", "[".repeat(3000), "]".repeat(3000)).into_bytes());
}

fn number_one() -> Json {
    Json::Number(1, 0)
}

/// Entries without a length lead to the same child again and again: to read all of it would take 40^20 steps.
#[test]
fn containers_that_share_a_child_are_refused() {
    let mut bytes = Vec::new();
    for _ in 0..20 {
        bytes.extend_from_slice(&(0x4000_0000u32 | 40).to_le_bytes());
        (0..40).for_each(|_| bytes.extend_from_slice(&0x5000_0000u32.to_le_bytes()));
    }
    bytes.extend_from_slice(&0x4000_0000u32.to_le_bytes());
    assert!(jsonb::is_deep(&bytes).is_err());
}

#[test]
fn a_container_has_one_form() {
    for header in [0u32, 0x6000_0000, 0x1000_0001, 0x5000_0002, 0x3000_0000, 0xC000_0000, 0x8000_0000] {
        let bytes = [header.to_le_bytes(), [0; 4], [0; 4]].concat();
        assert!(jsonb::exists(&bytes, b"a").is_err(), "{header:x}");
    }
}

/// Documents as PostgreSQL 15 stored them.
#[test]
fn the_servers_documents_are_read() {
    let file =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../encodings/tests/golden_strings/jsonb-postgresql-15.values");
    let bytes = std::fs::read(file).unwrap();
    let (mut rest, mut count) = (bytes.as_slice(), 0);
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let (value, after) = after.split_at(u32::from_le_bytes(*length) as usize);
        rest = after;
        count += 1;
        assert!(jsonb::contains(value, value).unwrap());
        assert!(!jsonb::is_deep(value).unwrap());
        let Some(leaves) = jsonb::leaves(value).unwrap() else { continue };
        for (keys, _) in leaves {
            let (mut inner, mut text) = (Vec::new(), Vec::new());
            assert!(jsonb::exists(value, &keys[0]).unwrap());
            assert!(jsonb::field(value, &keys[0], &mut inner).unwrap());
            assert!(jsonb::field_text(value, &keys[0], &mut text).unwrap());
            assert!(jsonb::contains(&inner, &inner).unwrap());
        }
    }
    assert!(count > 150);
}
