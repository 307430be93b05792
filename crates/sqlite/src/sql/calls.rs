//! Scalar functions of SQLite's.

use query::{CaseRule, Expression, Function};
use vector::LogicalType;

use super::asked::class_of;
use super::expressions::{branches, limit_of, negated};
use super::planner::Planner;
use super::typed::{Class, Typed, call, constant, int32, united, unsupported, widened};
use crate::api::{Result, Value};
use crate::values::Owned;
use vector::CompareOp;

impl Planner<'_> {
    /// A call of a scalar function.
    pub fn scalar_call(&mut self, name: &str, arguments: Vec<Typed>) -> Result<Typed> {
        let name = name.to_ascii_lowercase();
        let references: Vec<&Typed> = arguments.iter().collect();
        let places: Vec<String> = (1..=arguments.len()).map(|at| format!("?{at}")).collect();
        // What SQLite gives depends on the time, or differs from row to row.
        let is_stable = !matches!(
            name.as_str(),
            "random" | "randomblob" | "changes" | "total_changes" | "last_insert_rowid"
        );
        if is_stable
            && let Some(known) = self.folded(&format!("{name}({})", places.join(", ")), &references)?
        {
            return Ok(known);
        }
        let arguments: Vec<Typed> = arguments.into_iter().map(Typed::plain).collect();
        match (name.as_str(), arguments.as_slice()) {
            ("coalesce" | "ifnull", _) => self.coalesce(arguments),
            ("iif" | "if", [condition, then, otherwise]) => {
                branches(vec![condition.clone().condition()?], vec![then.clone(), otherwise.clone()])
            }
            ("iif" | "if", [condition, then]) => {
                branches(vec![condition.clone().condition()?], vec![then.clone(), Typed::null()])
            }
            ("nullif", [a, b]) => {
                let equal = self.compare(CompareOp::Equal, a.clone(), b.clone())?;
                branches(vec![equal], vec![Typed::null(), a.clone()])
            }
            ("min" | "max", [first, rest @ ..]) if !rest.is_empty() => {
                self.extreme(name == "min", first.clone(), rest)
            }
            ("like" | "glob", [pattern, text, rest @ ..]) => {
                self.pattern(name == "glob", pattern, text, rest)
            }
            ("abs", [value]) => self.absolute(value.clone()),
            ("round", [value, rest @ ..]) => self.round(value.clone(), rest),
            (name, values)
                if class_of(name).is_none()
                    && values.iter().any(|value| matches!(value.class, Class::Null)) =>
            {
                Ok(Typed::null())
            }
            ("length", [text]) if text.class == Class::Text => Ok(integer_of(Function::Length, text)),
            ("octet_length", [text]) if text.class == Class::Text => {
                Ok(integer_of(Function::OctetLength, text))
            }
            ("unicode", [text]) if text.class == Class::Text => {
                let body = |values: &[Value<'_>]| match values {
                    [Value::Text(text)] => {
                        let first = String::from_utf8_lossy(text).chars().next();
                        first.map(|first| Owned::Integer(u32::from(first).into()))
                    }
                    _ => None,
                };
                let value = self.row_function("unicode", LogicalType::Int64, body, vec![text.value.clone()]);
                Ok(Typed::new(value, Class::Integer))
            }
            ("upper", [text]) if text.class == Class::Text => {
                Ok(text_of(Function::Upper(CaseRule::Ascii), vec![text.value.clone()]))
            }
            ("lower", [text]) if text.class == Class::Text => {
                Ok(text_of(Function::Lower(CaseRule::Ascii), vec![text.value.clone()]))
            }
            ("trim" | "ltrim" | "rtrim", texts) if all_text(texts) && texts.len() <= 2 => {
                let trim = Function::Trim { start: name != "rtrim", end: name != "ltrim" };
                Ok(text_of(trim, values_of(texts)))
            }
            ("replace", texts) if all_text(texts) && texts.len() == 3 => {
                Ok(text_of(Function::Replace, values_of(texts)))
            }
            ("instr", texts) if all_text(texts) && texts.len() == 2 => {
                let found = call(Function::Position, values_of(texts), LogicalType::Int32);
                Ok(Typed::new(widened(found), Class::Integer))
            }
            ("substr" | "substring", [text, rest @ ..]) if text.class == Class::Text => {
                self.substr(text, rest)
            }
            ("likelihood" | "likely" | "unlikely", [value, ..]) => Ok(value.clone()),
            ("sign", [value]) if value.class.is_number() => {
                let zero = Typed::constant(Value::Integer(0))?;
                let less = self.compare(CompareOp::Less, value.clone(), zero.clone())?;
                let more = self.compare(CompareOp::Greater, value.clone(), zero.clone())?;
                let equal = self.compare(CompareOp::Equal, value.clone(), zero)?;
                let one = |number| Typed::constant(Value::Integer(number));
                branches(vec![less, more, equal], vec![one(-1)?, one(1)?, one(0)?, Typed::null()])
            }
            _ => self.by_name(&name, &arguments),
        }
    }

    fn coalesce(&mut self, arguments: Vec<Typed>) -> Result<Typed> {
        let conditions = arguments
            .iter()
            .map(|argument| negated(Expression::IsNull(Box::new(argument.value.clone())), true).value);
        let conditions: Vec<Expression> = conditions.collect();
        let limit = limit_of(&arguments);
        let (class, values, flags) = united(arguments)?;
        match flags {
            None if class == Class::Null => Ok(Typed::null()),
            None => Ok(Typed::new(Expression::Coalesce(values), class).within(limit)),
            Some(mut flags) => {
                let otherwise = flags.pop().map(Box::new);
                let chosen = conditions.into_iter().zip(flags).collect();
                let result = LogicalType::Bool;
                let is_real = Expression::Case { branches: chosen, otherwise, result };
                Ok(Typed::new(Expression::Coalesce(values), Class::Number(Box::new(is_real))).within(limit))
            }
        }
    }

    /// `min` and `max` of several values.
    fn extreme(&mut self, least: bool, first: Typed, rest: &[Typed]) -> Result<Typed> {
        let mut best = first;
        for value in rest {
            if matches!(best.class, Class::Null) || matches!(value.class, Class::Null) {
                return Ok(Typed::null());
            }
            let op = if least { CompareOp::LessOrEqual } else { CompareOp::GreaterOrEqual };
            let keeps = self.compare(op, best.clone(), value.clone())?;
            let loses = Expression::Not(Box::new(keeps.clone()));
            best = branches(vec![keeps, loses], vec![best, value.clone(), Typed::null()])?;
        }
        Ok(best)
    }

    fn pattern(&mut self, is_glob: bool, pattern: &Typed, text: &Typed, rest: &[Typed]) -> Result<Typed> {
        if matches!(text.class, Class::Null) || matches!(pattern.class, Class::Null) {
            return Ok(Typed::null());
        }
        let Some(Some(Owned::Text(known))) = pattern.known() else {
            return Err(unsupported("a pattern that is no constant text"));
        };
        if text.class != Class::Text {
            return Err(unsupported("patterns for numbers: CAST them to TEXT"));
        }
        if is_glob {
            let arguments = vec![pattern.value.clone(), text.value.clone()];
            let body = |values: &[Value<'_>]| match values {
                [Value::Text(pattern), Value::Text(text)] => {
                    Some(Owned::Integer(super::glob::matches(pattern, text).into()))
                }
                _ => None,
            };
            return Ok(Typed::truth(self.row_function("glob", LogicalType::Bool, body, arguments)));
        }
        let escape = match rest {
            [] => None,
            [escape] => match escape.known() {
                Some(Some(Owned::Text(escape))) if escape.len() == 1 => escape.first().copied(),
                _ => return Err(unsupported("ESCAPE with something else than one letter")),
            },
            _ => return Err(unsupported("like() with so many arguments")),
        };
        // The engine's escape is the backslash.
        let mut engine_pattern = Vec::new();
        let mut bytes = known.iter().copied();
        while let Some(byte) = bytes.next() {
            if Some(byte) == escape {
                let Some(next) = bytes.next() else { return Typed::constant(Value::Integer(0)) };
                engine_pattern.extend([b'\\', next]);
            } else if byte == b'\\' {
                engine_pattern.extend(*b"\\\\");
            } else {
                engine_pattern.push(byte);
            }
        }
        let pattern = constant(Value::Text(&engine_pattern));
        let has_letters = engine_pattern.iter().any(u8::is_ascii_alphabetic);
        let function = if has_letters { Function::ILike(CaseRule::Ascii) } else { Function::Like };
        Ok(Typed::truth(call(function, vec![text.value.clone(), pattern], LogicalType::Bool)))
    }

    fn absolute(&mut self, value: Typed) -> Result<Typed> {
        let logical = value.class.logical();
        match value.class {
            Class::Null => Ok(Typed::null()),
            Class::Text => Err(unsupported("abs of text")),
            class => {
                Ok(Typed::new(call(Function::Absolute, vec![value.value], logical), class)
                    .within(value.limit))
            }
        }
    }

    /// A real, half away from zero, as SQLite's `round`.
    fn round(&mut self, value: Typed, rest: &[Typed]) -> Result<Typed> {
        if matches!(value.class, Class::Null) {
            return Ok(Typed::null());
        }
        if !value.class.is_number() {
            return Err(unsupported("round of text"));
        }
        let digits = match rest {
            [] => 0,
            [digits] => match digits.known() {
                Some(Some(Owned::Integer(digits))) => digits.clamp(0, 30),
                Some(None) => return Ok(Typed::null()),
                _ => return Err(unsupported("round to a number of digits that is no constant integer")),
            },
            _ => return Err(unsupported("round with so many arguments")),
        };
        // What text SQLite's version makes of a real decides, so only whole numbers are rounded here.
        if digits != 0 {
            return self.by_name("round", &[value, Typed::constant(Value::Integer(digits))?]);
        }
        let body = |values: &[Value<'_>]| match values {
            [Value::Real(real)] if real.abs() < 4_503_599_627_370_496.0 => {
                #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
                let whole = (real + if *real < 0.0 { -0.5 } else { 0.5 }) as i64 as f64;
                Some(Owned::Real(whole))
            }
            [Value::Real(real)] => Some(Owned::Real(*real)),
            _ => None,
        };
        Ok(Typed::new(
            self.row_function("round", LogicalType::Float64, body, vec![value.real()]),
            Class::Real,
        ))
    }

    fn substr(&mut self, text: &Typed, rest: &[Typed]) -> Result<Typed> {
        let known: Vec<Option<Owned>> = rest.iter().filter_map(Typed::known).collect();
        let small = |value: i64| i32::try_from(value).ok();
        match (known.as_slice(), rest.len()) {
            ([Some(Owned::Integer(start @ 1..))], 1) if small(*start).is_some() => {
                let start = int32(small(*start).unwrap_or(i32::MAX));
                return Ok(text_of(Function::Substring, vec![text.value.clone(), start]));
            }
            ([Some(Owned::Integer(start @ 1..)), Some(Owned::Integer(length @ 0..))], 2)
                if small(start.saturating_add(*length)).is_some() =>
            {
                let start = int32(small(*start).unwrap_or(i32::MAX));
                let length = int32(small(*length).unwrap_or(i32::MAX));
                return Ok(text_of(Function::Substring, vec![text.value.clone(), start, length]));
            }
            _ => {}
        }
        if rest.is_empty() || rest.len() > 2 || rest.iter().any(|value| value.class != Class::Integer) {
            return Err(unsupported("substr with such arguments"));
        }
        let body = |values: &[Value<'_>]| match values {
            [Value::Text(text), Value::Integer(start)] => Some(Owned::Text(substr(text, *start, None))),
            [Value::Text(text), Value::Integer(start), Value::Integer(length)] => {
                Some(Owned::Text(substr(text, *start, Some(*length))))
            }
            _ => None,
        };
        let arguments = [std::slice::from_ref(text), rest].concat();
        Ok(Typed::new(
            self.row_function("substr", LogicalType::Text, body, values_of(&arguments)),
            Class::Text,
        ))
    }

    /// `||`.
    pub fn concat(&mut self, a: Typed, b: Typed) -> Result<Typed> {
        if let Some(known) = self.folded("?1 || ?2", &[&a, &b])? {
            return Ok(known);
        }
        let mut texts = Vec::new();
        for part in [a, b] {
            let part = part.plain();
            texts.push(match (&part.class, part.known()) {
                (Class::Null, _) => return Ok(Typed::null()),
                (Class::Text, _) => part.value,
                (_, Some(Some(known))) => self.asked("CAST(?1 AS TEXT)", &[known.value()])?.value,
                (Class::Integer, _) => {
                    let body = |values: &[Value<'_>]| match values {
                        [Value::Integer(value)] => Some(Owned::Text(value.to_string().into_bytes().into())),
                        _ => None,
                    };
                    self.row_function("cast to text", LogicalType::Text, body, vec![part.value])
                }
                _ => return Err(unsupported("|| with reals")),
            });
        }
        Ok(text_of(Function::Concat, texts))
    }
}

