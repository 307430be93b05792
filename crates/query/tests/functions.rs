//! Functions against the server's own answers in `data/functions.txt` (made by `data/functions.sql`).
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;

use query::{Batch, CaseRule, DateField, Error, Evaluator, Expression, Function};
use support::{Plain, at, same, vector};
use vector::{CompareOp, LogicalType, Special, Vector};

fn logical(name: &str) -> LogicalType {
    match name {
        "bool" => LogicalType::Bool,
        "int2" => LogicalType::Int16,
        "int4" => LogicalType::Int32,
        "int8" => LogicalType::Int64,
        "float4" => LogicalType::Float32,
        "float8" => LogicalType::Float64,
        "numeric" => LogicalType::Numeric,
        "text" => LogicalType::Text,
        "date" => LogicalType::Date,
        "timestamp" => LogicalType::Timestamp,
        "interval" => LogicalType::FixedBytes(16),
        other => panic!("{other}"),
    }
}

/// None for what a vector cannot hold but in its side lane.
fn plain(logical: LogicalType, text: &str) -> Option<Plain> {
    let float = |text: &str| match text {
        "Infinity" => f64::INFINITY,
        "-Infinity" => f64::NEG_INFINITY,
        other => other.parse().unwrap(),
    };
    Some(match logical {
        _ if text == "NULL" => Plain::Null,
        LogicalType::Bool => Plain::Bool(text == "true" || text == "t"),
        LogicalType::Int16 | LogicalType::Int32 | LogicalType::Int64 => Plain::Int(text.parse().unwrap()),
        LogicalType::Float32 => Plain::Float(match text {
            "Infinity" | "-Infinity" => float(text),
            other => other.parse::<f32>().unwrap().into(),
        }),
        LogicalType::Float64 => Plain::Float(float(text)),
        LogicalType::Numeric => {
            let special = match text {
                "NaN" => Some(Special::Nan),
                "Infinity" => Some(Special::Infinity),
                "-Infinity" => Some(Special::NegativeInfinity),
                _ => None,
            };
            if let Some(special) = special {
                return Some(Plain::Text(special.bytes().to_vec()));
            }
            let scale = text.split_once('.').map_or(0, |(_, digits)| digits.len() as u16);
            let unscaled: i128 = text.replace('.', "").parse().ok()?;
            if unscaled.unsigned_abs() >= 10u128.pow(38) || scale > 38 {
                return None;
            }
            Plain::Numeric(unscaled, scale, scale)
        }
        LogicalType::Date => Plain::Int(i64::from(u32::from_str_radix(text, 16).unwrap() as i32)),
        LogicalType::Timestamp => Plain::Int(u64::from_str_radix(text, 16).unwrap() as i64),
        LogicalType::FixedBytes(_) => {
            // Sent in network order, kept in the machine's.
            let bits = u128::from_str_radix(text, 16).unwrap();
            let (micros, days, months) = ((bits >> 64) as i64, (bits >> 32) as i32, bits as i32);
            Plain::Text([&micros.to_ne_bytes()[..], &days.to_ne_bytes(), &months.to_ne_bytes()].concat())
        }
        _ => Plain::Text(text.as_bytes().to_vec()),
    })
}

fn field(name: &str) -> DateField {
    match name {
        "millennium" => DateField::Millennium,
        "century" => DateField::Century,
        "decade" => DateField::Decade,
        "year" => DateField::Year,
        "isoyear" => DateField::IsoYear,
        "quarter" => DateField::Quarter,
        "month" => DateField::Month,
        "week" => DateField::Week,
        "day" => DateField::Day,
        "dow" => DateField::DayOfWeek,
        "isodow" => DateField::IsoDayOfWeek,
        "doy" => DateField::DayOfYear,
        "hour" => DateField::Hour,
        "minute" => DateField::Minute,
        "second" => DateField::Second,
        "milliseconds" => DateField::Milliseconds,
        "microseconds" => DateField::Microseconds,
        "epoch" => DateField::Epoch,
        other => panic!("{other}"),
    }
}

