//! The model against its source: values worked out by hand from tuning.cc and enqueue.cc, and two that NCCL itself printed.

mod properties;

use super::constants::*;
use super::*;
use crate::text::Lang;
use crate::tuner::Choice;

fn dgx(ranks: u32) -> Model {
    Model::new(Comm::dgx_h100(1, ranks).unwrap()).unwrap()
}

fn with(comm: Comm, change: impl FnOnce(&mut Comm)) -> Model {
    let mut comm = comm;
    change(&mut comm);
    Model::new(comm).unwrap()
}

fn all_reduce(model: &Model, algo: Algo, proto: Proto) -> (f32, f32) {
    let entry = model.entry(Func::AllReduce, algo, proto);
    (entry.latency, entry.modelled)
}

fn assert_near(got: (f32, f32), want: (f32, f32), what: &str) {
    assert!(
        (got.0 - want.0).abs() < 0.051 && (got.1 - want.1).abs() < 0.051,
        "{what}: {got:?}, not {want:?}"
    );
}

fn winner(choice: &Choice) -> (&str, &str) {
    (&choice.winner().algorithm, &choice.winner().protocol)
}

fn codes(choice: &Choice, algo: Algo, proto: Proto) -> Vec<&'static str> {
    choice.candidates[algo.index() * 3 + proto.index()].gates.iter().map(|gate| gate.code).collect()
}

#[test]
fn one_dgx_h100_has_these_latencies_and_bandwidths() {
    let rows = [
        (2, [(7.8, 141.0), (17.8, 331.2), (15.2, 360.0)], [(8.0, 43.6), (16.5, 128.8), (56.0, 165.6)]),
        (4, [(10.2, 94.0), (25.4, 220.8), (28.8, 240.0)], [(10.4, 43.6), (21.5, 128.8), (168.0, 165.6)]),
        (8, [(15.0, 80.6), (40.6, 189.3), (56.0, 205.7)], [(15.2, 43.6), (31.5, 128.8), (392.0, 165.6)]),
    ];
    for (ranks, ring, tree) in rows {
        let model = dgx(ranks);
        for (proto, (ring, tree)) in Proto::ALL.iter().zip(ring.into_iter().zip(tree)) {
            assert_near(
                all_reduce(&model, Algo::Ring, *proto),
                ring,
                &format!("Ring {proto}, {ranks} ranks"),
            );
            assert_near(
                all_reduce(&model, Algo::Tree, *proto),
                tree,
                &format!("Tree {proto}, {ranks} ranks"),
            );
        }
    }
    // NVLS: 8 heads of 40 GB/s, 5/6 of it.
    assert_near(all_reduce(&dgx(8), Algo::Nvls, Proto::Simple), (25.0, 266.7), "NVLS");
}

#[test]
fn eight_h100_take_ring_ll_to_1_mib_and_nvls_from_2_mib() {
    // nccl-tests#309 reports these picks; the times are 15 us + bytes / 80.57 GB/s.
    let model = dgx(8);
    let at = |bytes| model.choose(&Operation::sum(Func::AllReduce, bytes)).unwrap();
    let ring_ll =
        |bytes| model.algo_time(&Operation::sum(Func::AllReduce, bytes), Algo::Ring, Proto::Ll).time.unwrap();
    assert!((ring_ll(1 << 20) - 28.0).abs() < 0.05 && (ring_ll(2 << 20) - 41.0).abs() < 0.05);
    assert_eq!(winner(&at(1 << 20)), ("Ring", "LL"));
    assert_eq!(winner(&at(2 << 20)), ("NVLS", "Simple"));
    assert_eq!(winner(&at(8)), ("Ring", "LL"));
}

#[test]
fn the_time_nccl_printed_on_three_nodes_comes_out_to_the_last_digit() {
    // nccl#1453: 24 H100 on 3 nodes, 16 channels, "8589934592 Bytes -> Algo 1 proto 2 time 86069.968750".
    let model = with(Comm::dgx_h100(3, 8).unwrap(), |comm| {
        for graph in &mut comm.graphs[..2] {
            (graph.channels, graph.bw_intra, graph.bw_inter) = (4, 48.0, 48.0);
        }
    });
    let op = Operation::sum(Func::AllReduce, 8 << 30);
    assert_eq!(model.algo_time(&op, Algo::Ring, Proto::Simple).time, Some(86_069.97));
}

