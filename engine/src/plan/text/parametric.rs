//! The standard plans as a person would write them: the text learners start from.

use crate::plan::{Algorithm, GenerateError, generate};
use crate::text::Lang;
use crate::types::Collective;

/// The plan of [`generate`] as a commented text with loops; it parses to exactly that plan. Comments are in `lang`.
pub fn parametric(
    algorithm: Algorithm,
    collective: Collective,
    ranks: u32,
    channels: u32,
    lang: Lang,
) -> Result<String, GenerateError> {
    // The generator is the one place that decides what exists.
    let plan = generate(algorithm, collective, ranks, channels)?;
    let body = match (ranks, algorithm) {
        (1, _) => COPY,
        (_, Algorithm::Ring) => match collective {
            Collective::AllReduce => RING_ALL_REDUCE,
            Collective::AllGather => RING_ALL_GATHER,
            Collective::ReduceScatter => RING_REDUCE_SCATTER,
            Collective::Broadcast { .. } => RING_BROADCAST,
        },
        (_, Algorithm::OneShot) => match collective {
            Collective::AllReduce => ONE_SHOT_ALL_REDUCE,
            Collective::AllGather => ONE_SHOT_ALL_GATHER,
            Collective::ReduceScatter => ONE_SHOT_REDUCE_SCATTER,
            Collective::Broadcast { .. } => ONE_SHOT_BROADCAST,
        },
        (_, Algorithm::TwoShot) => match collective {
            Collective::Broadcast { .. } => TWO_SHOT_BROADCAST,
            _ => TWO_SHOT_ALL_REDUCE,
        },
    };
    let root = match collective {
        Collective::Broadcast { root } => format!(" root {root}"),
        _ => String::new(),
    };
    let chunks = if plan.chunks > 1 { "n".into() } else { plan.chunks.to_string() };
    let scratch: String = plan.scratch.iter().map(|s| format!("scratch {} {}\n", s.name, s.chunks)).collect();
    let (name, kind) = (&plan.name, collective.name());
    let header = format!(
        "plan {name} v1\ncollective {kind}{root}\nranks {ranks}\nchannels {channels}\nchunks {chunks}\n{scratch}\n"
    );
    Ok(header + &in_language(body, lang))
}

/// Comment lines carry both languages as `# zh | en`; keeps the one asked for.
fn in_language(body: &str, lang: Lang) -> String {
    let mut out = String::new();
    for line in body.trim_start_matches('\n').lines() {
        match line.split_once("# ").map(|(indent, comment)| (indent, comment.split_once(" | "))) {
            Some((indent, Some((zh, en)))) => {
                let comment = if lang == Lang::Zh { zh } else { en };
                out.push_str(&format!("{indent}# {comment}"));
            }
            _ => out.push_str(line),
        }
        out.push('\n');
    }
    out
}

const COPY: &str = r"
every rank:
  # 只有一个 rank：结果就是自己的输入 | a rank alone: the result is its own input
  copy input[0] into output[0]
";

const RING_ALL_REDUCE: &str = r"
every rank:
  let next = (r+1) % n
  let prev = (r-1) % n
  # reduce-scatter：chunk 绕环一圈，每站加上自己的一份 | reduce-scatter: each chunk goes round and every rank adds its own
  send input[(r-1) % n] to next
  for j in 2..n:
    recv_reduce_send from prev with input[(r-j) % n] to next
  # chunk r 在这里凑齐，留下一份，再传下去 | chunk r is complete here: keep it, and pass it on
  recv_reduce_copy_send from prev with input[r] into output[r] to next
  # all-gather：凑齐的 chunk 再绕一圈 | all-gather: the complete chunks go round once more
  for j in 1..n-1:
    recv_copy_send from prev into output[(r-j) % n] to next
  recv from prev into output[(r+1) % n]
";

const RING_ALL_GATHER: &str = r"
every rank:
  let next = (r+1) % n
  let prev = (r-1) % n
  # 先把自己的块送出去，再放到自己的输出里 | send the own block first, then keep a copy
  send input[0] to next
  copy input[0] into output[r]
  # 其余的块依次路过：留一份，传下去 | the other blocks come by: keep each, pass it on
  for j in 1..n-1:
    recv_copy_send from prev into output[(r-j) % n] to next
  recv from prev into output[(r+1) % n]
";

const RING_REDUCE_SCATTER: &str = r"
every rank:
  let next = (r+1) % n
  let prev = (r-1) % n
  # 每个块绕环走，每站加上自己的一份 | each block goes round and every rank adds its own
  send input[(r-1) % n] to next
  for j in 2..n:
    recv_reduce_send from prev with input[(r-j) % n] to next
  # 最后到的是自己的块，在这里凑齐 | the own block comes last and is complete here
  recv_reduce_copy from prev with input[r] into output[0]
