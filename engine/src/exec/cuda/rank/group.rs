//! Several ranks' calls queued by one thread: as one launch for all of them where all ranks of the communicator are here, on one device.
//!
//! Everything is prepared before anything is queued: a load or an allocation waits for kernels that run, and a kernel of a rank that was
//! queued may wait for the one whose turn has not come.

use std::sync::Arc;

use super::batch;
use super::fusion::{self, Asked, Sight, Step};
use super::local::{self, Job, Source};
use super::port::buffers;
use super::ready::{Ready, unit};
use super::{Call, Factor, Message, Port};
use crate::exec::ExecError;
use crate::exec::cuda::direct::{self, Direct, Piece};
use crate::exec::cuda::driver::{Device, Function};
use crate::exec::cuda::foreign::{Event, ForeignStream, Visit};
use crate::exec::cuda::image::{LOCAL_RANKS, Ranks};
use crate::exec::cuda::kernels::{self, RankLaunch};
use crate::types::{DType, Rank, RedOp};

/// One rank's part of a group: calls in order, then all messages together.
pub struct Member<'a> {
    pub port: &'a mut Port,
    pub calls: Vec<Call>,
    pub messages: Vec<Message>,
    pub stream: ForeignStream,
}

/// What a port needs to lead a launch for several.
pub struct Fusion {
    /// Joins streams; used again at once, as a wait refers to the record before it.
    arrival: Event,
    /// Behind launches that go into graphs.
    recorded: Event,
    /// Behind the last launch of these ranks. Another set gets another event, as whoever waits for it must have been in the launch.
    fork: Option<(Vec<u32>, Arc<Event>)>,
}

impl Fusion {
    pub fn new(device: &Arc<Device>) -> Result<Fusion, ExecError> {
        Ok(Fusion { arrival: Event::new(device)?, recorded: Event::new(device)?, fork: None })
    }
}

/// A group of ranks of one communicator, ready to be queued without waiting for anything.
pub struct Group<'a> {
    /// By rank.
    members: Vec<Member<'a>>,
    work: Vec<Work>,
    captures: bool,
}

enum Work {
    Join,
    Direct(Box<Direct>),
    /// And how many calls of every member it is.
    Local(Arc<Ready>, u64),
    Copies(Arc<Ready>),
    /// By member: its call and its programs.
    Beside(Arc<Function>, Vec<(usize, Arc<Ready>)>),
    Fork,
    Alone {
        member: usize,
        call: usize,
        ready: Arc<Ready>,
    },
    Messages {
        member: usize,
        ready: Option<Arc<Ready>>,
    },
}

