//! Predictions against what the executor counted, and the plan that ran against the lower bound.

use ringlab_engine::plan::{Buffer, Plan, Step};

use super::{Params, TASK};
use crate::job::{Table, TaskResult, Verdict};
use crate::lab::checker::Run;
use crate::lab::sheet::{Judged, Ruling};
use crate::lab::show::{measured, plain, significant};
use crate::text::Text;

pub(super) fn judge(run: &Run, params: &Params, ran: &Plan, given: &Plan) -> Judged {
    let mut judged = Judged { rulings: Default::default(), tables: Vec::new() };
    let mut put = |id: &str, ruling| judged.rulings.insert(id.to_owned(), ruling);
    put("chunk", chunk(run, params, ran));
    put("own_plan", own_plan(ran, given, params));
    let found = run.result.tasks.iter().find(|task| task.id == TASK);
    let Some(task) = found.filter(|task| task.moved_bytes.len() == params.ranks as usize) else {
        for id in ["correct", "steps", "bytes", "traffic"] {
            put(id, Ruling::unmeasured("all-reduce", "the all-reduce"));
        }
        return judged;
    };
    put("correct", correct(task));
    put("steps", steps(run, params, task));
    put("bytes", bytes(run, params, task));
    put("traffic", traffic(params, task));
    judged.tables = tables(run, params, task);
    judged
}

fn correct(task: &TaskResult) -> Ruling {
    let mut why = Text::new(
        format!("每个 rank 的每个输出元素都与顺序求和比对，共 {} 个，容差为 0。", task.elements),
        format!(
            "Each output element of each rank was compared with the sequential sum, {} in all, tolerance 0.",
            task.elements
        ),
    );
    if let Some(first) = &task.first_wrong {
        why.zh.push_str(&format!(
            "第一个错的是 rank {} 的第 {} 个元素：应为 {}，得到 {}。",
            first.rank, first.index, first.expected, first.got
        ));
        why.en.push_str(&format!(
            " The first wrong one is element {} of rank {}: expected {}, got {}.",
            first.index, first.rank, first.expected, first.got
        ));
    }
    Ruling::decided(task.wrong == 0 && task.elements > 0, "0", task.wrong.to_string(), why)
}

fn steps(run: &Run, params: &Params, task: &TaskResult) -> Ruling {
    let (n, counted) = (params.ranks, i64::from(task.comm_steps));
    let got = run.prediction.integer("steps").unwrap_or_default();
    let mut why = Text::new(
        format!(
            "执行的计划里，每个 rank、每个 channel 有 {counted} 个通信步骤（只发、只收、又收又发都算一步）。"
        ),
        format!(
            "The plan that ran has {counted} communication steps per rank and channel; one that receives \
             and sends at once counts once."
        ),
    );
    if got == 2 * i64::from(n) - 2 && got != counted {
        why.zh.push_str("2(N−1) 是发送的次数，也是接收的次数。中间的步骤收发合一；但第一步只发，最后一步只收，所以步骤比它多一个。");
        why.en.push_str(
            " 2(N−1) is how often a rank sends, and how often it receives. The steps in the \
            middle do both; the first only sends and the last only receives, hence one more.",
        );
    }
    Ruling::decided(got == counted, counted.to_string(), got.to_string(), why)
}

fn busiest(task: &TaskResult) -> u64 {
    task.moved_bytes.iter().copied().max().unwrap_or(0)
}

