//! Pairwise and exchange.

use crate::types::Collective;

pub fn pairwise(collective: Collective) -> &'static str {
    match collective {
        Collective::AllToAll => PAIRWISE_ALL_TO_ALL,
        other => body(other),
    }
}

pub fn body(collective: Collective) -> &'static str {
    match collective {
        Collective::AllReduce => EXCHANGE_ALL_REDUCE,
        Collective::AllGather => EXCHANGE_ALL_GATHER,
        Collective::ReduceScatter => EXCHANGE_REDUCE_SCATTER,
        Collective::Broadcast { .. } => EXCHANGE_BROADCAST,
        Collective::Reduce { .. } => EXCHANGE_REDUCE,
        Collective::AllToAll => EXCHANGE_ALL_TO_ALL,
        Collective::Gather { .. } => EXCHANGE_GATHER,
        Collective::Scatter { .. } => EXCHANGE_SCATTER,
        Collective::SendRecv => EXCHANGE_SEND_RECV,
    }
}

const PAIRWISE_ALL_TO_ALL: &str = r"
every rank:
  copy input[r] into output[r]
  # 第 k 步与前后相距 k 的 rank 交换 | step k exchanges with the ranks k places ahead and behind
  for k in 1..n:
    send input[(r+k) % n] to (r+k) % n
    recv from (r-k) % n into output[(r-k) % n]
";

const EXCHANGE_ALL_REDUCE: &str = r"
every rank:
  # 先发后收：每条连接每个 tile 只占一个槽位 | send before receiving: one slot of each connection per tile
  for k in 1..n:
    send input[0] to (r+k) % n
  # 按 rank 次序相加，各 rank 的结果逐位相同；轮到自己之前先放在 sum | add in rank order, so that all ranks have the same bits; until it is this rank's turn the sum waits in scratch
  if r == 0:
    recv_reduce_copy from 1 with input[0] into output[0]
  else if r == 1:
    recv_reduce_copy from 0 with input[0] into output[0]
  else:
    recv from 0 into sum[0]
    for p in 1..r:
      recv_reduce_copy from p with sum[0] into sum[0]
    reduce sum[0], input[0] into output[0]
  for p in 2..n:
    if p > r:
      recv_reduce_copy from p with output[0] into output[0]
";

const EXCHANGE_ALL_GATHER: &str = r"
every rank:
  # 先发后收：每条连接每个 tile 只占一个槽位 | send before receiving: one slot of each connection per tile
  for k in 1..n:
    send input[0] to (r+k) % n
  copy input[0] into output[r]
  for k in 1..n:
    recv from (r-k) % n into output[(r-k) % n]
";

const EXCHANGE_REDUCE_SCATTER: &str = r"
every rank:
  # 先发后收：每条连接每个 tile 只占一个槽位 | send before receiving: one slot of each connection per tile
  for k in 1..n:
    send input[(r+k) % n] to (r+k) % n
  # 按 rank 次序相加，各 rank 的结果逐位相同；轮到自己之前先放在 sum | add in rank order, so that all ranks have the same bits; until it is this rank's turn the sum waits in scratch
  if r == 0:
    recv_reduce_copy from 1 with input[r] into output[0]
  else if r == 1:
    recv_reduce_copy from 0 with input[r] into output[0]
  else:
    recv from 0 into sum[0]
    for p in 1..r:
      recv_reduce_copy from p with sum[0] into sum[0]
    reduce sum[0], input[r] into output[0]
  for p in 2..n:
    if p > r:
      recv_reduce_copy from p with output[0] into output[0]
";

const EXCHANGE_BROADCAST: &str = r"
every rank:
  if r == root:
    for k in 1..n:
      send input[0] to (r+k) % n
    copy input[0] into output[0]
  else:
    recv from root into output[0]
";

const EXCHANGE_REDUCE: &str = r"
every rank:
  if r == root:
    # 按 rank 次序相加，各 rank 的结果逐位相同；轮到自己之前先放在 sum | add in rank order, so that all ranks have the same bits; until it is this rank's turn the sum waits in scratch
    if r == 0:
      recv_reduce_copy from 1 with input[0] into output[0]
    else if r == 1:
      recv_reduce_copy from 0 with input[0] into output[0]
    else:
      recv from 0 into sum[0]
      for p in 1..r:
        recv_reduce_copy from p with sum[0] into sum[0]
      reduce sum[0], input[0] into output[0]
    for p in 2..n:
      if p > r:
        recv_reduce_copy from p with output[0] into output[0]
  else:
    send input[0] to root
";

const EXCHANGE_ALL_TO_ALL: &str = r"
every rank:
  # 先发后收：每条连接每个 tile 只占一个槽位 | send before receiving: one slot of each connection per tile
  for k in 1..n:
    send input[(r+k) % n] to (r+k) % n
  copy input[r] into output[r]
  for k in 1..n:
    recv from (r-k) % n into output[(r-k) % n]
";

const EXCHANGE_GATHER: &str = r"
every rank:
  if r == root:
    copy input[0] into output[r]
    for k in 1..n:
      recv from (r-k) % n into output[(r-k) % n]
  else:
    send input[0] to root
";

const EXCHANGE_SCATTER: &str = r"
every rank:
  if r == root:
    for k in 1..n:
      send input[(r+k) % n] to (r+k) % n
    copy input[r] into output[0]
  else:
    recv from root into output[0]
";

const EXCHANGE_SEND_RECV: &str = r"
every rank:
  send input[0] to (r+1) % n
  recv from (r-1) % n into output[0]
";
