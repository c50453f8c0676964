"""Times one collective of Gloo, as PyTorch's `torch.distributed` offers it, in the manner of nccl-tests (see README.md).

    python3 gloo_perf.py all_reduce -g 2 -b 8 -e 1048576 -f 2 -n 100 -w 5 -c 1 --cores 0,1

Starts a process for each rank. Time is the host's clock over -n back-to-back executions divided by -n, averaged over ranks, after a
barrier. Inputs are small whole numbers, so that a sum of floats is exact in any order and the check has tolerance 0.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time

KINDS = ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("-g", type=int, default=2, dest="ranks")
    parser.add_argument("-b", type=int, default=8, dest="first")
    parser.add_argument("-e", type=int, default=8, dest="last")
    parser.add_argument("-f", type=int, default=2, dest="factor")
    parser.add_argument("-n", type=int, default=20, dest="iters")
    parser.add_argument("-w", type=int, default=5, dest="warmup")
    parser.add_argument("-c", type=int, default=1, dest="check")
    parser.add_argument("--cores", default="", help="rank r runs on the r-th of these, in turn; without, anywhere")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--store", help=argparse.SUPPRESS)
    return parser.parse_args()


def start_ranks(args):
    with tempfile.TemporaryDirectory(prefix="gloo-perf-") as folder:
        line = [sys.executable, *sys.argv, "--store", os.path.join(folder, "store")]
        ranks = [subprocess.Popen([*line, "--rank", str(rank)]) for rank in range(args.ranks)]
        try:
            while any(rank.poll() is None for rank in ranks):
                if any(rank.poll() not in (None, 0) for rank in ranks):
                    break
                time.sleep(0.02)
        finally:
            for rank in ranks:
                if rank.poll() is None:
                    rank.kill()
        return max(abs(rank.wait()) for rank in ranks)


class Bench:
    def __init__(self, args, torch, dist):
        self.args, self.torch, self.dist = args, torch, dist
        self.rank, self.ranks, self.kind = args.rank, args.ranks, args.kind

    def shape(self, size):
        """Elements of a block and of the two buffers."""
        elems = size // 4
        part = elems // self.ranks // 4 * 4
        return {
            "all_gather": (part, part, part * self.ranks),
            "reduce_scatter": (part, part * self.ranks, part),
            "all_to_all": (part, part * self.ranks, part * self.ranks),
        }.get(self.kind, (elems, elems, elems))

    def input(self, rank, start, count):
        index = self.torch.arange(start, start + count, dtype=self.torch.int64)
        return ((index * 7 + rank * 13) % 101 - 50).to(self.torch.float32)

    def expected(self, block, out):
        total = lambda start: sum(self.input(r, start, out) for r in range(self.ranks))
        if self.kind == "all_reduce":
            return total(0)
        if self.kind == "reduce_scatter":
            return total(self.rank * block)
        if self.kind == "broadcast":
            return self.input(0, 0, out)
        start = self.rank * block if self.kind == "all_to_all" else 0
        return self.torch.cat([self.input(r, start, block) for r in range(self.ranks)])

    def once(self, source, result):
        dist = self.dist
        if self.kind == "all_reduce":
            dist.all_reduce(result)
        elif self.kind == "broadcast":
            dist.broadcast(result, 0)
        elif self.kind == "all_gather":
            dist.all_gather_into_tensor(result, source)
        elif self.kind == "reduce_scatter":
            dist.reduce_scatter_tensor(result, source)
        else:
            dist.all_to_all_single(result, source)

    def prepare(self, source, result):
        mine = self.input(self.rank, 0, source.numel())
        if self.kind in ("all_reduce", "broadcast"):
            result.copy_(mine)
        else:
            source.copy_(mine)
            result.fill_(float("nan"))

    def measure(self, size):
        torch, dist, args = self.torch, self.dist, self.args
        block, given, made = self.shape(size)
        source, result = torch.empty(given), torch.empty(made)
        self.prepare(source, result)
        for _ in range(args.warmup):
            self.once(source, result)
        dist.barrier()
        start = time.perf_counter()
        for _ in range(args.iters):
            self.once(source, result)
        elapsed = (time.perf_counter() - start) * 1e6 / args.iters
        wrong = 0
        for _ in range(args.check):
            self.prepare(source, result)
            self.once(source, result)
            wrong += int((result != self.expected(block, made)).sum())
        both = torch.tensor([elapsed, float(wrong)], dtype=torch.float64)
        dist.all_reduce(both)
        if self.rank == 0:
            self.row(max(given, made) * 4, block, both[0].item() / self.ranks, int(both[1].item()))

    def row(self, size, block, micros, wrong):
        share = (self.ranks - 1) / self.ranks
        factor = {"all_reduce": 2 * share, "broadcast": 1.0}.get(self.kind, share)
        algbw = size / 1e3 / micros
        cells = f"{micros:.3f}  {algbw:.3f}  {algbw * factor:.3f}  {wrong if self.args.check else 'N/A'}"
        none = "N/A  N/A  N/A  N/A"
        in_place = self.kind in ("all_reduce", "broadcast")
        first, second = (none, cells) if in_place else (cells, none)
        op = "sum" if "reduce" in self.kind else "none"
        root = 0 if self.kind == "broadcast" else -1
        print(f"{size:>12}  {block:>12}  {'float':>8}  {op:>6}  {root:>6}  {first}  {second}", flush=True)


def run_rank(args):
    if args.cores:
        cores = [int(core) for core in args.cores.split(",")]
        os.sched_setaffinity(0, {cores[args.rank % len(cores)]})
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{args.store}", rank=args.rank, world_size=args.ranks)
    if args.rank == 0:
        print(f"# library PyTorch {torch.__version__} gloo, called from Python {sys.version.split()[0]}", flush=True)
    bench = Bench(args, torch, dist)
    size = args.first
    while size <= args.last:
        bench.measure(size)
        size *= args.factor
    dist.barrier()
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    given = arguments()
    sys.exit(start_ranks(given) if given.rank is None else run_rank(given))
