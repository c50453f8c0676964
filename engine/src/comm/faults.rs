//! Faults on purpose, for labs and tests: what a rank does wrong at one of its operations, so that all can see what its peers see.
//!
//! From [`super::Config::faults`], else from `RINGLAB_FAULT`: faults separated by `;`, each `WHAT [rank=R] [op=N]`. Without a rank
//! it is every rank's; operations count from 0 in each communicator, a group's one by one, and without `op` it is the first.
//!
//! | what | the rank |
//! | --- | --- |
//! | `delay=200ms` | comes late to operation N (`us`, `ms`, `s`) |
//! | `drop` | never launches operation N, and goes on as if it had |
//! | `kill` | ends its process by SIGKILL instead of asking for operation N, with all ranks in it |
//! | `count=5`, `dtype=half`, `redop=max` | asks for something else than its program did at operation N; never for longer buffers |
//! | `link=100M` | from operation N on sends no more than so many bytes a second (`K`, `M`, `G` are powers of 1000) |
//! | `starve` | from operation N on frees no slot: what it receives is used up, and no credit goes back |
//!
//! `link` models a rank behind a slow link by operation, not by chunk: each launch is held back by the time its bytes would take.
//! With `starve` a peer stops when the connection's slots are full ([`crate::plan::SLOTS`] chunks, over all operations since).

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::error::CommError;
use super::operation::Operation;
use crate::types::{DType, Rank, RedOp};

const VARIABLE: &str = "RINGLAB_FAULT";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Injected {
    Delay(Duration),
    Drop,
    Kill,
    Count(u64),
    DType(DType),
    RedOp(RedOp),
    /// Bytes a second, at least 1.
    Link(u64),
    Starve,
}

impl Injected {
    /// Whether it lasts from its operation on.
    const fn lasts(self) -> bool {
        matches!(self, Injected::Link(_) | Injected::Starve)
    }
}

impl fmt::Display for Injected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Injected::Delay(time) => write!(f, "delay={}us", time.as_micros()),
            Injected::Drop => f.write_str("drop"),
            Injected::Kill => f.write_str("kill"),
            Injected::Count(count) => write!(f, "count={count}"),
            Injected::DType(dtype) => write!(f, "dtype={dtype}"),
            Injected::RedOp(op) => write!(f, "redop={op}"),
            Injected::Link(rate) => write!(f, "link={rate}"),
            Injected::Starve => f.write_str("starve"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    pub what: Injected,
    /// Of the communicator; all ranks where it is left open.
    pub rank: Option<Rank>,
    pub operation: u64,
}

/// What goes wrong on purpose. `Default` is nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults(pub Vec<Fault>);

/// What is to be done with one operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effects {
    /// What the rank asks for.
    pub operation: Operation,
    pub wait: Duration,
    pub dropped: bool,
    pub kill: bool,
    pub starve: bool,
    /// As the flight record has it.
    pub note: Option<String>,
}

impl Faults {
    /// # Errors
    /// [`CommError::InvalidArgument`] for a variable that means nothing.
    pub(super) fn from_environment() -> Result<Faults, CommError> {
        std::env::var(VARIABLE).map_or(Ok(Faults::default()), |text| text.parse())
    }