fn function(name: &str) -> Function {
    let words: Vec<&str> = name.split(' ').collect();
    match words[..] {
        ["add"] => Function::Add,
        ["subtract"] => Function::Subtract,
        ["multiply"] => Function::Multiply,
        ["divide"] => Function::Divide,
        ["modulo"] => Function::Modulo,
        ["negate"] => Function::Negate,
        ["absolute"] => Function::Absolute,
        ["less"] => Function::Compare(CompareOp::Less),
        ["equal"] => Function::Compare(CompareOp::Equal),
        ["round"] => Function::Round,
        ["truncate"] => Function::Truncate,
        ["ceiling"] => Function::Ceiling,
        ["floor"] => Function::Floor,
        ["length", precision, scale] => {
            Function::NumericLength { precision: precision.parse().unwrap(), scale: scale.parse().unwrap() }
        }
        ["cast", to] => Function::Cast(logical(to)),
        ["extract", name] => Function::Extract(field(name)),
        ["date_part", name] => Function::DatePart(field(name)),
        ["date_trunc", name] => Function::DateTrunc(field(name)),
        ["to_char"] => Function::ToChar,
        ["like"] => Function::Like,
        ["ilike"] => Function::ILike(CaseRule::Locale),
        ["starts_with"] => Function::StartsWith,
        ["characters"] => Function::Length,
        ["octets"] => Function::OctetLength,
        ["lower"] => Function::Lower(CaseRule::Locale),
        ["upper"] => Function::Upper(CaseRule::Ascii),
        ["substring"] => Function::Substring,
        ["left"] => Function::Left,
        ["right"] => Function::Right,
        ["position"] => Function::Position,
        ["split_part"] => Function::SplitPart,
        ["replace"] => Function::Replace,
        ["ltrim"] => Function::Trim { start: true, end: false },
        ["rtrim"] => Function::Trim { start: false, end: true },
        ["btrim"] => Function::Trim { start: true, end: true },
        ["concat"] => Function::Concat,
        _ => panic!("{name}"),
    }
}

struct Line {
    text: String,
    arguments: Vec<(LogicalType, Plain)>,
    /// None: an error, or what no vector holds.
    result: Option<Plain>,
    is_error: bool,
    result_type: Option<LogicalType>,
}

fn lines() -> BTreeMap<String, Vec<Line>> {
    let mut groups: BTreeMap<String, Vec<Line>> = BTreeMap::new();
    for line in include_str!("data/functions.txt").lines() {
        let parts: Vec<&str> = line.split('\t').collect();
        let arrow = parts.iter().position(|&part| part == "=>").unwrap();
        let typed = |part: &str| {
            let (name, value) = part.split_once(':').unwrap();
            (logical(name), plain(logical(name), value))
        };
        let arguments: Vec<(LogicalType, Plain)> = parts[1..arrow]
            .iter()
            .map(|part| typed(part))
            .map(|(logical, value)| (logical, value.unwrap()))
            .collect();
        let is_error = parts[arrow + 1] == "ERROR";
        let (result_type, result) = match is_error {
            true => (None, None),
            false => {
                let (logical, value) = typed(parts[arrow + 1]);
                (Some(logical), value)
            }
        };
        let types: Vec<LogicalType> = arguments.iter().map(|(logical, _)| *logical).collect();
        let line = Line { text: line.to_owned(), arguments, result, is_error, result_type };
        groups.entry(format!("{} {types:?}", parts[0])).or_default().push(line);
    }
    groups
}

fn column(logical: LogicalType, values: &[Plain]) -> Arc<Vector> {
    Arc::new(vector(logical, values))
}