#[test]
fn the_latencies_nccl_printed_on_two_nodes_come_out() {
    // nccl#1519: 16 H100 on 2 nodes, one channel, NVLink inside.
    let model = with(Comm::dgx_h100(2, 8).unwrap(), |comm| {
        for graph in &mut comm.graphs[..2] {
            (graph.channels, graph.same_channels) = (1, true);
        }
    });
    let row = |func, algo| {
        Proto::ALL.iter().map(|proto| model.entry(func, algo, *proto).latency).collect::<Vec<_>>()
    };
    let near = |got: Vec<f32>, want: [f32; 3]| {
        assert!(got.iter().zip(want).all(|(got, want)| (got - want).abs() < 0.051), "{got:?}, not {want:?}");
    };
    near(row(Func::Broadcast, Algo::Ring), [9.3, 18.0, 22.4]);
    near(row(Func::Reduce, Algo::Ring), [9.3, 18.0, 22.4]);
    near(row(Func::AllGather, Algo::Ring), [23.3, 44.6, 70.0]);
    near(row(Func::ReduceScatter, Algo::Ring), [23.3, 44.6, 70.0]);
    near(row(Func::AllReduce, Algo::Tree), [25.2, 48.5, 448.0]);
    near(row(Func::AllReduce, Algo::Ring)[..2].iter().copied().chain([152.8]).collect(), [43.4, 79.4, 152.8]);
    near(row(Func::AllGather, Algo::CollNetDirect), [5.6, 5.6, 44.0]);
}

#[test]
fn amd_hosts_pay_more_per_network_post() {
    // 16 ranks, 2 nodes, AllReduce: 26 hops inside, 4 between. LL: 6.6 + 26 x 2 + 4 x 2.7; Simple: 8.4 + 26 x 6 + 4 x 14.
    let model = with(Comm::dgx_h100(2, 8).unwrap(), |comm| comm.cpu_vendor = CpuVendor::Amd);
    let latency = |proto| model.entry(Func::AllReduce, Algo::Ring, proto).latency;
    assert!((latency(Proto::Ll) - 69.4).abs() < 0.01 && (latency(Proto::Simple) - 220.4).abs() < 0.01);
    // The LL cap's row is the CPU's, not the GPU's: min(22.5, 384 / 2) x 16 / 30.
    assert!((model.entry(Func::AllReduce, Algo::Ring, Proto::Ll).bandwidth - 12.0).abs() < 0.01);
    let intel = Model::new(Comm::dgx_h100(4, 8).unwrap()).unwrap();
    // min(20.4, 192) x 32 / 62.
    assert!((intel.entry(Func::AllReduce, Algo::Ring, Proto::Ll).bandwidth - 10.53).abs() < 0.01);
}

#[test]
fn trees_over_nodes_follow_the_formulas() {
    // 4 nodes: 8 channels x min(48 x .92, 36.0) = 288; Simple x 1/2; LL min(288 / 3.8, 20.4) / 2; LL128 min(270, 8 x 29) / 2.
    let model = Model::new(Comm::dgx_h100(4, 8).unwrap()).unwrap();
    let want = [
        (6.8 + 2.0 * (7.0 * 0.6 + 2.0 * 5.0), 10.2),
        (14.0 + 2.0 * (7.0 * 1.25 + 2.0 * 8.5), 116.0),
        (504.0, 144.0),
    ];
    for (proto, want) in Proto::ALL.iter().zip(want) {
        assert_near(all_reduce(&model, Algo::Tree, *proto), want, &format!("Tree {proto}"));
    }
    // One GPU a node: all of a tree's traffic at one GPU, x .85, and its GPU counts as joined by PCI.
    let thin = Model::new(Comm::dgx_h100(4, 1).unwrap()).unwrap();
    assert_near(all_reduce(&thin, Algo::Tree, Proto::Simple), (112.0, 122.4), "Tree Simple, one GPU a node");
    assert!(
        (thin.entry(Func::AllReduce, Algo::Ring, Proto::Ll128).bandwidth - 8.0 * 48.0 * 0.7 * 4.0 / 6.0)
            .abs()
            < 0.05
    );
}