    /// Those of one rank.
    #[must_use]
    pub fn of_rank(&self, rank: Rank) -> Faults {
        Faults(self.0.iter().filter(|fault| fault.rank.is_none_or(|of| of == rank)).copied().collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What these do to the operation of this number, of a rank of `ranks`.
    ///
    /// # Errors
    /// [`CommError::InvalidArgument`] when a change would need longer buffers than the caller has.
    pub fn effects(&self, number: u64, operation: &Operation, ranks: u32) -> Result<Effects, CommError> {
        let mut effects = Effects {
            operation: *operation,
            wait: Duration::ZERO,
            dropped: false,
            kill: false,
            starve: false,
            note: None,
        };
        let mut notes = Vec::new();
        let meant = |fault: &&Fault| match fault.what.lasts() {
            true => fault.operation <= number,
            false => fault.operation == number,
        };
        for fault in self.0.iter().filter(meant) {
            match fault.what {
                Injected::Delay(time) => effects.wait += time,
                Injected::Drop => effects.dropped = true,
                Injected::Kill => effects.kill = true,
                Injected::Starve => effects.starve = true,
                Injected::Link(rate) => {
                    let nanos =
                        u128::from(operation.sent_bytes(ranks)) * 1_000_000_000 / u128::from(rate.max(1));
                    effects.wait += Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
                }
                change => {
                    effects.operation = changed(effects.operation, change).map_err(|why| {
                        CommError::InvalidArgument(format!(
                            "{VARIABLE}: `{change}` at operation {number}: {why}"
                        ))
                    })?;
                }
            }
            notes.push(fault.what.to_string());
        }
        let bytes = |operation: &Operation| operation.block() as u128 * operation.dtype().size() as u128;
        if bytes(&effects.operation) > bytes(operation) {
            return Err(CommError::InvalidArgument(format!(
                "{VARIABLE}: `{}` at operation {number} asks for longer buffers than the {} elements of {} there are; give a smaller count \
                 or type",
                notes.join(" "),
                operation.block(),
                operation.dtype()
            )));
        }
        effects.note = (!notes.is_empty()).then(|| notes.join(" "));
        Ok(effects)
    }
}

/// A fault that would change nothing is refused: peers would see none, and the flight record would name one.
fn changed(mut operation: Operation, what: Injected) -> Result<Operation, String> {
    let absent = |thing: &str, in_what: &str| Err(format!("there is no {thing} in {in_what} to be another"));
    match (&mut operation, what) {
        (Operation::Barrier, _) => return absent("argument", "a barrier"),
        (Operation::Collective { collective, .. }, Injected::RedOp(_)) if !collective.reduces() => {
            return absent("reduction", collective.name());
        }
        (Operation::Collective { factor: None, .. }, Injected::RedOp(RedOp::PreMulSum)) => {
            return Err("the call has no factor for a pre-multiplied sum; choose another reduction".into());
        }
        (Operation::Collective { op, factor, .. }, Injected::RedOp(other)) => {
            *op = other;
            // With a factor it would stay a pre-multiplied sum.
            *factor = factor.filter(|_| other == RedOp::PreMulSum);
        }
        (Operation::Send { .. } | Operation::Recv { .. }, Injected::RedOp(_)) => {
            return absent("reduction", "a message");
        }
        (
            Operation::Collective { block: count, .. }
            | Operation::Send { count, .. }
            | Operation::Recv { count, .. },
            Injected::Count(other),
        ) => *count = other,
        (
            Operation::Collective { dtype, .. }
            | Operation::Send { dtype, .. }
            | Operation::Recv { dtype, .. },
            Injected::DType(other),
        ) => *dtype = other,
        _ => {}
    }
    Ok(operation)
}

impl FromStr for Faults {
    type Err = CommError;
    fn from_str(text: &str) -> Result<Faults, CommError> {
        let faults = text.split(';').map(str::trim).filter(|fault| !fault.is_empty());
        let read = |fault: &str| {
            read(fault).map_err(|why| {
                CommError::InvalidArgument(format!(
                    "{VARIABLE}: `{fault}`: {why}; write as `delay=200ms rank=1 op=5`, or drop, kill, count=N, dtype=TYPE, redop=OP, \
                     link=BYTES, starve"
                ))
            })
        };
        faults.map(read).collect::<Result<_, _>>().map(Faults)
    }
}

fn read(fault: &str) -> Result<Fault, String> {
    let (mut what, mut rank, mut operation) = (None, None, None);
    for word in fault.split_whitespace() {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let number =
            || value.parse::<u64>().map_err(|_| format!("{name} takes a whole number, not `{value}`"));
        let named = |why: crate::types::UnknownName| why.to_string();
        let injected = match name {
            "rank" => {
                let number = u32::try_from(number()?).map_err(|_| format!("there is no rank {value}"))?;
                once(&mut rank, Rank(number), name)?;
                continue;
            }
            "op" => {
                once(&mut operation, number()?, name)?;
                continue;
            }
            "drop" | "kill" | "starve" if !value.is_empty() => return Err(format!("{name} takes no value")),
            "drop" => Injected::Drop,
            "kill" => Injected::Kill,
            "starve" => Injected::Starve,
            "delay" => Injected::Delay(time(value)?),
            "count" => Injected::Count(number()?),
            "dtype" => Injected::DType(value.parse().map_err(named)?),
            "redop" => Injected::RedOp(value.parse().map_err(named)?),
            "link" => Injected::Link(rate(value)?),
            other => return Err(format!("there is no fault `{other}`")),
        };
        once(&mut what, injected, "the fault")?;
    }
    let what = what.ok_or("it does not say what goes wrong")?;
    Ok(Fault { what, rank, operation: operation.unwrap_or(0) })
}

fn once<T>(place: &mut Option<T>, value: T, name: &str) -> Result<(), String> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(format!("{name} is given twice; separate faults by `;`")),
    }
}

fn time(value: &str) -> Result<Duration, String> {
    let read = |unit: &str| value.strip_suffix(unit)?.parse::<u64>().ok();
    // Seconds last: every unit ends like them.
    let time = read("us").map(Duration::from_micros).or_else(|| read("ms").map(Duration::from_millis));
    time.or_else(|| read("s").map(Duration::from_secs))
        .ok_or_else(|| format!("`{value}` is no time; write 50us, 200ms or 3s"))
}

