//! The words after each verdict: the sum with this learner's own figures, and the slip that would have led to their answer.

use super::instance::{Column, Row};
use super::tables::wrong_size;
use super::{close, gbps};
use crate::lab::show::significant;
use crate::text::Text;

/// `wrong`: the answer, when it was not right.
pub(super) fn bandwidth(row: &Row, us: f64, bus: bool, wrong: Option<f64>) -> Text {
    let algbw = gbps(row.size(), us);
    let size = if row.size() == row.part() {
        format!("{} × {} = {} B", row.count, row.dtype.size(), row.size())
    } else {
        format!("{} × {} × {} = {} B", row.ranks, row.count, row.dtype.size(), row.size())
    };
    let (time, rate) = (significant(us, 6), significant(algbw, 5));
    let mut why = Text::new(
        format!("S = {size}，t = {time} µs（各次平均），S/t = {rate} GB/s。"),
        format!("S = {size}; t = {time} µs, the mean; S/t = {rate} GB/s."),
    );
    if bus {
        let factor = factor(row);
        let product = significant(algbw * row.factor(), 5);
        why.zh.push_str(&format!("busbw = {rate} × {factor} = {product} GB/s。"));
        why.en.push_str(&format!(" busbw = {rate} × {factor} = {product} GB/s."));
    }
    if let Some(slip) = wrong.and_then(|answer| slip(row, us, bus, answer)) {
        why.zh.push_str(&slip.zh);
        why.en.push(' ');
        why.en.push_str(&slip.en);
    }
    why
}

/// The factor as it is derived.
fn factor(row: &Row) -> String {
    let n = row.ranks;
    if row.factor() > 1.0 {
        format!("2 × ({n} − 1)/{n}")
    } else if row.factor() < 1.0 {
        format!("({n} − 1)/{n}")
    } else {
        "1".to_owned()
    }
}

/// A usual slip that gives this answer to within half a per cent.
fn slip(row: &Row, us: f64, bus: bool, answer: f64) -> Option<Text> {
    let n = f64::from(row.ranks);
    let algbw = gbps(row.size(), us);
    let right = if bus { algbw * row.factor() } else { algbw };
    let gib = 1e9 / f64::from(1u32 << 30);
    let other_size = wrong_size(row) as f64 / row.size() as f64;
    let slips = [
        (
            right * gib,
            Text::new(
                "你的数正好是按 GiB（2^30）算的；这里的 GB 是 10^9。",
                "Yours is the figure in GiB (2^30); a GB here is 10^9.",
            ),
        ),
        (
            right * other_size,
            Text::new(
                "你的数对应另一种 size 约定：请看 count 在这个 collective 里数的是谁的元素。",
                "Yours follows from the other size convention: see whose elements `count` counts in this \
                 collective.",
            ),
        ),
        (
            right * 1e3,
            Text::new("差了一千倍：检查 µs 与 MB/GB。", "A thousand times too much: check µs, MB and GB."),
        ),
        (
            right / 1e3,
            Text::new("差了一千倍：检查 µs 与 MB/GB。", "A thousand times too little: check µs, MB and GB."),
        ),
        (
            if bus { algbw } else { algbw * row.factor() },
            if bus {
                Text::new("这是 algbw，还没有乘系数。", "That is algbw: the factor is still to come.")
            } else {
                Text::new("这已经是 busbw 了。", "That is busbw already.")
            },
        ),
        (
            if bus { algbw * 2.0 * (n - 1.0) / n } else { f64::NAN },
            Text::new("这用的是 all_reduce 的系数。", "That takes all_reduce's factor."),
        ),
        (
            if bus { algbw * (n - 1.0) / n } else { f64::NAN },
            Text::new(
                "这用的是 all_gather / reduce_scatter 的系数。",
                "That takes the factor of all_gather and reduce_scatter.",
            ),
        ),
    ];
    slips.into_iter().find(|(value, _)| close(answer, *value, 0.005)).map(|(_, words)| words)
}

pub(super) fn broken(row: &Row, column: Column, us: f64, iterations: u32) -> Text {
    let label = &row.label;
    let algbw = gbps(row.size(), us);
    let right = |value: f64| significant(value, 5);
    match column {
        Column::Size => Text::new(
            format!(
                "第 {label} 行：algbw × time = {} B，与 size 一格对不上，而 algbw 与 busbw 之间的系数没有问题：错的是 size。那一格写成了{}。",
                row.size(),
                if row.size() == row.part() {
                    "所有 rank 的缓冲区之和"
                } else {
                    "一个 rank 的那一份"
                }
            ),
            format!(
                "Row {label}: algbw × time = {} B, which the size cell denies, while algbw and busbw \
                 agree on their factor: so it is the size. The cell held {}.",
                row.size(),
                if row.size() == row.part() { "all ranks' buffers together" } else { "one rank's part" }
            ),
        ),
        Column::Time => Text::new(
            format!(
                "第 {label} 行：size 与 count 相符，busbw/algbw 也是对的，只有 size/time 不等于 algbw：错的是 time，应为 {} µs。总时间除以了 {}，而不是 {iterations}。",
                right(us),
                iterations - 1
            ),
            format!(
                "Row {label}: size fits count, busbw/algbw is right, only size/time is not algbw: so it \
                 is the time, {} µs in truth. The total was divided by {} instead of {iterations}.",
                right(us),
                iterations - 1
            ),
        ),
        Column::Algbw => Text::new(
            format!(
                "第 {label} 行：algbw 与左边的 size/time、与右边的 busbw 都对不上，另外两者却彼此相符：错的是 algbw，应为 {} GB/s。那一格是按 2^30 算的。",
                right(algbw)
            ),
            format!(
                "Row {label}: algbw fits neither size/time on its left nor busbw on its right, while \
                 those two agree: so it is algbw, {} GB/s in truth. The cell was computed with 2^30.",
                right(algbw)
            ),
        ),
        Column::Busbw => Text::new(
            format!(
                "第 {label} 行：size/time = algbw 成立，busbw/algbw 却不是 {}：错的是 busbw，应为 {} GB/s。那一格用了别的 collective 的系数。",
                factor(row),
                right(algbw * row.factor())
            ),
            format!(
                "Row {label}: size/time = algbw holds, but busbw/algbw is not {}: so it is busbw, {} GB/s \
                 in truth. The cell took another collective's factor.",
                factor(row),
                right(algbw * row.factor())
            ),
        ),
    }
}