#[test]
fn coll_net_and_nvls_trees_follow_the_formulas() {
    let coll_net =
        CollNet { heads: 8, iallgather: true, ireducescatter: false, direct_depth: 2, chain_depth: 9 };
    let model = with(Comm::dgx_h100(4, 8).unwrap(), |comm| {
        let graph = Graph { channels: 8, bw_intra: 45.0, bw_inter: 45.0, ..comm.graphs[1].clone() };
        (comm.graphs[2], comm.graphs[3]) = (graph.clone(), graph);
        comm.coll_net = Some(coll_net);
    });
    // Direct: 360 / (1 - 0) x .85 / 2; 2 x (3.7 + 7 x .4) + 31.
    assert_near(all_reduce(&model, Algo::CollNetDirect, Proto::Simple), (44.0, 153.0), "CollNetDirect");
    // Chain: 360 / 2; 2 x 7 x 2.8 + 30.
    assert_near(all_reduce(&model, Algo::CollNetChain, Proto::Simple), (69.2, 180.0), "CollNetChain");
    // NVLS over nodes: 25 + 18; 8 x 40 x 5/6. NVLSTree: 25 + 2 x 2 x 14; from 3 nodes on half of the network's bandwidth.
    assert_near(all_reduce(&model, Algo::Nvls, Proto::Simple), (43.0, 266.7), "NVLS");
    assert_near(all_reduce(&model, Algo::NvlsTree, Proto::Simple), (81.0, 133.3), "NVLSTree");
    // All-gather: 8 x 45 x .85, no conversion; no reduce-scatter in the plugin.
    let direct = |func| model.entry(func, Algo::CollNetDirect, Proto::Simple);
    assert!((direct(Func::AllGather).bandwidth - 306.0).abs() < 0.05);
    assert_eq!(
        (direct(Func::ReduceScatter).bandwidth, direct(Func::ReduceScatter).gates[0].code),
        (0.0, "collnet_plugin")
    );
    let choice = model.choose(&Operation::sum(Func::AllGather, 1 << 20)).unwrap();
    assert_eq!(codes(&choice, Algo::Nvls, Proto::Simple), ["nvls_nodes"]);
    let op = Operation { coll_net_supported: false, ..Operation::sum(Func::AllReduce, 1 << 20) };
    assert_eq!(codes(&model.choose(&op).unwrap(), Algo::CollNetChain, Proto::Simple), ["collnet_operation"]);
    let no_switch = with(model.comm.clone(), |comm| comm.nvs_count = 0);
    assert_eq!(
        no_switch.entry(Func::AllReduce, Algo::CollNetDirect, Proto::Simple).gates[0].code,
        "no_nvswitch"
    );
}

#[test]
fn volta_rings_over_pci_and_power_hosts_have_their_own_figures() {
    let pci = |comm: &mut Comm| {
        (comm.min_comp_cap, comm.max_comp_cap) = (70, 70);
        for graph in &mut comm.graphs[..2] {
            (graph.channels, graph.bw_intra, graph.bw_inter, graph.type_intra) = (1, 12.0, 12.0, Path::Phb);
        }
    };
    let model = with(Comm::dgx_h100(1, 4).unwrap(), pci);
    // 8.4 + 6 x 5.7; 12 x 4 / 6. A ring no faster than PCI gets 256 threads.
    assert_near(all_reduce(&model, Algo::Ring, Proto::Simple), (42.6, 8.0), "Ring Simple over PCI");
    assert_eq!(model.max_threads[Algo::Ring.index()], [512, 640, 256]);
    let gates: Vec<_> =
        model.entry(Func::AllReduce, Algo::Ring, Proto::Ll128).gates.iter().map(|g| g.code).collect();
    assert_eq!(gates, ["ll128_unsafe"]);
    let power = with(Comm::dgx_h100(1, 4).unwrap(), |comm| {
        pci(comm);
        comm.cpu_arch = CpuArch::Power;
    });
    assert_near(
        all_reduce(&power, Algo::Tree, Proto::Simple),
        (2.0 * 3.0 * 5.7, 5.5),
        "Tree Simple on POWER",
    );
}

