//! How many channels a message is cut into when the command line does not say.

use ringlab_engine::plan::MAX_CHANNELS;

/// Bytes of a message below which another channel costs more than it moves.
const SHORT: u64 = 8 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channels {
    Fixed(u32),
    /// At most so many, fewer for short messages.
    UpTo(u32),
}

impl Channels {
    /// A block of every rank and channel on each multiprocessor, but for those that stamp launches.
    pub fn filling(ranks_per_device: u32, multiprocessors: u32) -> Channels {
        let spare = multiprocessors.saturating_sub(1);
        Channels::UpTo((spare / ranks_per_device.max(1)).clamp(1, MAX_CHANNELS))
    }

    pub fn of(self, bytes: u64) -> u32 {
        match self {
            Channels::Fixed(channels) => channels,
            Channels::UpTo(most) => (bytes / SHORT).clamp(1, most.into()) as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_fill_the_device_and_short_messages_have_fewer() {
        let filling = |ranks| Channels::filling(ranks, 132);
        assert_eq!([2, 4, 8].map(filling), [64, 32, 16].map(Channels::UpTo));
        assert_eq!(filling(1), Channels::UpTo(MAX_CHANNELS));
        assert_eq!(filling(64), Channels::UpTo(2));
        assert_eq!([0, 1 << 10, 64 << 10, 1 << 30].map(|bytes| filling(4).of(bytes)), [1, 1, 8, 32]);
        assert_eq!(Channels::Fixed(3).of(1), 3);
    }
}