fn rate(value: &str) -> Result<u64, String> {
    let (number, unit) = match value.char_indices().last() {
        Some((at, 'k' | 'K')) => (&value[..at], 1_000),
        Some((at, 'm' | 'M')) => (&value[..at], 1_000_000),
        Some((at, 'g' | 'G')) => (&value[..at], 1_000_000_000),
        _ => (value, 1),
    };
    let rate =
        number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit)).filter(|rate| *rate > 0);
    rate.ok_or_else(|| format!("`{value}` is no rate; write bytes a second with an optional K, M or G"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Collective;

    fn all_reduce(block: u64) -> Operation {
        Operation::Collective {
            collective: Collective::AllReduce,
            send: 0,
            recv: 0,
            block,
            dtype: DType::F32,
            op: RedOp::Sum,
            factor: None,
        }
    }

    fn faults(text: &str) -> Faults {
        text.parse().unwrap()
    }

    #[test]
    fn each_fault_comes_at_its_operation_and_rank() {
        let all = faults("delay=200ms rank=1 op=5; drop op=6 ;kill rank=2 op=7;");
        let one = all.of_rank(Rank(1));
        let effects = |number| one.effects(number, &all_reduce(4), 3).unwrap();
        assert_eq!(effects(4).note, None);
        assert_eq!(
            (effects(5).wait, effects(5).note.as_deref()),
            (Duration::from_millis(200), Some("delay=200000us"))
        );
        assert!(effects(6).dropped && !effects(7).kill && !effects(5).dropped);
        assert!(all.of_rank(Rank(2)).effects(7, &all_reduce(4), 3).unwrap().kill);
        assert!(faults("").is_empty() && all.of_rank(Rank(0)).0.len() == 1);
    }

    #[test]
    fn a_mismatch_asks_for_something_else_but_never_for_more() {
        let changed =
            |text: &str| faults(text).effects(0, &all_reduce(4), 2).map(|effects| effects.operation);
        assert_eq!(changed("count=3"), Ok(all_reduce(3)));
        let Operation::Collective { dtype, op, .. } = changed("dtype=half;redop=max").unwrap() else {
            panic!()
        };
        assert_eq!((dtype, op), (DType::F16, RedOp::Max));
        assert!(
            changed("count=5")
                .unwrap_err()
                .to_string()
                .contains("longer buffers than the 4 elements of float")
        );
        assert!(changed("dtype=double").is_err() && changed("dtype=double;count=2").is_ok());
    }

    #[test]
    fn a_mismatch_that_would_be_none_is_refused() {
        let factor = Some(crate::comm::Scalar::Bits(7));
        let mut scaled = all_reduce(4);
        let Operation::Collective { factor: place, .. } = &mut scaled else { panic!() };
        *place = factor;
        // Not a pre-multiplied sum by another name.
        let changed = faults("redop=max").effects(0, &scaled, 2).unwrap().operation;
        let Operation::Collective { op, factor, .. } = changed else { panic!() };
        assert_eq!((op, factor), (RedOp::Max, None));
        let refused = |text: &str, operation: &Operation| {
            faults(text).effects(0, operation, 2).unwrap_err().to_string()
        };
        assert!(refused("redop=mulsum", &all_reduce(4)).contains("has no factor"));
        assert!(
            refused("count=3", &Operation::Barrier)
                .contains("`count=3` at operation 0: there is no argument")
        );
        let send = Operation::Send { to: Rank(0), buffer: 0, count: 2, dtype: DType::U8 };
        assert!(refused("redop=max", &send).contains("no reduction in a message"));
    }

    #[test]
    fn a_slow_link_holds_each_launch_back_by_the_time_of_its_bytes() {
        let link = faults("link=1M op=2");
        let wait = |number, block| link.effects(number, &all_reduce(block), 2).unwrap().wait;
        // All-reduce of 2 ranks: each sends as many bytes as it has.
        assert_eq!([wait(1, 250), wait(2, 250), wait(3, 500)].map(|wait| wait.as_millis()), [0, 1, 2]);
        let send = Operation::Send { to: Rank(0), buffer: 0, count: 2000, dtype: DType::U8 };
        assert_eq!(link.effects(9, &send, 2).unwrap().wait.as_millis(), 2);
        let recv = Operation::Recv { from: Rank(0), buffer: 0, count: 2000, dtype: DType::U8 };
        assert_eq!(link.effects(9, &recv, 2).unwrap().wait.as_millis(), 0);
    }

    #[test]
    fn what_means_nothing_is_refused_with_what_can_be_written() {
        let refused = |text: &str| text.parse::<Faults>().unwrap_err().to_string();
        assert!(
            refused("lag=3").contains("no fault `lag`")
                && refused("lag=3").contains("delay=200ms rank=1 op=5")
        );
        assert!(refused("rank=1").contains("does not say what goes wrong"));
        assert!(refused("drop kill").contains("given twice"));
        assert!(refused("delay=5").contains("`5` is no time"));
        assert!(refused("link=0").contains("no rate") && refused("drop=1").contains("takes no value"));
        assert!(refused("dtype=f31").contains("f31") && refused("drop rank=x").contains("whole number"));
    }
}
