//! The chain; for broadcast and reduce it is the ring's text.

use super::ring;
use crate::types::Collective;

pub fn body(collective: Collective) -> &'static str {
    match collective {
        Collective::AllReduce => CHAIN_ALL_REDUCE,
        other => ring::body(other),
    }
}

const CHAIN_ALL_REDUCE: &str = r"
every rank:
  if r == 0:
    send input[0..8] to 1
    recv from 1 into output[0..8]
  else if r == n-1:
    # 链的末端：凑齐一个 chunk 就送回去 | the end of the chain: each complete chunk goes back at once
    recv_reduce_copy_send from r-1 with input[0..8] into output[0..8] to r-1
  else:
    # 向上：加上自己的一份；向下：留一份结果 | upwards add the own part, downwards keep the result
    recv_reduce_send from r-1 with input[0..8] to r+1
    recv_copy_send from r+1 into output[0..8] to r-1
";
