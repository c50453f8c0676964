//! What holds for any communicator and operation.

use proptest::prelude::*;

use super::*;

fn any_comm() -> impl Strategy<Value = Comm> {
    let (nodes, per_node) = (1u32..20, 1u32..9);
    (nodes, per_node, 1u32..33, any::<bool>(), prop::sample::select(vec![70u32, 80, 86, 90]), any::<bool>())
        .prop_map(|(nodes, per_node, channels, amd, cap, coll_net)| {
            let mut comm = Comm::dgx_h100(nodes, per_node).unwrap();
            (comm.channels, comm.min_comp_cap, comm.max_comp_cap) = (channels, cap, cap);
            comm.cpu_vendor = if amd { CpuVendor::Amd } else { CpuVendor::Intel };
            if coll_net {
                let graph = comm.graphs[1].clone();
                (comm.graphs[2], comm.graphs[3]) = (graph.clone(), graph);
                comm.coll_net = Some(CollNet {
                    heads: 8,
                    iallgather: true,
                    ireducescatter: true,
                    direct_depth: 2,
                    chain_depth: 4,
                });
            }
            comm
        })
}

proptest! {
    /// Between the sizes where the model itself jumps (the tree's correction and the ring's plateau), as it is written.
    #[test]
    fn a_time_grows_with_bytes(comm in any_comm(), at in 0u32..40, a in 0.0..1.0f64, b in 0.0..1.0f64) {
        let model = Model::new(comm).unwrap();
        let within = |share: f64| (1u64 << at) + ((1u64 << at) as f64 * share * 0.999) as u64;
        let (low, high) = (within(a.min(b)), within(a.max(b)));
        let per = u64::from(model.comm.channels * model.comm.ranks);
        for (func, algo, proto) in model::combinations() {
            let plateau = algo == Algo::Ring && low / per < 64 && high / per >= 64;
            let time = |bytes| model.algo_time(&Operation::sum(func, bytes), algo, proto).time;
            prop_assert!(plateau || time(low) <= time(high), "{func} {algo} {proto} {low} {high}");
        }
    }

    #[test]
    fn every_operation_gets_a_launch_that_the_device_can_run(
        comm in any_comm(), func in prop::sample::select(Func::ALL), bytes: u64, shift in 0u32..64,
    ) {
        let model = Model::new(comm).unwrap();
        let op = Operation::sum(func, bytes >> shift);
        let choice = model.choose(&op).unwrap();
        let best = choice.winner().cost.as_ref().unwrap().time_us;
        for (at, candidate) in choice.candidates.iter().enumerate() {
            prop_assert!(at == choice.chosen || candidate.may_run() || !candidate.gates.is_empty());
            if candidate.may_run() {
                prop_assert!(candidate.cost.as_ref().is_none_or(|cost| cost.time_us >= best));
            }
        }
        for (algo, proto) in Algo::ALL.iter().flat_map(|a| Proto::ALL.iter().map(move |p| (*a, *p))) {
            if model.entry(func, algo, proto).bandwidth > 0.0 {
                let launch = model.launch(&op, algo, proto);
                prop_assert!(launch.channels <= launch.max_channels.max(model.comm.channels) && launch.max_channels <= MAXCHANNELS);
                prop_assert!((96..=NCCL_MAX_NTHREADS).contains(&launch.threads) && launch.threads.is_multiple_of(WARP_SIZE));
                prop_assert!(launch.chunk_bytes > 0 && launch.slice_bytes <= launch.chunk_bytes);
            }
        }
    }
}
