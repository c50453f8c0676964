//! nccl-tests' table: column for column as `writeResultHeader`, `writeBenchmarkLinePreamble` and `writeBenchmarkLineBody` in its
//! src/util.cu print it (read at version 2.19.6), so that scripts that read one read the other.

/// One half of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cells {
    pub time_us: f64,
    pub algbw: f64,
    pub busbw: f64,
    /// `None` when nothing was checked.
    pub wrong: Option<u64>,
}

pub fn header() -> String {
    let (name, unit) = (["time", "algbw", "busbw", "#wrong"], ["(us)", "(GB/s)", "(GB/s)", ""]);
    let line = |first: [&str; 5], [a, b, c, d]: [&str; 4]| {
        let [size, count, dtype, redop, root] = first;
        format!(
            "# {size:>10}  {count:>12}  {dtype:>8}  {redop:>6}  {root:>6}  {a:>7}  {b:>6}  {c:>6}  {d:>6}  {a:>7}  {b:>6}  {c:>6}  \
             {d:>6} "
        )
    };
    let empty = "";
    format!(
        "#\n# {empty:>10}  {empty:>12}  {empty:>8}  {empty:>6}  {empty:>6}           out-of-place                       in-place          \
         \n{}\n{}",
        line(["size", "count", "type", "redop", "root"], name),
        line(["(B)", "(elements)", "", "", ""], unit),
    )
}

pub fn preamble(size: u64, count: u64, dtype: &str, redop: &str, root: i64) -> String {
    format!("{size:>12}  {count:>12}  {dtype:>8}  {redop:>6}  {root:>6}")
}

pub fn cells(cells: &Cells) -> String {
    let wrong = cells.wrong.map_or("   N/A".into(), |wrong| format!("{:>6}", general(wrong)));
    let Cells { time_us, algbw, busbw, .. } = *cells;
    format!("  {:>7}  {:>6}  {:>6}  {wrong}", fit(time_us, 7), fit(algbw, 6), fit(busbw, 6))
}

/// The half of a line of a placement that the collective does not have.
pub fn no_cells() -> String {
    format!("  {0:>7}  {0:>6}  {0:>6}  {0:>6}", "N/A")
}

/// As many of two decimals as fit, then an exponent.
fn fit(value: f64, width: usize) -> String {
    (0..=2)
        .rev()
        .map(|decimals| format!("{value:.decimals$}"))
        .find(|text| text.len() <= width)
        .unwrap_or_else(|| exponent(value, usize::from(width >= 7)))
}

/// C's `%g` of a whole number: six significant digits.
pub fn general(value: u64) -> String {
    if value < 1_000_000 {
        return value.to_string();
    }
    let text = exponent(value as f64, 5);
    let (digits, power) = text.split_once('e').expect("the format has an exponent");
    format!("{}e{power}", digits.trim_end_matches('0').trim_end_matches('.'))
}

/// C's `%.Ne`: Rust writes neither the exponent's sign nor its leading zero.
fn exponent(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$e}");
    let (digits, power) = text.split_once('e').expect("the format has an exponent");
    let power: i32 = power.parse().expect("the exponent is a number");
    format!("{digits}e{}{:02}", if power < 0 { '-' } else { '+' }, power.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_aligned_as_nccl_tests_prints_it() {
        let cells = |wrong| super::cells(&Cells { time_us: 12.345, algbw: 1.0, busbw: 1234.56, wrong });
        assert_eq!(
            header(),
            "#\n\
             #                                                              out-of-place                       in-place          \n\
             #       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong \n\
             #        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)         "
        );
        assert_eq!(
            preamble(1024, 256, "float", "sum", -1) + &cells(Some(0)) + &cells(None),
            "        1024           256     float     sum      -1    12.35    1.00  1234.6       0    12.35    1.00  1234.6     N/A"
        );
    }

    #[test]
    fn a_placement_that_is_not_there_fills_its_columns() {
        let cells = super::cells(&Cells { time_us: 1.0, algbw: 1.0, busbw: 1.0, wrong: Some(0) });
        assert_eq!(no_cells().len(), cells.len());
    }

    #[test]
    fn wide_numbers_lose_decimals_before_they_widen_a_column() {
        assert_eq!(
            [fit(99_999.123, 7), fit(123_456.7, 7), fit(1_234_567.8, 7)],
            ["99999.1", "123457", "1234568"]
        );
        assert_eq!([fit(12_345_678.9, 7), fit(1_234_567.8, 6)], ["1.2e+07", "1e+06"]);
        assert_eq!(
            [general(999_999), general(1_000_000), general(1_234_567)],
            ["999999", "1e+06", "1.23457e+06"]
        );
    }
}
