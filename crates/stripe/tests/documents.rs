//! Questions about documents have the same answers however their chunk is encoded, and whichever rows are
//! asked for.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

#[path = "../../server_bytes/tests/support/mod.rs"]
mod server_values;

use encodings::{EncodingId, NoPglz};
use server_bytes::Question;
use server_values::jsonb::{Json, jsonb};
use stripe::{Layout, StripeOptions, StripeReader, documents, write_stripe};
use vector::{LogicalType, Selection, Vector, VectorBuilder};

const ROWS: u32 = 600;

/// Documents of several shapes: keys that are missing, NULL, of another kind, or hold containers.
fn values() -> Vector {
    let mut builder = VectorBuilder::new(LogicalType::Bytes);
    for row in 0..i64::from(ROWS) {
        let text = |text: &str| Json::Text(text.as_bytes().to_vec());
        let mut keys = vec![
            ("os", text(["android", "ios", "linux"][row as usize % 3])),
            ("revenue", Json::Number(row * 7, 2)),
            ("premium", Json::Bool(row % 4 == 0)),
        ];
        match row % 10 {
            3 => keys[0].1 = Json::Null,
            4 => keys[0].1 = Json::Number(row, 0),
            5 => keys[0].1 = Json::Array(vec![text("ios")]),
            6 => drop(keys.remove(0)),
            _ => {}
        }
        if row % 5 == 0 {
            let inner = Json::Object(vec![("a", Json::Bool(row % 2 == 0)), ("name", text("x"))]);
            keys.push(("inner", inner));
        }
        match row % 37 {
            9 => builder.push_null(),
            10 => assert!(builder.push_bytes(&jsonb(&text("os")))),
            _ => assert!(builder.push_bytes(&jsonb(&Json::Object(keys)))),
        }
    }
    builder.finish(&|_, _, _| Box::default())
}

fn questions() -> Vec<Question> {
    let object = |pairs: &[(&'static str, Json)]| jsonb(&Json::Object(pairs.to_vec()));
    let keys = ["os", "revenue", "premium", "inner", "missing"];
    let mut questions: Vec<Question> = Vec::new();
    for key in keys.map(|key| key.as_bytes().to_vec()) {
        questions.push(Question::FieldText(key.clone()));
        questions.push(Question::Field(key.clone()));
        questions.push(Question::Exists(key));
    }
    let ios = Json::Text(b"ios".to_vec());
    let inner = Json::Object(vec![("a", Json::Bool(true))]);
    for other in [
        object(&[("os", ios.clone())]),
        object(&[("os", ios.clone()), ("premium", Json::Bool(true))]),
        object(&[("revenue", Json::Number(70, 1))]),
        object(&[("inner", inner)]),
        object(&[("os", Json::Array(vec![ios]))]),
        object(&[("os", Json::Null)]),
        object(&[]),
    ] {
        questions.push(Question::Contains(other));
    }
    questions
}

/// The answers row by row, NULLs as None.
fn rows_of(answers: &Vector) -> Vec<Option<Vec<u8>>> {
    let flat = answers.clone().flatten();
    let row = |row: usize| match &flat.values {
        vector::Values::Bytes(values) => values.get(row).to_vec(),
        vector::Values::Bool(bits) => vec![u8::from(bits.get(row))],
        _ => unreachable!("texts, documents and truth values"),
    };
    (0..flat.len()).map(|at| flat.is_valid(at).then(|| row(at))).collect()
}

#[test]
fn answers_do_not_depend_on_the_encoding() {
    let column = values();
    let few: Vec<u32> = (0..ROWS).step_by(23).collect();
    let many: Vec<u32> = (0..ROWS).filter(|row| row % 5 != 1).collect();
    let mut shredded = 0;
    let (columns, blocks) = (Layout::Columns, Layout::Blocks);
    let ways = [EncodingId::Template, EncodingId::Plain].map(|force| [(force, columns), (force, blocks)]);
    for (force, layout) in ways.into_iter().flatten() {
        let options =
            StripeOptions { layout, chunk_rows: ROWS, force: Some(force), ..StripeOptions::default() };
        let stripe = write_stripe(ROWS, std::slice::from_ref(&column), &options).unwrap();
        let start = stripe.footer_offset as usize;
        let reader = StripeReader::open(&stripe.bytes[start..start + stripe.footer_length as usize]).unwrap();
        let chunk = reader.read_chunk(0, 0, &stripe.bytes, &NoPglz).unwrap();
        shredded += usize::from(!chunk.paths(&NoPglz).unwrap().is_empty());
        for question in questions() {
            let wanted = rows_of(&question.answers(Some(&column), ROWS as usize).unwrap());
            assert!(wanted.iter().flatten().next().is_some() || question.operator().starts_with("->"));
            for selection in
                [Selection::All(ROWS), Selection::Rows(few.clone()), Selection::Rows(many.clone())]
            {
                let answers = documents::answers(&question, &chunk, &selection, &NoPglz).unwrap();
                let wanted: Vec<_> = selection.iter().map(|row| wanted[row as usize].clone()).collect();
                assert_eq!(rows_of(&answers), wanted, "{question:?} of {force:?} in {layout:?}");
            }
        }
    }
    assert_eq!(shredded, 2, "half of them are shredded");
}
