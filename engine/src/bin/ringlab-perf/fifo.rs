//! How connections carry data, on the command line.

use ringlab_engine::fifo::{Fifo, Protocol};

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Connections")]
pub struct FifoArgs {
    /// LL, LL128 or Simple (default: Simple; with --algo auto what the tuner chooses; with --sim-report all). Plans that only read peers'
    /// buffers (one_shot, two_shot) have no data on connections: all protocols are the same for them.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["threads", "random", "tune_report", "explain"])]
    pub proto: Option<Protocol>,

    /// Steps of a connection's eight that a chunk takes: a channel works on so many slots of data at a time (NCCL's all-reduce: 4).
    #[arg(long, value_name = "COUNT", default_value_t = 1,
          conflicts_with_all = ["threads", "random", "tune_report", "explain"])]
    pub chunk_steps: u32,

    /// Steps that a slice takes: a chunk is announced slice by slice (NCCL's all-reduce: 2).
    #[arg(long, value_name = "COUNT", default_value_t = 1,
          conflicts_with_all = ["threads", "random", "tune_report", "explain"])]
    pub slice_steps: u32,
}

impl FifoArgs {
    /// What clap cannot see one flag at a time.
    pub fn validate(&self) -> Result<(), String> {
        self.with(Protocol::Simple).check().map_err(|why| format!("--chunk-steps and --slice-steps: {why}"))
    }

    /// The steps that were asked for, on this protocol.
    pub fn with(&self, protocol: Protocol) -> Fifo {
        Fifo { protocol, chunk_steps: self.chunk_steps, slice_steps: self.slice_steps }
    }

    /// Where nothing else chooses the protocol.
    pub fn fifo(&self) -> Fifo {
        self.with(self.proto.unwrap_or_default())
    }
}
