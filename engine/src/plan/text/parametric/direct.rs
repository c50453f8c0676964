//! One-shot and two-shot.

use crate::types::Collective;

pub fn one_shot(collective: Collective) -> &'static str {
    match collective {
        Collective::AllReduce => ONE_SHOT_ALL_REDUCE,
        Collective::AllGather => ONE_SHOT_ALL_GATHER,
        Collective::ReduceScatter => ONE_SHOT_REDUCE_SCATTER,
        Collective::Broadcast { .. } => ONE_SHOT_BROADCAST,
        Collective::Reduce { .. } => ONE_SHOT_REDUCE,
        Collective::AllToAll => ONE_SHOT_ALL_TO_ALL,
        Collective::Gather { .. } => ONE_SHOT_GATHER,
        Collective::Scatter { .. } => ONE_SHOT_SCATTER,
        Collective::SendRecv => ONE_SHOT_SEND_RECV,
    }
}

pub fn two_shot(collective: Collective) -> &'static str {
    match collective {
        Collective::Broadcast { .. } => TWO_SHOT_BROADCAST,
        _ => TWO_SHOT_ALL_REDUCE,
    }
}

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

const ONE_SHOT_REDUCE: &str = r"
every rank:
  if r == root:
    # 等所有 rank 就绪，再读它们的输入 | read the inputs of all once they are there
    for k in 1..n:
      wait from (r+k) % n
    reduce input[0] of p for p in 0..n into output[0]
    # 告诉大家已经读完 | tell all that the reading is over
    for k in 1..n:
      signal to (r+k) % n
  else:
    signal to root
    wait from root
";

const ONE_SHOT_ALL_TO_ALL: &str = r"
every rank:
  # 所有 rank 都已就绪，输入可读 | all ranks are here: their inputs can be read
  for k in 1..n:
    signal to (r+k) % n
  for k in 1..n:
    wait from (r+k) % n
  # 每个 rank 的输入里，块 r 是给自己的 | block r of every input is meant for this rank
  for k in 0..n:
    copy input[r] of (r+k) % n into output[(r+k) % n]
  # 别人读完之前不能离开 | stay until the others have read
  for k in 1..n:
    signal to (r+k) % n
  for k in 1..n:
    wait from (r+k) % n
";

const ONE_SHOT_GATHER: &str = r"
every rank:
  if r == root:
    # 等所有 rank 就绪，再取它们的块 | fetch the blocks of all once they are there
    for k in 1..n:
      wait from (r+k) % n
    for k in 0..n:
      copy input[0] of (r+k) % n into output[(r+k) % n]
    # 告诉大家已经读完 | tell all that the reading is over
    for k in 1..n:
      signal to (r+k) % n
  else:
    signal to root
    wait from root
";

const ONE_SHOT_SCATTER: &str = r"
every rank:
  if r == root:
    for k in 1..n:
      signal to (r+k) % n
    copy input[r] into output[0]
    # 别人读完之前不能离开 | stay until the others have read
    for k in 1..n:
      wait from (r+k) % n
  else:
    wait from root
    copy input[r] of root into output[0]
    signal to root
";

const ONE_SHOT_SEND_RECV: &str = r"
every rank:
  let next = (r+1) % n
  let prev = (r-1) % n
  # 告诉下一个 rank 可以来读 | tell the next rank that it can read
  signal to next
  wait from prev
  copy input[0] of prev into output[0]
  # 上一个 rank 知道读完了才能离开 | the previous rank may leave once it knows that the reading is over
  signal to prev
  wait from next
";