fn bytes(run: &Run, params: &Params, task: &TaskResult) -> Ruling {
    let (n, size) = (i64::from(params.ranks), params.bytes as i64);
    let counted = i64::try_from(busiest(task)).unwrap_or(i64::MAX);
    let got = run.prediction.integer("bytes").unwrap_or_default();
    let part = size / n;
    let mut why = Text::new(
        format!(
            "执行器边搬边数：最忙的 rank 发出 {counted} B。一块是 S/N = {size}/{n} = {part} B，{counted} B 合 {} 块。",
            blocks(counted, part)
        ),
        format!(
            "The executor counted as it moved: the busiest rank sent {counted} B. A chunk is S/N = \
             {size}/{n} = {part} B, so that is {} chunks.",
            blocks(counted, part)
        ),
    );
    let slips = [
        (
            part * (n - 1),
            "你只算了一个阶段；reduce-scatter 与 all-gather 各发 N−1 块。",
            "That is one phase; reduce-scatter and all-gather send N−1 chunks each.",
        ),
        (
            2 * size,
            "2S 是 N 很大时的极限；自己的那一块不必再发给自己。",
            "2S is the limit for many ranks; nobody has to send itself its own chunk.",
        ),
        (
            2 * (n - 1) * size,
            "每次发的是一块，即 S/N，不是整个消息。",
            "What is sent each time is one chunk, S/N, not the whole message.",
        ),
        (
            part * (2 * n - 1),
            "最后一步只收不发，不该再算一块。",
            "The last step only receives: it sends no further chunk.",
        ),
        (counted / 1024, "单位是字节，不是 KiB。", "The unit is bytes, not KiB."),
    ];
    if let Some((_, zh, en)) = slips.iter().find(|(slip, ..)| got == *slip && got != counted) {
        why.zh.push_str(zh);
        why.en.push(' ');
        why.en.push_str(en);
    }
    Ruling::decided(got == counted, format!("{counted} B"), format!("{got} B"), why)
}

fn blocks(bytes: i64, part: i64) -> String {
    if part > 0 { plain(bytes as f64 / part as f64) } else { "0".to_owned() }
}

/// The chunk whose sum rank 0 is the first to hold: that of its first step that stores a reduction.
fn owned(plan: &Plan) -> Option<u32> {
    let program = plan.programs.first()?;
    program.steps.iter().find_map(|step| match step {
        Step::RecvReduceCopy { dst, .. }
        | Step::RecvReduceCopySend { dst, .. }
        | Step::Reduce { dst, .. }
            if dst.buffer == Buffer::Output =>
        {
            Some(dst.start)
        }
        _ => None,
    })
}

fn chunk(run: &Run, params: &Params, ran: &Plan) -> Ruling {
    let got = run.prediction.integer("chunk").unwrap_or_default();
    let Some(owned) = owned(ran) else {
        return Ruling::decided(
            false,
            "—",
            got.to_string(),
            Text::new(
                "执行的计划里，rank 0 从不把归约的结果存进自己的输出：没有哪一块由它算完。",
                "In the plan that ran, rank 0 never stores a reduction in its output: it completes no chunk.",
            ),
        );
    };
    let n = params.ranks;
    Ruling::decided(
        got == i64::from(owned),
        owned.to_string(),
        got.to_string(),
        Text::new(
            format!(
                "看 rank 0、channel 0 第一个把归约结果存下来的步骤：它写的是 chunk {owned}。在环上，一块离开它出发的 rank 之后走 {} 跳，就凑齐了 {n} 份。",
                n - 1
            ),
            format!(
                "Look at the first step of rank 0, channel 0, that stores a reduction: it writes chunk \
                 {owned}. On a ring, a chunk holds all {n} contributions {} hops after the rank it set \
                 out from.",
                n - 1
            ),
        ),
    )
}

fn traffic(params: &Params, task: &TaskResult) -> Ruling {
    let (bound, busiest) = (params.lower_bound(), busiest(task));
    Ruling::decided(
        busiest <= bound,
        format!("≤ {bound} B"),
        format!("{busiest} B"),
        Text::new(
            format!(
                "all-reduce 的下界是每个 rank 发 2(N−1)/N · S = {bound} B：各块的和只能由别处的部分和凑成，再传给其余的 rank。"
            ),
            format!(
                "No all-reduce gets by with a busiest rank below 2(N−1)/N · S = {bound} B: every chunk's \
                 sum is made of partial sums from elsewhere and has to reach everybody else."
            ),
        ),
    )
}

