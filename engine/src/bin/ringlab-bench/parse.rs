//! The table that nccl-tests prints, and that our scripts for the other peers print after it.

use crate::samples::{Cell, Row};

/// Every line of the table: size, count, type, redop, root, and twice time, algbw, busbw, #wrong. Lines that begin with `#` are remarks.
///
/// # Errors
/// When a line is neither, or there is no line at all.
pub fn rows(text: &str) -> Result<Vec<Row>, String> {
    let lines = text.lines().filter(|line| line.trim_start().starts_with(|c: char| c.is_ascii_digit()));
    let rows = lines.map(row).collect::<Result<Vec<_>, _>>()?;
    if rows.is_empty() {
        return Err(format!("it printed no line of a table:\n{text}"));
    }
    Ok(rows)
}

fn row(line: &str) -> Result<Row, String> {
    let columns: Vec<&str> = line.split_whitespace().collect();
    let wrong = || format!("this is not a line of nccl-tests' table: `{line}`");
    let [size, _count, _dtype, _redop, _root, cells @ ..] = columns.as_slice() else { return Err(wrong()) };
    // Time stamps may follow. nccl_perf measures out of place only.
    let (time, bad, in_time, in_bad) = match cells {
        [time, _, _, bad] => (time, bad, &"N/A", &"N/A"),
        [time, _, _, bad, in_time, _, _, in_bad, ..] => (time, bad, in_time, in_bad),
        _ => return Err(wrong()),
    };
    Ok(Row {
        size: size.parse().map_err(|_| wrong())?,
        out_of_place: cell(time, bad).ok_or_else(wrong)?,
        in_place: cell(in_time, in_bad).ok_or_else(wrong)?,
    })
}

/// Outer `None`: not a cell. Inner `None`: `N/A`, the peer has no such placement.
fn cell(time: &str, wrong: &str) -> Option<Option<Cell>> {
    if time == "N/A" {
        return Some(None);
    }
    let wrong = match wrong {
        "N/A" => None,
        // Printed with %g: large counts have an exponent.
        wrong => Some(wrong.parse::<f64>().ok().filter(|w| *w >= 0.0)? as u64),
    };
    let time_us = time.parse().ok().filter(|us: &f64| us.is_finite())?;
    Some(Some(Cell { time_us, wrong }))
}

/// The library that a peer says it is.
pub fn library(text: &str) -> Option<String> {
    let remark = |mark: &str| text.lines().find_map(|line| line.trim().strip_prefix(mark)).map(str::trim);
    let marks = ["# library", "# nccl-tests version", "# nccl_perf"];
    marks.into_iter().find_map(remark).map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As nccl-tests 2.19.6 formats a run (src/util.cu).
    const NCCL: &str = "\
# nccl-tests version 2.19.6 nccl-headers=23007 nccl-library=23007
# Collective test starting: all_reduce_perf
#                                                              out-of-place                       in-place          
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong 
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)         
           8             2     float     sum      -1    14.10    0.00    0.00       0    13.87    0.00    0.00       0
  1073741824     268435456     float     sum      -1  3699.12  290.27  290.27       0  3701.00  290.12  290.12  1e+06
# Out of bounds values : 0 OK
";

    const MPI: &str = "\
# library Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4, May 26, 2022
           8             2     float     sum      -1  0.692  0.012  0.012  0  0.450  0.018  0.018  0
         512            64     float    none      -1  0.413  1.239  0.620  N/A  N/A  N/A  N/A  N/A
";

    #[test]
    fn nccl_tests_lines_are_read_with_both_placements() {
        let rows = rows(NCCL).unwrap();
        let cell = |time_us, wrong| Some(Cell { time_us, wrong: Some(wrong) });
        assert_eq!(rows[0], Row { size: 8, out_of_place: cell(14.10, 0), in_place: cell(13.87, 0) });
        assert_eq!(rows[1].in_place, cell(3701.0, 1_000_000));
        assert_eq!(library(NCCL).unwrap(), "2.19.6 nccl-headers=23007 nccl-library=23007");
    }

    #[test]
    fn a_placement_that_a_peer_lacks_and_a_check_not_made_are_absent() {
        let rows = rows(MPI).unwrap();
        assert_eq!(rows[0].in_place, Some(Cell { time_us: 0.45, wrong: Some(0) }));
        assert_eq!(rows[1].out_of_place, Some(Cell { time_us: 0.413, wrong: None }));
        assert_eq!(rows[1].in_place, None);
        assert!(library(MPI).unwrap().starts_with("Open MPI v4.1.4"));
    }

    #[test]
    fn a_line_may_end_after_the_first_placement() {
        let text = "# nccl_perf nccl-library=23007 all_reduce ranks 4 in one process on device 0\n\
                    4096          1024     float     sum      -1    42.40    0.10    0.14       0\n";
        let out_of_place = Some(Cell { time_us: 42.4, wrong: Some(0) });
        assert_eq!(rows(text).unwrap(), [Row { size: 4096, out_of_place, in_place: None }]);
        assert!(library(text).unwrap().starts_with("nccl-library=23007"));
    }

    #[test]
    fn what_is_no_table_is_an_error_that_shows_it() {
        assert!(rows("mpirun: no such program\n").unwrap_err().contains("no such program"));
        assert!(rows("  8 2 float sum -1 fast 0 0 0 1 0 0 0\n").unwrap_err().contains("fast"));
        assert!(rows("  8 2 float sum -1 1.0 0 0\n").is_err());
    }
}
