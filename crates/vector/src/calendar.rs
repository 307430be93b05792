//! The proleptic Gregorian calendar over days since 2000-01-01, the epoch of the host's dates. Year 0 is 1
//! BC.

/// Days from 1970-01-01, where files of other systems begin, to 2000-01-01.
pub const SINCE_1970: i64 = 10_957;

/// Days from 0000-03-01 to 2000-01-01.
const EPOCH_SHIFT: i64 = 730_425;

/// Days in 400 years, after which the calendar repeats itself.
const ERA_DAYS: i64 = 146_097;

/// A day of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Day {
    /// The year. 0 is 1 BC.
    pub year: i64,
    /// 1 to 12.
    pub month: i64,
    /// 1 to 31.
    pub day: i64,
}

/// The day this many days after 2000-01-01. Years are counted from March, so that the leap day is the last
/// one.
pub const fn from_days(days: i64) -> Day {
    let shifted = days + EPOCH_SHIFT;
    let (era, of_era) = (shifted.div_euclid(ERA_DAYS), shifted.rem_euclid(ERA_DAYS));
    // Leave out the leap days before it, then all years have 365.
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months from March have 31, 30, 31, 30, 31 days, again and again: 153 in five.
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    Day { year: era * 400 + year_of_era + next, month, day }
}

/// Days since 2000-01-01; a day past the month's end counts on into the next.
pub const fn to_days(day: Day) -> i64 {
    let year = if day.month <= 2 { day.year - 1 } else { day.year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let month = (day.month + 9) % 12;
    let of_year = (153 * month + 2) / 5 + day.day - 1;
    era * ERA_DAYS + of_era * 365 + of_era / 4 - of_era / 100 + of_year - EPOCH_SHIFT
}

/// Days of a month.
pub const fn month_length(year: i64, month: i64) -> i64 {
    match month {
        2 if year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Day of the week; Sunday is 0. (2000-01-01 was a Saturday.)
pub const fn day_of_week(days: i64) -> i64 {
    (days + 6).rem_euclid(7)
}

/// Year and number of the ISO 8601 week: the one of its Thursday.
pub const fn iso_week(days: i64) -> (i64, i64) {
    let thursday = days - (days + 5).rem_euclid(7) + 3;
    let year = from_days(thursday).year;
    let first = to_days(Day { year, month: 1, day: 1 });
    (year, (thursday - first) / 7 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_follow_each_other() {
        let mut day = Day { year: -4_713, month: 11, day: 24 };
        // The server's first day.
        assert_eq!(to_days(day), -2_451_545);
        for days in -2_451_545..150_000 {
            assert_eq!((from_days(days), to_days(day)), (day, days));
            assert!((1..=53).contains(&iso_week(days).1));
            day.day += 1;
            if day.day > month_length(day.year, day.month) {
                (day.day, day.month) = (1, day.month + 1);
            }
            if day.month > 12 {
                (day.month, day.year) = (1, day.year + 1);
            }
        }
    }

    #[test]
    fn known_days() {
        assert_eq!(from_days(0), Day { year: 2000, month: 1, day: 1 });
        assert_eq!(to_days(Day { year: 2024, month: 2, day: 29 }), 8_825);
        // 2021-01-03 was a Sunday of week 53 of 2020, 2024-12-30 a Monday of week 1 of 2025.
        assert_eq!((day_of_week(7_673), iso_week(7_673)), (0, (2020, 53)));
        assert_eq!((day_of_week(9_130), iso_week(9_130)), (1, (2025, 1)));
    }
}