/// Whether the plan moves data otherwise than the one handed out. Names, local copies, signals and the layout of the text do not count.
fn own_plan(ran: &Plan, given: &Plan, params: &Params) -> Ruling {
    let moves_data = |step: &&Step| match step {
        Step::Signal { .. } | Step::Wait { .. } => false,
        Step::Copy { src, .. } => src.rank.is_some(),
        Step::Reduce { srcs, .. } => srcs.iter().any(|src| src.rank.is_some()),
        _ => true,
    };
    let moves = |plan: &Plan| -> Vec<Vec<Step>> {
        plan.programs
            .iter()
            .map(|program| program.steps.iter().filter(moves_data).cloned().collect())
            .collect()
    };
    let differs = moves(ran) != moves(given);
    let why = if differs {
        Text::new(
            format!("你改过的计划通过了证明，并在 {} 个 rank 上原样执行。", params.ranks),
            format!(
                "The plan you changed was proven correct and ran as you wrote it on {} ranks.",
                params.ranks
            ),
        )
    } else {
        Text::new(
            "这次跑的还是实验给的计划。把它改成另一种走法（例如让环反过来转），再跑一次就能拿到这几分。",
            "This run used the plan you were handed. Change how it communicates, for instance by turning \
             the ring round, and run again for these marks.",
        )
    };
    let sign = |differs: bool| format!("{} {}", if differs { '≠' } else { '=' }, given.name);
    Ruling {
        verdict: if differs { Verdict::Pass } else { Verdict::Fail },
        expected: sign(true),
        got: sign(differs),
        why,
    }
}

fn tables(run: &Run, params: &Params, task: &TaskResult) -> Vec<Table> {
    let source = measured(&run.result.hardware, run.compiled.backend, &task.clock);
    let same = |name: &str| Text::new(name, name);
    let bound = params.lower_bound();
    let ranks = (task.moved_bytes.iter().enumerate())
        .map(|(rank, moved)| {
            let ratio =
                if bound > 0 { significant(*moved as f64 / bound as f64, 4) } else { "—".to_owned() };
            vec![rank.to_string(), moved.to_string(), bound.to_string(), ratio]
        })
        .collect();
    let mut tables = vec![Table {
        id: "traffic".to_owned(),
        title: Text::new("每个 rank 的流量", "Traffic of each rank"),
        columns: vec![
            same("rank"),
            Text::new("发出（B）", "sent (B)"),
            Text::new("下界（B）", "lower bound (B)"),
            Text::new("比值", "ratio"),
        ],
        rows: ranks,
        source: Text::new(
            format!("流量由执行器边搬边数，下界是算出来的。{}", source.zh),
            format!("Traffic counted by the executor as it moved, bound computed; {}", source.en),
        ),
    }];
    let usable =
        !task.times_us.is_empty() && task.times_us.iter().all(|time| time.is_finite() && *time > 0.0);
    if usable {
        let mean = task.times_us.iter().sum::<f64>() / task.times_us.len() as f64;
        let least = task.times_us.iter().copied().fold(f64::INFINITY, f64::min);
        let algbw = params.bytes as f64 / mean / 1e3;
        let factor = 2.0 * f64::from(params.ranks - 1) / f64::from(params.ranks);
        let figure = |value: f64| significant(value, 4);
        tables.push(Table {
            id: "time".to_owned(),
            title: Text::new("时间与带宽", "Time and bandwidth"),
            columns: vec![
                same("size (B)"),
                Text::new("平均时间（µs）", "mean time (µs)"),
                Text::new("最短（µs）", "least (µs)"),
                same("algbw (GB/s)"),
                same("busbw (GB/s)"),
            ],
            rows: vec![vec![
                params.bytes.to_string(),
                figure(mean),
                figure(least),
                figure(algbw),
                figure(algbw * factor),
            ]],
            source,
        });
    }
    tables
}