#[test]
fn the_tree_correction_and_the_plateau_of_rings_depend_on_size() {
    let model = dgx(8);
    let tree_ll =
        |bytes| model.algo_time(&Operation::sum(Func::AllReduce, bytes), Algo::Tree, Proto::Ll).time.unwrap();
    let bw = f64::from(model.entry(Func::AllReduce, Algo::Tree, Proto::Ll).bandwidth);
    for (bytes, factor) in
        [(63u64, 1.0), (64, 1.0), (1 << 10, 0.9), (256 << 10, 0.4), (256 << 20, 1.0), (512 << 20, 1.0)]
    {
        let want = 15.2 + bytes as f64 / (1000.0 * bw * factor);
        assert!((f64::from(tree_ll(bytes)) / want - 1.0).abs() < 1e-4, "{bytes}");
    }
    let nodes = Model::new(Comm::dgx_h100(2, 8).unwrap()).unwrap();
    let ring = |bytes| {
        let op = Operation::sum(Func::AllReduce, bytes);
        nodes.algo_time(&op, Algo::Ring, Proto::Simple).time.unwrap()
    };
    // 64 bytes for each of 16 ranks and 16 channels.
    let (below, at) = (ring(64 * 256 - 1), ring(64 * 256));
    assert!((at / below - 1.4).abs() < 0.01, "{below} {at}");
}

#[test]
fn aggregated_operations_pay_a_rings_latency_each_and_a_trees_once_in_sixteen() {
    let model = dgx(8);
    let time = |algo, num_pipe_ops| {
        let op = Operation { num_pipe_ops, ..Operation::sum(Func::AllReduce, 0) };
        model.algo_time(&op, algo, Proto::Ll).time.unwrap()
    };
    assert_eq!([time(Algo::Ring, 3), time(Algo::Tree, 16)], [3.0 * time(Algo::Ring, 1), time(Algo::Tree, 1)]);
    assert_eq!(time(Algo::Tree, 17), 2.0 * time(Algo::Tree, 1));
}

#[test]
fn what_a_machine_does_not_have_is_left_out_with_the_reason() {
    let choice = dgx(8).choose(&Operation::sum(Func::AllReduce, 1 << 20)).unwrap();
    assert_eq!(choice.candidates.len(), 18);
    assert_eq!(codes(&choice, Algo::Ring, Proto::Ll128), Vec::<&str>::new());
    assert_eq!(codes(&choice, Algo::CollNetChain, Proto::Simple), ["no_graph", "no_collnet"]);
    assert_eq!(codes(&choice, Algo::NvlsTree, Proto::Simple), ["one_node"]);
    assert_eq!(codes(&choice, Algo::Nvls, Proto::Ll), ["protocol_unused"]);
    let choice = dgx(8).choose(&Operation::sum(Func::Broadcast, 1 << 20)).unwrap();
    assert_eq!(codes(&choice, Algo::Tree, Proto::Ll), ["not_implemented"]);
    let mixed = with(Comm::dgx_h100(1, 8).unwrap(), |comm| comm.min_comp_cap = 80);
    assert_eq!(mixed.entry(Func::AllReduce, Algo::Ring, Proto::Ll128).gates.len(), 1);
    let ada = with(Comm::dgx_h100(1, 8).unwrap(), |comm| (comm.min_comp_cap, comm.max_comp_cap) = (89, 89));
    assert!(
        ada.entry(Func::AllReduce, Algo::Ring, Proto::Ll128).gates[0].reason.en.contains("capability 89")
    );
    let old = with(Comm::dgx_h100(1, 2).unwrap(), |comm| comm.cudart_version = 11080);
    assert_eq!(old.entry(Func::AllReduce, Algo::Ring, Proto::Ll128).bandwidth, 0.0);
    assert!(old.entry(Func::AllGather, Algo::Ring, Proto::Ll128).bandwidth > 0.0);
    // NVLS cannot multiply.
    let product = Operation { nvls_supported: false, ..Operation::sum(Func::AllReduce, 1 << 30) };
    let choice = dgx(8).choose(&product).unwrap();
    assert_eq!(codes(&choice, Algo::Nvls, Proto::Simple), ["nvls_operation"]);
    assert_eq!(winner(&choice), ("Ring", "Simple"));
}