impl<'a> Group<'a> {
    /// Prepares everything; `members` are different ranks of one communicator.
    ///
    /// # Errors
    /// Refused when ranks ask for different things, or something cannot run here; nothing has been queued then.
    pub fn prepare(mut members: Vec<Member<'a>>) -> Result<Group<'a>, ExecError> {
        members.sort_by_key(|member| member.port.shape.rank);
        let _visit = Visit::begin(&members[0].port.device)?;
        let captures = members.iter().map(|member| member.stream.capture()).collect::<Result<Vec<_>, _>>()?;
        let sights: Vec<Sight<'_>> = members.iter().zip(&captures).map(|(m, c)| m.sight(*c)).collect();
        let steps = fusion::steps(members[0].port.shape.ranks, &sights).map_err(ExecError::Refused)?;
        let mut group = Group { members, work: Vec::new(), captures: captures.iter().any(Option::is_some) };
        if !group.captures && steps.contains(&Step::Fork) {
            group.renew_fork()?;
        }
        // Once more when the programs of earlier operations had to make room, since the first of this group went with them.
        for _ in 0..2 {
            let before = group.forgotten();
            group.work.clear();
            let mut left = &steps[..];
            while let Some(step) = left.first() {
                let taken = group.batch(left)?;
                if taken == 0 {
                    group.make_ready(step)?;
                }
                left = &left[taken.max(1)..];
            }
            if group.forgotten() == before {
                return Ok(group);
            }
        }
        Err(ExecError::Refused(
            "the programs of one group do not fit a communicator's memory for programs; use fewer operations in one group".into(),
        ))
    }

    /// Calls that carry out the plan of their rank: the rank, and which of its calls.
    pub fn planned(&self) -> Vec<(Rank, usize)> {
        let rank = |member: usize| Rank(self.members[member].port.shape.rank);
        let calls = |work: &Work| match work {
            Work::Alone { member, call, .. } => vec![(rank(*member), *call)],
            Work::Beside(_, all) => {
                all.iter().enumerate().map(|(member, (call, _))| (rank(member), *call)).collect()
            }
            _ => vec![],
        };
        self.work.iter().flat_map(calls).collect()
    }

    fn forgotten(&self) -> u64 {
        self.members.iter().map(|member| member.port.forgotten).sum()
    }

    fn make_ready(&mut self, step: &Step) -> Result<(), ExecError> {
        let work = match step {
            Step::Join => Work::Join,
            Step::Fork => Work::Fork,
            Step::Alone { member, call } => self.call_of(*member, *call)?,
            Step::Messages { member } => self.messages_of(*member)?,
            Step::Copies(jobs) => return self.copies(jobs),
            Step::Together(calls) => return self.together(calls),
            Step::Beside(calls) => return self.beside(calls),
        };
        self.work.push(work);
        Ok(())
    }

    fn lead(&mut self) -> &mut Port {
        self.members[0].port
    }

    fn call_of(&mut self, member: usize, call: usize) -> Result<Work, ExecError> {
        let Member { port, calls, .. } = &mut self.members[member];
        port.device.bind()?;
        Ok(Work::Alone { member, call, ready: port.ready_for(&calls[call])? })
    }

    fn messages_of(&mut self, member: usize) -> Result<Work, ExecError> {
        let Member { port, messages, .. } = &mut self.members[member];
        port.device.bind()?;
        Ok(Work::Messages { member, ready: port.ready_for_messages(messages)? })
    }

    /// What each member does by itself, in the place of one launch for all.
    fn apart(&mut self, of: impl Fn(&mut Self, usize) -> Result<Work, ExecError>) -> Result<(), ExecError> {
        self.work.push(Work::Fork);
        for member in 0..self.members.len() {
            let work = of(self, member)?;
            self.work.push(work);
        }
        self.work.push(Work::Join);
        Ok(())
    }

    /// One launch for a call of every member, each with programs of its own.
    fn beside(&mut self, at: &[usize]) -> Result<(), ExecError> {
        let mut all = Vec::with_capacity(at.len());
        for (Member { port, calls, .. }, &call) in self.members.iter_mut().zip(at) {
            all.push((call, port.ready_for(&calls[call])?));
        }
        let alike = |(_, ready): &(usize, Arc<Ready>)| Arc::ptr_eq(&ready.function, &all[0].1.function);
        if !all.iter().all(alike) {
            return self.apart(|group, member| group.call_of(member, at[member]));
        }
        let (call, protocol) = (&self.members[0].calls[at[0]], all[0].1.protocol);
        let Port { device, info, scope, .. } = &*self.members[0].port;
        let function = kernels::ranks_interpreter(device, info, call.dtype, call.op, protocol, *scope)?;
        self.work.push(Work::Beside(function, all));
        Ok(())
    }

    fn copies(&mut self, jobs: &[Job]) -> Result<(), ExecError> {
        if !local::fits(jobs, self.lead().info.multiprocessors) {
            return self.apart(Self::messages_of);
        }
        let units = self.members.iter().map(|member| unit(&member.messages));
        let dtype = units.min_by_key(|dtype| dtype.size()).unwrap_or(DType::U8);
        let ready = self.lead().ready_for_jobs(jobs, dtype, RedOp::Sum, &[])?;
        self.work.push(Work::Copies(ready));
        Ok(())
    }

    /// A call of every member, by rank.
    fn calls(&self, at: &[usize]) -> Vec<Call> {
        self.members.iter().zip(at).map(|(member, &call)| member.calls[call]).collect()
    }

    /// One launch for several short calls of every member, if that is what comes next. Returns how many steps that is.
    fn batch(&mut self, steps: &[Step]) -> Result<usize, ExecError> {
        let ranks = self.members.len() as u32;
        let calls = |step: &Step| match step {
            Step::Together(at) => Some(self.calls(at)).filter(|calls| batch::is_short(&calls[0], ranks)),
            _ => None,
        };
        let run: Vec<Vec<Call>> = steps.iter().map_while(calls).collect();
        let Some(Call { dtype, op, collective, .. }) = run.first().map(|calls| calls[0]) else {
            return Ok(0);
        };
        let count = run.iter().take_while(|calls| batch::alike(&run[0][0], &calls[0])).count();
        if count < batch::LEAST {
            return Ok(0);
        }
        let by_call: Vec<Vec<Job>> = run[..count].iter().map(|calls| jobs(calls)).collect();
        let all = by_call.concat();
        let op = if collective.reduces() { op } else { RedOp::Sum };
        let fits = local::fits(&all, self.lead().info.multiprocessors);
        // What was found independent once is so whenever it comes again.
        let known = self.lead().knows_jobs(&all, dtype, op);
        let may = known || (fits && batch::are_independent(&by_call));
        if !may {
            return Ok(0);
        }
        let ready = self.lead().ready_for_jobs(&all, dtype, op, &[])?;
        self.work.push(Work::Local(ready, count as u64));
        Ok(count)
    }

    /// One launch for a call of every member. A factor that is on the device is known to its own rank's programs only.
    fn together(&mut self, at: &[usize]) -> Result<(), ExecError> {
        let calls = self.calls(at);
        let Call { collective, block, dtype, op, .. } = calls[0];
        let ranks = calls.len() as u32;
        if op != RedOp::PreMulSum || !collective.reduces() {
            let task = direct::Task { collective, ranks, block, dtype, op };
            let (device, info) = (self.lead().device.clone(), self.lead().info.clone());
            let input = |rank: Rank| calls[rank.index()].input;
            let output = |rank: Rank| calls[rank.index()].output;
            let direct = Direct::over(task, &device, &info, input, output)?;
            self.work.push(Work::Direct(Box::new(direct)));
            return Ok(());
        }
        let bits = |call: &Call| match call.factor {
            Some(Factor::Bits(bits)) => Some(bits),
            _ => None,
        };
        let jobs = jobs(&calls);
        let fits = local::fits(&jobs, self.lead().info.multiprocessors);
        match calls.iter().map(bits).collect::<Option<Vec<u64>>>().filter(|_| fits) {
            Some(factors) => {
                let ready = self.lead().ready_for_jobs(&jobs, dtype, op, &factors)?;
                self.work.push(Work::Local(ready, 1));
                Ok(())
            }
            // Not launches of their own: on one stream the first would wait for the ones behind it.
            None if calls.len() <= LOCAL_RANKS => self.beside(at),
            None => self.apart(|group, member| group.call_of(member, at[member])),
        }
    }

    /// Queues all of it. What fails here is the driver; what came before it stays queued.
    pub fn queue(mut self) -> Result<(), ExecError> {
        let _visit = Visit::begin(&self.lead().device)?;
        for work in std::mem::take(&mut self.work) {
            match work {
                Work::Join => self.join()?,
                Work::Fork => self.fork()?,
                Work::Direct(direct) => {
                    direct.queue_on(self.members[0].stream)?;
                    self.members.iter_mut().for_each(|member| member.port.tally.calls += 1);
                }
                Work::Local(ready, count) => {
                    self.launch(&ready)?;
                    self.members.iter_mut().for_each(|member| member.port.tally.calls += count);
                }
                Work::Copies(ready) => {
                    self.launch(&ready)?;
                    self.members.iter_mut().for_each(|member| member.port.tally.count(&member.messages));
                }
                Work::Beside(function, all) => self.launch_beside(&function, &all)?,
                Work::Alone { member, call, ready } => {
                    let Member { port, calls, stream, .. } = &mut self.members[member];
                    port.device.bind()?;
                    port.queue_call(&calls[call], &ready, *stream)?;
                }
                Work::Messages { member, ready } => {
                    let Member { port, messages, stream, .. } = &mut self.members[member];
                    port.device.bind()?;
                    port.queue_messages(messages, ready.as_deref(), *stream)?;
                }
            }
        }
        Ok(())
    }

    /// Whether the queue is a graph's instead of a stream's.
    pub fn captures(&self) -> bool {
        self.captures
    }

    /// Whether someone holds a mark at this event, which the lead and its followers have.
    fn holds_mark(&self, fork: &Arc<Event>) -> bool {
        let last = self.members.iter().filter(|member| Arc::ptr_eq(&member.port.last, fork)).count();
        Arc::strong_count(fork) > 1 + last
    }

    fn launch(&mut self, ready: &Ready) -> Result<(), ExecError> {
        let stream = self.members[0].stream;
        self.lead().launch(ready, [0; 3], None, stream)
    }

    fn launch_beside(&mut self, function: &Function, all: &[(usize, Arc<Ready>)]) -> Result<(), ExecError> {
        let stream = self.members[0].stream;
        let mut ranks = Vec::with_capacity(all.len());
        for (Member { port, calls, .. }, (call, ready)) in self.members.iter_mut().zip(all) {
            let call = &calls[*call];
            port.scale(call, stream)?;
            ranks.push((port.params(ready, buffers(call), call.factor()), ready.blocks));
            port.tally.calls += 1;
            port.captured |= self.captures;
        }
        let most = |of: fn(&Ready) -> u32| all.iter().map(|(_, ready)| of(ready)).max().unwrap_or(0);
        let (argument, blocks) = Ranks::new(&ranks);
        let launch =
            RankLaunch { blocks, threads: most(|r| r.threads), shared_bytes: most(|r| r.shared_bytes) };
        kernels::run_ranks(function, launch, stream, &argument)
    }

    /// Streams of the members other than the first one's, each once.
    fn others(&self) -> Vec<ForeignStream> {
        let lead = self.members[0].stream;
        let mut others: Vec<ForeignStream> = Vec::with_capacity(self.members.len());
        for Member { stream, .. } in &self.members {
            if *stream != lead && !others.contains(stream) {
                others.push(*stream);
            }
        }
        others
    }

    /// What the first member's stream queues from now on follows what all streams have queued, and all ports' launches.
    fn join(&self) -> Result<(), ExecError> {
        let lead = self.members[0].stream;
        for Member { port, stream, .. } in &self.members {
            let elsewhere = port.last_stream.is_some_and(|last| last != *stream && last != lead);
            if elsewhere && !self.captures {
                port.last.block(lead)?;
            }
        }
        let arrival = &self.members[0].port.fusion.arrival;
        self.others().into_iter().try_for_each(|other| {
            arrival.record(other)?;
            arrival.block(lead)
        })
    }

    /// What all streams queue from now on follows what the first member's has queued.
    fn fork(&mut self) -> Result<(), ExecError> {
        let (lead, others) = (self.members[0].stream, self.others());
        if self.captures {
            let recorded = &self.members[0].port.fusion.recorded;
            recorded.record(lead)?;
            return others.into_iter().try_for_each(|other| recorded.block(other));
        }
        let fork = self.members[0].port.fusion.fork.as_ref().map(|(_, fork)| fork.clone());
        let fork = fork.expect("`prepare` saw to it, and nobody else leads with this port meanwhile");
        fork.record(lead)?;
        others.into_iter().try_for_each(|other| fork.block(other))?;
        for Member { port, stream, .. } in &mut self.members {
            port.last = fork.clone();
            port.last_stream = Some(*stream);
        }
        Ok(())
    }

    /// Sees that there is an event to be recorded behind launches of these ranks.
    fn renew_fork(&mut self) -> Result<(), ExecError> {
        let ranks: Vec<u32> = self.members.iter().map(|member| member.port.shape.rank).collect();
        let usable = match &self.members[0].port.fusion.fork {
            Some((known, fork)) => *known == ranks && !self.holds_mark(fork),
            None => false,
        };
        if !usable {
            let fork = Arc::new(Event::new(&self.lead().device)?);
            self.lead().fusion.fork = Some((ranks, fork));
        }
        Ok(())
    }
}

impl Member<'_> {
    fn sight(&self, capture: Option<u64>) -> Sight<'_> {
        let asked = |call: &Call| Asked {
            collective: call.collective,
            block: call.block,
            dtype: call.dtype,
            op: call.collective.reduces().then_some(call.op),
        };
        Sight {
            rank: self.port.shape.rank,
            device: self.port.device.ordinal.number,
            capture,
            tally: &self.port.tally,
            calls: self.calls.iter().map(asked).collect(),
            messages: &self.messages,
        }
    }
}

/// One collective of all ranks as folds; of a pre-multiplied sum sources have the factors of their ranks.
fn jobs(calls: &[Call]) -> Vec<Job> {
    let Call { collective, block, dtype, .. } = calls[0];
    let bytes = block * dtype.size() as u64;
    let source = |(rank, nth): (Rank, u32)| Source {
        address: calls[rank.index()].input + u64::from(nth) * bytes,
        factor: calls[rank.index()].factor().map(|_| rank.0),
    };
    let target = |(rank, nth): (Rank, u32)| calls[rank.index()].output + u64::from(nth) * bytes;
    let job = |piece: Piece| Job {
        sources: piece.from.into_iter().map(source).collect(),
        targets: piece.to.into_iter().map(target).collect(),
        bytes,
    };
    direct::pieces(collective, calls.len() as u32).into_iter().map(job).collect()
}