fn integer_of(function: Function, text: &Typed) -> Typed {
    Typed::new(widened(call(function, vec![text.value.clone()], LogicalType::Int32)), Class::Integer)
}

fn text_of(function: Function, arguments: Vec<Expression>) -> Typed {
    Typed::new(call(function, arguments, LogicalType::Text), Class::Text)
}

fn all_text(arguments: &[Typed]) -> bool {
    !arguments.is_empty() && arguments.iter().all(|argument| argument.class == Class::Text)
}

fn values_of(arguments: &[Typed]) -> Vec<Expression> {
    arguments.iter().map(|argument| argument.value.clone()).collect()
}

/// SQLite's `substr`: places from 1 on, negative ones from the end; a negative length means the characters
/// before.
fn substr(text: &[u8], start: i64, length: Option<i64>) -> Box<[u8]> {
    let characters: Vec<usize> = (0..text.len())
        .filter(|&at| text.get(at).is_some_and(|byte| byte & 0xC0 != 0x80))
        .chain([text.len()])
        .collect();
    let count = i64::try_from(characters.len() - 1).unwrap_or(i64::MAX);
    let mut length = length.unwrap_or(i64::MAX);
    let mut first = start;
    let before = length < 0;
    length = length.saturating_abs();
    if first < 0 {
        first += count;
        if first < 0 {
            if !before {
                length = (length.saturating_add(first)).max(0);
            }
            if before {
                length = 0;
            }
            first = 0;
        }
    } else if first > 0 {
        first -= 1;
    } else if length > 0 && !before {
        length -= 1;
    }
    if before {
        let end = first;
        first -= length;
        if first < 0 {
            first = 0;
        }
        length = end - first;
    }
    let last = first.saturating_add(length).min(count);
    let place = |at: i64| characters.get(usize::try_from(at).unwrap_or(0)).copied().unwrap_or(text.len());
    if first >= last {
        Box::default()
    } else {
        text.get(place(first)..place(last)).unwrap_or_default().into()
    }
}