#[test]
fn ll128_reaches_through_pxn_on_hopper_only() {
    let far = |cap| {
        with(Comm::dgx_h100(2, 8).unwrap(), |comm| {
            (comm.min_comp_cap, comm.max_comp_cap) = (cap, cap);
            comm.graphs[1].type_inter = Path::Pxn;
        })
    };
    assert!(far(90).entry(Func::AllReduce, Algo::Ring, Proto::Ll128).bandwidth > 0.0);
    assert_eq!(far(80).entry(Func::AllReduce, Algo::Ring, Proto::Ll128).bandwidth, 0.0);
}

#[test]
fn settings_leave_out_and_force_as_in_nccl() {
    let set = |algo: Option<&str>, proto: Option<&str>| {
        with(Comm::dgx_h100(1, 8).unwrap(), |comm| {
            comm.settings.algo = algo.map(Into::into);
            comm.settings.proto = proto.map(Into::into);
        })
    };
    let choose = |model: &Model, func| model.choose(&Operation::sum(func, 1 << 10));
    let choice = choose(&set(Some("tree"), None), Func::AllReduce).unwrap();
    assert_eq!(winner(&choice), ("Tree", "LL"));
    assert_eq!(codes(&choice, Algo::Ring, Proto::Ll), ["environment"]);
    // Naming LL128 asks for it wherever it is, safe or not.
    let forced = with(Comm::dgx_h100(1, 8).unwrap(), |comm| {
        comm.settings.proto = Some("LL128".into());
        comm.min_comp_cap = 80;
    });
    assert_eq!(winner(&choose(&forced, Func::AllReduce).unwrap()), ("Tree", "LL128"));
    // nccl#1304: a broadcast with NCCL_ALGO=Tree runs on Ring, and from 2.22 on with the protocol asked for.
    let choice = choose(&set(Some("Tree"), Some("Simple")), Func::Broadcast).unwrap();
    assert_eq!(winner(&choice), ("Ring", "Simple"));
    assert!(choice.winner().fallback && choice.why.en.contains("falls back to Ring"));
    // NVLS alone, for a product: the table has NVLS, the operation does not, Ring steps in.
    let model = set(Some("NVLS"), None);
    let product = Operation { nvls_supported: false, ..Operation::sum(Func::AllReduce, 1 << 10) };
    assert!(model.choose(&product).unwrap().winner().fallback);
    // A list of nothing but CollNet is ignored without a plugin.
    assert_eq!(winner(&choose(&set(Some("CollNetDirect"), None), Func::AllReduce).unwrap()), ("Ring", "LL"));
    let err = choose(&set(None, Some("bogus")), Func::AllReduce).unwrap_err().to_string();
    assert!(err.contains("NCCL_PROTO=bogus"), "{err}");
}

#[test]
fn channels_and_threads_shrink_with_the_message() {
    let model = dgx(8);
    let launch = |func, algo, proto, bytes| model.launch(&Operation::sum(func, bytes), algo, proto);
    let size = |l: &Launch| (l.max_channels, l.threads);
    // Ring LL: 64 bytes a thread. 24 x 512 x 64 = 768 KiB fill all.
    let ring_ll = |bytes| size(&launch(Func::AllReduce, Algo::Ring, Proto::Ll, bytes));
    assert_eq!(
        [ring_ll(768 << 10), ring_ll((768 << 10) - 1), ring_ll(32 << 10)],
        [(24, 512), (23, 512), (1, 512)]
    );
    assert_eq!([ring_ll(16 << 10), ring_ll(4 << 10), ring_ll(8)], [(1, 256), (1, 96), (1, 96)]);
    // Simple: 64 bytes a thread and a warp more; Tree always has 640.
    assert_eq!(size(&launch(Func::AllReduce, Algo::Ring, Proto::Simple, 1 << 30)), (24, 544));
    assert_eq!(size(&launch(Func::AllReduce, Algo::Tree, Proto::Ll, 8)), (1, 640));
    assert_eq!(size(&launch(Func::AllReduce, Algo::Nvls, Proto::Simple, 8)), (16, 640));
}