#[test]
fn every_function_gives_the_servers_answer() {
    let (mut answers, mut declined, mut wrong) = (0, 0, Vec::new());
    for (name, lines) in lines() {
        let function = function(lines[0].text.split('\t').next().unwrap());
        let Some(result) = lines.iter().find_map(|line| line.result_type) else {
            panic!("only errors: {name}")
        };
        let types: Vec<LogicalType> = lines[0].arguments.iter().map(|(logical, _)| *logical).collect();
        // Where the answer is no number, only casts have it.
        let special =
            |line: &Line| result == LogicalType::Numeric && matches!(line.result, Some(Plain::Text(_)));
        let mut judge = |line: &Line, found: Result<Plain, Error>| match (&line.result, found) {
            (Some(wanted), Ok(found)) if same(&found, wanted) => answers += 1,
            (_, Err(Error::Sql(_))) if line.is_error && function.can_raise(&types) => answers += 1,
            (None, Err(Error::Decline(_))) if function.can_decline(&types) => declined += 1,
            (_, Err(Error::Decline(_))) if special(line) && !matches!(function, Function::Cast(_)) => {
                declined += 1
            }
            // An intermediate value, or one that shows more digits than it has.
            (Some(_), Err(Error::Decline("numeric of more than 38 digits")))
                if function.can_decline(&types) =>
            {
                declined += 1
            }
            // Case of a pattern that is not ASCII.
            (Some(_), Err(Error::Decline("function"))) if matches!(function, Function::ILike(_)) => {
                declined += 1
            }
            (_, found) => wrong.push(format!("{} but {found:?}", line.text)),
        };
        // Each line for itself, its later arguments constant.
        for line in &lines {
            let arguments = line.arguments.iter().enumerate().map(|(at, (logical, value))| match at {
                0 => Expression::Column(0),
                _ => Expression::Constant(column(*logical, std::slice::from_ref(value))),
            });
            let call = Expression::Call { function, arguments: arguments.collect(), result };
            let batch = Batch::new(1, vec![column(types[0], std::slice::from_ref(&line.arguments[0].1))]);
            judge(line, Evaluator::new(&call).evaluate(&batch).map(|found| at(&found, 0)));
        }
        // All that have an answer at once, as columns.
        let arguments = (0..types.len()).map(Expression::Column).collect();
        let call = Expression::Call { function, arguments, result };
        if call.check(&types).is_err() {
            assert!(types.len() > 1, "{name}");
            continue;
        }
        let good: Vec<&Line> = {
            let computed = |line: &&Line| !special(line) || matches!(function, Function::Cast(_));
            lines.iter().filter(|line| line.result.is_some()).filter(computed).collect()
        };
        let columns = types.iter().enumerate().map(|(at, logical)| {
            let values: Vec<Plain> = good.iter().map(|line| line.arguments[at].1.clone()).collect();
            column(*logical, &values)
        });
        let found = Evaluator::new(&call).evaluate(&Batch::new(good.len(), columns.collect()));
        for (row, line) in good.iter().enumerate() {
            judge(line, found.as_ref().map(|found| at(found, row)).map_err(Clone::clone));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong, {answers} right, {declined} declined:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(60)].join("\n")
    );
    println!("{answers} right, {declined} declined");
    assert!(answers > 6_000 && declined < answers / 8, "{answers} right, {declined} declined");
}

#[test]
fn a_constant_null_makes_null_of_any_function() {
    let null = |logical| Expression::Constant(column(logical, &[Plain::Null]));
    let calls = [
        (Function::Like, vec![Expression::Column(0), null(LogicalType::Text)], LogicalType::Bool),
        (Function::Substring, vec![Expression::Column(0), null(LogicalType::Int32)], LogicalType::Text),
        (Function::Round, vec![null(LogicalType::Numeric), null(LogicalType::Int32)], LogicalType::Numeric),
    ];
    for (function, arguments, result) in calls {
        let call = Expression::Call { function, arguments, result };
        let batch =
            Batch::new(2, vec![column(LogicalType::Text, &[Plain::Text(b"a".to_vec()), Plain::Null])]);
        let found = Evaluator::new(&call).evaluate(&batch).unwrap();
        assert_eq!((found.logical, at(&found, 0), at(&found, 1)), (result, Plain::Null, Plain::Null));
    }
}

#[test]
fn what_is_not_known_is_told_before_the_first_batch() {
    let text = |text: &str| {
        Expression::Constant(column(LogicalType::Text, &[Plain::Text(text.as_bytes().to_vec())]))
    };
    let call = |function, arguments, result| Expression::Call { function, arguments, result };
    let input = [LogicalType::Timestamp, LogicalType::Text];
    let columns = || (Expression::Column(0), Expression::Column(1));
    let to_char =
        |pattern| call(Function::ToChar, vec![columns().0, text(pattern)], LogicalType::Text).check(&input);
    let like =
        |pattern| call(Function::Like, vec![columns().1, text(pattern)], LogicalType::Bool).check(&input);
    assert!(to_char("YYYY-MM-DD").is_ok());
    for pattern in ["", "Month", "DDD", "SSSS", "YYYY\"T\"", "FMMM"] {
        assert!(to_char(pattern).is_err(), "{pattern}");
    }
    assert!(like("a\\%").is_ok() && like("a\\").is_err());
    assert!(call(Function::Like, vec![columns().1, columns().1], LogicalType::Bool).check(&input).is_err());
    assert!(call(Function::Add, vec![columns().1, columns().1], LogicalType::Text).check(&input).is_err());
    assert!(call(Function::Length, vec![columns().1], LogicalType::Int64).check(&input).is_err());
    assert!(Expression::Column(2).check(&input).is_err());
}
