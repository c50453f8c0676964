//! The ring.

use crate::types::Collective;

pub fn body(collective: Collective) -> &'static str {
    match collective {
        Collective::AllReduce => RING_ALL_REDUCE,
        Collective::AllGather => RING_ALL_GATHER,
        Collective::ReduceScatter => RING_REDUCE_SCATTER,
        Collective::Reduce { .. } => RING_REDUCE,
        _ => RING_BROADCAST,
    }
}

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

const RING_REDUCE: &str = r"
every rank:
  let next = (r+1) % n
  let prev = (r-1) % n
  if r == root:
    # 链的末端，在这里凑齐 | the end of the chain, where the sum is complete
    recv_reduce_copy from prev with input[0] into output[0]
  else if prev == root:
    # 链的起点 | the start of the chain
    send input[0] to next
  else:
    recv_reduce_send from prev with input[0] to next
";