#[test]
fn chunks_and_slices_are_nccls() {
    let model = dgx(8);
    let launch = |func, algo, proto, bytes| model.launch(&Operation::sum(func, bytes), algo, proto);
    let ring = launch(Func::AllReduce, Algo::Ring, Proto::Simple, 1 << 30);
    assert_eq!(
        (ring.chunk_bytes, ring.slice_bytes, ring.chunk_steps, ring.slice_steps),
        (2 << 20, 1 << 20, 4, 2)
    );
    let broadcast = launch(Func::Broadcast, Algo::Ring, Proto::Simple, 1 << 30);
    assert_eq!((broadcast.chunk_bytes, broadcast.slice_bytes), (512 << 10, 512 << 10));
    // Half of a step's 64 KiB is data; of LL128's 614,400 bytes 15/16, in whole grains of 1920.
    assert_eq!(launch(Func::AllReduce, Algo::Ring, Proto::Ll, 1 << 20).chunk_bytes, 32 << 10);
    assert_eq!(launch(Func::AllReduce, Algo::Ring, Proto::Ll128, 1 << 28).chunk_bytes, 576_000);
    // Tree LL128 on one node: 1.8 x 64 / 8 = 14.4 loops of a chunk above 128 KiB, 3.6 above 32 KiB; a channel has 43,696 bytes.
    assert_eq!(launch(Func::AllReduce, Algo::Tree, Proto::Ll128, 1 << 20).chunk_bytes, 17_280);
    // NVLS: 128 KiB at most; 2 MiB over 16 channels are 128 KiB each, below 2 x 8 heads x 16 KiB.
    assert_eq!(launch(Func::AllReduce, Algo::Nvls, Proto::Simple, 1 << 30).chunk_bytes, 128 << 10);
    assert_eq!(launch(Func::AllReduce, Algo::Nvls, Proto::Simple, 2 << 20).chunk_bytes, 16 << 10);
}

#[test]
fn work_is_handed_out_in_cells() {
    let model = dgx(8);
    let channels =
        |bytes| model.launch(&Operation::sum(Func::AllReduce, bytes), Algo::Ring, Proto::Ll).channels;
    // At least 512 bytes of traffic a channel, which all-reduce moves twice.
    assert_eq!([channels(0), channels(1), channels(256), channels(1 << 20)], [0, 1, 1, 24]);
}

#[test]
fn one_rank_needs_no_model() {
    let choice = dgx(1).choose(&Operation::sum(Func::AllReduce, 1 << 20)).unwrap();
    assert_eq!(winner(&choice), ("Ring", "Simple"));
    assert_eq!(choice.winner().cost.as_ref().unwrap().time_us, 0.0);
}

#[test]
fn contradictory_communicators_are_refused() {
    let refused = |change: fn(&mut Comm)| {
        let mut comm = Comm::dgx_h100(1, 8).unwrap();
        change(&mut comm);
        Model::new(comm).unwrap_err().to_string()
    };
    assert!(refused(|comm| comm.nodes = 9).contains("8 ranks on 9 nodes"));
    assert!(refused(|comm| comm.channels = 33).contains("1 to 32"));
    assert!(refused(|comm| comm.graphs[1].bw_intra = f32::NAN).contains("graph of Ring"));
    assert!(refused(|comm| comm.nvls_channels = 0).contains("an NVLS graph with 0 channels"));
    assert!(refused(|comm| comm.ranks = u32::MAX).contains("up to 1048576"));
    assert!(Comm::dgx_h100(1, 9).is_err());
}

#[test]
fn the_explanation_mentions_every_combination_in_both_languages() {
    for func in Func::ALL {
        let choice = dgx(8).choose(&Operation::sum(*func, 1 << 20)).unwrap();
        let sentences = choice.sentences();
        for lang in Lang::ALL {
            let text = choice.explain(lang);
            for (candidate, sentence) in choice.candidates.iter().zip(&sentences) {
                assert!(sentence.get(lang).starts_with(&candidate.name(lang)));
                assert!(text.contains(sentence.get(lang)));
            }
        }
    }
}
