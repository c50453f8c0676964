//! Ranks as communicators of this process, queued as one group by one thread.

use std::time::Duration;

use ringlab_engine::comm::{Config, grouped};

use crate::args::Args;
use crate::bench::Opener;

/// Forms the communicators and says how a size is made ready on them.
pub fn opener(args: &Args) -> Result<Opener, String> {
    let devices = crate::devices(args).map_err(|why| why.to_string())?;
    if devices.is_empty() {
        return Err("the driver shows no device".into());
    }
    let of_rank: Vec<u32> = (0..args.ranks as usize).map(|rank| devices[rank % devices.len()]).collect();
    let config = Config {
        deadline: Duration::from_secs(args.timeout),
        max_channels: args.channels(),
        slot_bytes: args.slot_bytes() as u64 / 16 * 16,
        ..Config::default()
    };
    let comms = grouped::init_all(&of_rank, &config).map_err(|why| why.to_string())?;
    let streams = if args.one_stream { grouped::Streams::One } else { grouped::Streams::Each };
    Ok(Box::new(move |spec| Ok(Box::new(grouped::open(&comms, spec, streams)?))))
}
