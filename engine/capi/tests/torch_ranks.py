"""torch.distributed with the backend "nccl" on this library, several ranks on one GPU; every element checked.

    LD_PRELOAD=/tmp/ringlab/libnccl.so.2 python3 engine/capi/tests/torch_ranks.py 4

NCCL itself refuses two ranks on one device here, so a pass also proves whose code ran. Values are small integers: sums are exact in
every type, and the tolerance is 0.
"""

import datetime
import os
import socket
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.uint8]
COUNTS = [1, 1000, 65_537, 1 << 20]


def block(rank, count, dtype):
    """What `rank` puts in: 0 to 6, so that eight of them add up exactly in bfloat16 too."""
    return ((torch.arange(count, device="cuda") + 3 * rank) % 7).to(dtype)


def operations(rank, ranks, count, dtype):
    """Name, what came out, what must."""
    of = [block(r, count, dtype) for r in range(ranks)]
    wide = torch.stack([t.double() for t in of])
    x = of[rank].clone()
    dist.all_reduce(x)
    yield "all_reduce sum", x, wide.sum(0).to(dtype)
    x = of[rank].clone()
    dist.all_reduce(x, dist.ReduceOp.MAX)
    yield "all_reduce max", x, wide.amax(0).to(dtype)
    x = of[rank].clone()
    dist.broadcast(x, src=ranks - 1)
    yield "broadcast", x, of[ranks - 1]
    x = torch.empty(ranks * count, device="cuda", dtype=dtype)
    dist.all_gather_into_tensor(x, of[rank])
    yield "all_gather", x, torch.cat(of)
    whole = [block(r, ranks * count, dtype) for r in range(ranks)]
    x = torch.empty(count, device="cuda", dtype=dtype)
    dist.reduce_scatter_tensor(x, whole[rank])
    yield "reduce_scatter", x, torch.stack([t.double() for t in whole]).sum(0).to(dtype)[rank * count : (rank + 1) * count]
    x = torch.empty(ranks * count, device="cuda", dtype=dtype)
    dist.all_to_all_single(x, whole[rank])
    yield "all_to_all", x, torch.cat([t[rank * count : (rank + 1) * count] for t in whole])
    x = of[rank].clone()
    dist.reduce(x, dst=0)
    yield "reduce", x if rank == 0 else of[0], wide.sum(0).to(dtype) if rank == 0 else of[0]
    x = torch.empty_like(of[rank])
    ring = [dist.P2POp(dist.isend, of[rank], (rank + 1) % ranks), dist.P2POp(dist.irecv, x, (rank - 1) % ranks)]
    for work in dist.batch_isend_irecv(ring):
        work.wait()
    yield "send/recv", x, of[(rank - 1) % ranks]


def run(rank, ranks, port):
    torch.cuda.set_device(0)
    where = {"init_method": f"tcp://127.0.0.1:{port}", "rank": rank, "world_size": ranks}
    dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=60), **where)
    wrong = done = 0
    for dtype in TYPES:
        for count in COUNTS:
            for name, got, want in operations(rank, ranks, count, dtype):
                bad = int((got != want).sum())
                done, wrong = done + 1, wrong + bad
                if bad:
                    print(f"rank {rank}: {name}, {count} of {dtype}: {bad} elements wrong", flush=True)
    total = torch.tensor([wrong], device="cuda", dtype=torch.int64)
    dist.all_reduce(total)
    if rank == 0:
        print(f"{ranks} ranks on {torch.cuda.get_device_name(0)}, torch {torch.__version__}, nccl {torch.cuda.nccl.version()}")
        print(f"{done} operations a rank, {int(total)} elements wrong", flush=True)
    dist.destroy_process_group()
    if wrong:
        os._exit(1)


if __name__ == "__main__":
    ranks = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mp.spawn(run, args=(ranks, port), nprocs=ranks)