";

const RING_BROADCAST: &str = r"
every rank:
  let next = (r+1) % n
  let prev = (r-1) % n
  if r == root:
    send input[0] to next
    copy input[0] into output[0]
  else if next == root:
    # 链的末端 | the end of the chain
    recv from prev into output[0]
  else:
    recv_copy_send from prev into output[0] to next
";

const ONE_SHOT_ALL_REDUCE: &str = r"
every rank:
  # 所有 rank 都已就绪，输入可读 | all ranks are here: their inputs can be read
  for k in 1..n:
    signal to (r+k) % n
  for k in 1..n:
    wait from (r+k) % n
  # 各 rank 按同一次序相加，结果逐位相同 | all ranks add in one order, so their results agree bit for bit
  reduce input[0] of p for p in 0..n into sum[0]
  # in-place 时输出就是输入：等所有人读完再写 | in place the output is the input: write only when all have read
  for k in 1..n:
    signal to (r+k) % n
  for k in 1..n:
    wait from (r+k) % n
  copy sum[0] into output[0]
";

const ONE_SHOT_ALL_GATHER: &str = r"
every rank:
  # 所有 rank 都已就绪，输入可读 | all ranks are here: their inputs can be read
  for k in 1..n:
    signal to (r+k) % n
  for k in 1..n:
    wait from (r+k) % n
  # 从自己开始，免得大家同时读同一个 rank | each begins with itself, so that no rank is read by all at once
  for k in 0..n:
    copy input[0] of (r+k) % n into output[(r+k) % n]
  # 别人读完之前不能离开 | stay until the others have read
  for k in 1..n:
    signal to (r+k) % n
  for k in 1..n:
    wait from (r+k) % n
";

const ONE_SHOT_REDUCE_SCATTER: &str = r"
every rank:
  # 所有 rank 都已就绪，输入可读 | all ranks are here: their inputs can be read
  for k in 1..n:
    signal to (r+k) % n
  for k in 1..n:
    wait from (r+k) % n
  # 块 r 只有 rank r 读，in-place 也不会踩到别人 | only rank r reads block r: nobody is disturbed in place either
  reduce input[r] of p for p in 0..n into output[0]
  # 别人读完之前不能离开 | stay until the others have read
  for k in 1..n:
    signal to (r+k) % n
  for k in 1..n:
    wait from (r+k) % n
";

const ONE_SHOT_BROADCAST: &str = r"
every rank:
  if r == root:
    for k in 1..n:
      signal to (r+k) % n
    copy input[0] into output[0]
    # 别人读完之前不能离开 | stay until the others have read
    for k in 1..n:
      wait from (r+k) % n
  else:
    wait from root
    copy input[0] of root into output[0]
    signal to root
";

const TWO_SHOT_ALL_REDUCE: &str = r"
every rank:
  # 所有 rank 都已就绪，输入可读 | all ranks are here: their inputs can be read
  for k in 1..n:
    signal to (r+k) % n
  for k in 1..n:
    wait from (r+k) % n
  # 第一步：rank r 算出 chunk r | first shot: rank r makes chunk r
  reduce input[r] of p for p in 0..n into output[r]
  for k in 1..n:
    signal to (r+k) % n
  for k in 1..n:
    wait from (r+k) % n
  # 第二步：取回别人算好的 chunk | second shot: fetch what the others have made
  for k in 1..n:
    copy output[(r+k) % n] of (r+k) % n into output[(r+k) % n]
  # 别人读完之前不能离开 | stay until the others have read
  for k in 1..n:
    signal to (r+k) % n
  for k in 1..n:
    wait from (r+k) % n
";

const TWO_SHOT_BROADCAST: &str = r"
every rank:
  # 所有 rank 都已就绪，输入可读 | all ranks are here: their inputs can be read
  for k in 1..n:
    signal to (r+k) % n
  for k in 1..n:
    wait from (r+k) % n
  # 第一步：每个 rank 从 root 取一个 chunk | first shot: every rank fetches one chunk from the root
  if r == root:
    copy input[0..n] into output[0..n]
  else:
    copy input[r] of root into output[r]
  for k in 1..n:
    signal to (r+k) % n
  for k in 1..n:
    wait from (r+k) % n
  # 第二步：互相补齐 | second shot: the ranks fill each other's gaps
  if r != root:
    for k in 1..n:
      copy output[(r+k) % n] of (r+k) % n into output[(r+k) % n]
  # 别人读完之前不能离开 | stay until the others have read
  for k in 1..n:
    signal to (r+k) % n
  for k in 1..n:
    wait from (r+k) % n
";
