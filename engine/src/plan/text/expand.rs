//! From statements to a plan: settings first, then every block for its ranks and channels, in the order of the text.

use std::cell::Cell;

use super::expr::{Expr, Scope};
use super::syntax::{Block, File, PlaceText, RangeText, SettingKind, StepText, Stmt, StmtKind};
use super::{Limits, ParseError, Parsed, SourceMap};
use crate::plan::{Buffer, Place, Plan, Program, Range, Scratch, Step, VERSION};
use crate::text::Text;
use crate::types::{ChannelId, Collective, Rank};

pub fn expand(file: &File, limits: &Limits) -> Result<Parsed, ParseError> {
    let (mut plan, scope) = settings(file)?;
    let programs = (plan.ranks * plan.channels) as usize;
    let mut out = Expander {
        plan: &plan,
        limits,
        scope,
        steps: vec![Vec::new(); programs],
        lines: vec![Vec::new(); programs],
        step_count: 0,
        work: Cell::new(0),
    };
    for block in &file.blocks {
        out.block(block)?;
    }
    let Expander { steps, lines, .. } = out;
    let channels = plan.channels;
    plan.programs = steps
        .into_iter()
        .zip(0u32..)
        .map(|(steps, i)| Program { rank: Rank(i / channels), channel: ChannelId(i % channels), steps })
        .collect();
    Ok(Parsed { plan, lines: SourceMap { channels: channels as usize, lines } })
}

/// The plan without programs, and the names that are known everywhere.
fn settings(file: &File) -> Result<(Plan, Scope<'_>), ParseError> {
    let mut scope = Scope::default();
    let (mut collective, mut ranks, mut channels, mut chunks) = (None, None, None, None);
    let mut scratch = Vec::new();
    for setting in &file.settings {
        let twice = match &setting.kind {
            SettingKind::Collective { name, root } => collective.replace((name, root)).is_some(),
            SettingKind::Ranks(expr) => ranks.replace(expr).is_some(),
            SettingKind::Channels(expr) => channels.replace(expr).is_some(),
            SettingKind::Chunks(expr) => chunks.replace(expr).is_some(),
            SettingKind::Scratch { name, chunks } => {
                scratch.push((name, chunks));
                false
            }
        };
        if twice {
            let message = Text::new(
                "这一项前面已经写过；请只留一行。",
                "this setting was given above already; keep one line.",
            );
            return Err(ParseError { line: setting.line, column: 1, message });
        }
    }
    let missing = |what: &str| ParseError {
        line: file.line,
        column: 1,
        message: Text::new(
            format!("开头缺少 `{what}` 一行；需要 collective、ranks、channels 和 chunks。"),
            format!(
                "the line `{what}` is missing at the top; collective, ranks, channels and chunks are needed."
            ),
        ),
    };
    let ranks = ranks.ok_or_else(|| missing("ranks"))?;
    let n = count(ranks, &scope)?;
    scope.push("n", i64::from(n));
    let channels = count(channels.ok_or_else(|| missing("channels"))?, &scope)?;
    let chunks = count(chunks.ok_or_else(|| missing("chunks"))?, &scope)?;
    let (name, root) = collective.ok_or_else(|| missing("collective"))?;
    let kind = Collective::named(name, Rank(0)).expect("the parser knows the names of collectives");
    let collective = match (kind.root(), root) {
        (None, None) => kind,
        (Some(_), Some(root)) => {
            let root = Rank(count(root, &scope)?);
            scope.push("root", i64::from(root.0));
            Collective::named(name, root).expect("a root changes no name")
        }
        (Some(_), None) => return Err(missing(&format!("collective {name} root 0"))),
        (None, Some(root)) => {
            return Err(ParseError {
                line: root.line,
                column: root.column,
                message: Text::new(
                    format!("{name} 没有 root；有 root 的只有 broadcast、reduce、gather 和 scatter。"),
                    format!("{name} has no root; only broadcast, reduce, gather and scatter have one."),
                ),
            });
        }
    };
    let mut buffers = Vec::new();
    for (name, chunks) in scratch {
        buffers.push(Scratch { name: name.clone(), chunks: count(chunks, &scope)? });
    }
    let plan = Plan {
        version: VERSION,
        name: file.name.clone(),
        collective,
        ranks: n,
        channels,
        chunks,
        scratch: buffers,
        programs: Vec::new(),
    };
    plan.check_header().map_err(|message| ParseError { line: file.line, column: 1, message })?;
    Ok((plan, scope))
}

fn count(expr: &Expr, scope: &Scope<'_>) -> Result<u32, ParseError> {
    fits(expr, expr.eval(scope)?)
}

/// A count or an index: fits `u32`. Its own bounds are checked later, with better words.
fn fits(expr: &Expr, value: i64) -> Result<u32, ParseError> {
    u32::try_from(value).map_err(|_| {
        let (zh, en) = if value < 0 {
            (
                "不能是负数；要环绕请写 `% n`，例如 `(r-1) % n`",
                "it cannot be negative; to wrap round, write `% n` as in `(r-1) % n`",
            )
        } else {
            ("太大了", "it is too large")
        };
        expr.error(Text::new(format!("这里得到 {value}，{zh}。"), format!("this is {value}; {en}.")))
    })
}

struct Expander<'a> {
    plan: &'a Plan,
    limits: &'a Limits,
    scope: Scope<'a>,
    /// By rank, then channel.
    steps: Vec<Vec<Step>>,
    lines: Vec<Vec<u32>>,
    step_count: usize,
    /// In a cell, as reading an expression changes nothing else.
    work: Cell<usize>,
}

impl<'a> Expander<'a> {
    fn block(&mut self, block: &'a Block) -> Result<(), ParseError> {
        let (ranks, channels) = (self.plan.ranks, self.plan.channels);
        let depth = self.scope.depth();
        let chosen = |out: &Self, expr: &Option<Expr>, limit: u32, what: &str| match expr {
            None => Ok(0..limit),
            Some(expr) => match out.count(expr)? {
                value if value < limit => Ok(value..value + 1),
                value => Err(expr.error(Text::new(
                    format!("没有 {what} {value}；编号是 0 到 {}。", limit - 1),
                    format!("there is no {what} {value}; they go from 0 to {}.", limit - 1),
                ))),
            },
        };
        for rank in chosen(self, &block.rank, ranks, "rank")? {
            self.scope.push("r", i64::from(rank));
            for channel in chosen(self, &block.channel, channels, "channel")? {
                self.spend(1, block.line, 1)?;
                self.scope.push("c", i64::from(channel));
                self.body(&block.body, Rank(rank), ChannelId(channel))?;
                self.scope.truncate(depth + 1);
            }
            self.scope.truncate(depth);
        }
        Ok(())
    }

    fn body(&mut self, body: &'a [Stmt], rank: Rank, channel: ChannelId) -> Result<(), ParseError> {
        let depth = self.scope.depth();
        for stmt in body {
            self.spend(1, stmt.line, stmt.column)?;
            match &stmt.kind {
                StmtKind::Let { name, value } => {
                    self.fresh(name, stmt)?;
                    let value = self.eval(value)?;
                    self.scope.push(name, value);
                }
                StmtKind::For { var, from, to, body } => {
                    self.fresh(var, stmt)?;
                    let outer = self.scope.depth();
                    for value in self.eval(from)?..self.eval(to)? {
                        self.spend(1, stmt.line, stmt.column)?;
                        self.scope.push(var, value);
                        self.body(body, rank, channel)?;
                        self.scope.truncate(outer);
                    }
                }
                StmtKind::If { arms, otherwise } => {
                    let mut chosen = otherwise;
                    for (condition, body) in arms {
                        let (left, right) = (self.eval(&condition.left)?, self.eval(&condition.right)?);
                        if condition.compare.holds(left, right) {
                            chosen = body;
                            break;
                        }
                    }
                    self.body(chosen, rank, channel)?;
                }
                StmtKind::Step(text) => self.step(stmt, text, rank, channel)?,
            }
        }
        self.scope.truncate(depth);
        Ok(())
    }

    fn fresh(&self, name: &str, stmt: &Stmt) -> Result<(), ParseError> {
        match self.scope.get(name) {
            None => Ok(()),
            Some(_) => Err(ParseError {
                line: stmt.line,
                column: stmt.column,
                message: Text::new(
                    format!("`{name}` 在这里已有含义，请换个名字。"),
                    format!("`{name}` has a meaning here already; choose another name."),
                ),
            }),
        }
    }

    fn eval(&self, expr: &Expr) -> Result<i64, ParseError> {
        self.spend(expr.size, expr.line, expr.column)?;
        expr.eval(&self.scope)
    }

    fn count(&self, expr: &Expr) -> Result<u32, ParseError> {
        fits(expr, self.eval(expr)?)
    }

    /// A statement, a pass of a loop or of a block counts 1, an expression its size.
    fn spend(&self, units: usize, line: u32, column: u32) -> Result<(), ParseError> {
        self.work.set(self.work.get() + units);
        if self.work.get() <= self.limits.work {
            return Ok(());
        }
        let most = self.limits.work;
        Err(ParseError {
            line,
            column,
            message: Text::new(
                format!("展开到这里的语句和运算超过上限 {most}；请减少循环次数，或把式子写短。"),
                format!(
                    "statements and their arithmetic have taken {most} units of work, which is the limit; make the loops or \
                     the expressions shorter."
                ),
            ),
        })
    }

    fn step(
        &mut self,
        stmt: &'a Stmt,
        text: &'a StepText,
        rank: Rank,
        channel: ChannelId,
    ) -> Result<(), ParseError> {
        let error = |message| ParseError { line: stmt.line, column: stmt.column, message };
        let step = self.build(text, rank)?;
        self.step_count += 1;
        if let Step::Reduce { srcs, .. } = &step {
            self.step_count += srcs.len();
        }
        if self.step_count > self.limits.steps {
            let most = self.limits.steps;
            return Err(error(Text::new(
                format!("计划展开后超过 {most} 步；请减少 rank、channel 或循环次数。"),
                format!(
                    "the plan expands to more than {most} steps; use fewer ranks, channels or loop passes."
                ),
            )));
        }
        self.plan.check_step(rank, &step).map_err(|message| {
            error(Text::new(
                format!("{}（此时 r = {rank}，c = {channel}）", message.zh),
                format!("{} (here r = {rank}, c = {channel})", message.en),
            ))
        })?;
        let program = rank.index() * self.plan.channels as usize + channel.index();
        self.steps[program].push(step);
        self.lines[program].push(stmt.line);
        Ok(())
    }

    fn build(&mut self, text: &'a StepText, rank: Rank) -> Result<Step, ParseError> {
        // `syntax` fills exactly the parts its form of the step names.
        const FORM: &str = "the parser fills every part of a step's form";
        let peer = |expr: &Option<Expr>| self.count(expr.as_ref().expect(FORM)).map(Rank);
        let range = |range: &Option<RangeText>| self.range(range.as_ref().expect(FORM));
        Ok(match text.op {
            "send" => Step::Send { to: peer(&text.to)?, src: range(&text.src)? },
            "recv" => Step::Recv { from: peer(&text.from)?, dst: range(&text.dst)? },
            "recv_reduce_copy" => Step::RecvReduceCopy {
                from: peer(&text.from)?,
                src: range(&text.src)?,
                dst: range(&text.dst)?,
            },
            "recv_reduce_send" => {
                Step::RecvReduceSend { from: peer(&text.from)?, src: range(&text.src)?, to: peer(&text.to)? }
            }
            "recv_reduce_copy_send" => Step::RecvReduceCopySend {
                from: peer(&text.from)?,
                src: range(&text.src)?,
                dst: range(&text.dst)?,
                to: peer(&text.to)?,
            },
            "recv_copy_send" => {
                Step::RecvCopySend { from: peer(&text.from)?, dst: range(&text.dst)?, to: peer(&text.to)? }
            }
            "signal" => Step::Signal { to: peer(&text.to)? },
            "wait" => Step::Wait { from: peer(&text.from)? },
            "copy" => {
                let dst = range(&text.dst)?;
                let place = text.places.first().expect(FORM);
                if let Some((_, from, _)) = &place.each {
                    return Err(from.error(Text::new(
                        "copy 只有一个来源；要复制多次，请把 `for` 写成外层循环。",
                        "copy has one source; to copy several, put a `for` loop around the step.",
                    )));
                }
                Step::Copy { src: self.place(place, rank)?, dst }
            }
            _ => {
                let dst = range(&text.dst)?;
                let mut srcs = Vec::new();
                for place in &text.places {
                    self.places(place, rank, &mut srcs)?;
                }
                Step::Reduce { srcs, dst }
            }
        })
    }

    fn places(&mut self, text: &'a PlaceText, rank: Rank, srcs: &mut Vec<Place>) -> Result<(), ParseError> {
        let Some((var, from, to)) = &text.each else {
            srcs.push(self.place(text, rank)?);
            return Ok(());
        };
        if self.scope.get(var).is_some() {
            return Err(from.error(Text::new(
                format!("`{var}` 在这里已有含义，请换个名字。"),
                format!("`{var}` has a meaning here already; choose another name."),
            )));
        }
        let depth = self.scope.depth();
        for value in self.eval(from)?..self.eval(to)? {
            self.spend(1, text.range.line, text.range.column)?;
            self.scope.push(var, value);
            srcs.push(self.place(text, rank)?);
            self.scope.truncate(depth);
        }
        Ok(())
    }

    fn place(&self, text: &PlaceText, rank: Rank) -> Result<Place, ParseError> {
        let of = text.of.as_ref().map(|of| self.count(of)).transpose()?.map(Rank);
        Ok(Place { rank: of.filter(|of| *of != rank), range: self.range(&text.range)? })
    }

    fn range(&self, text: &RangeText) -> Result<Range, ParseError> {
        let buffer = match text.buffer.as_str() {
            "input" => Buffer::Input,
            "output" => Buffer::Output,
            name => match self.plan.scratch.iter().zip(0u16..).find(|(scratch, _)| scratch.name == name) {
                Some((_, i)) => Buffer::Scratch(i),
                None => return Err(self.no_buffer(text)),
            },
        };
        let start = self.count(&text.start)?;
        let len = match &text.end {
            None => 1,
            // An end before the start gives length 0, which is refused with both numbers known.
            Some(end) => self.count(end)?.saturating_sub(start),
        };
        Ok(Range { buffer, start, len })
    }

    fn no_buffer(&self, text: &RangeText) -> ParseError {
        let known: Vec<&str> = ["input", "output"]
            .into_iter()
            .chain(self.plan.scratch.iter().map(|s| s.name.as_str()))
            .collect();
        let (list, name) = (known.join(", "), &text.buffer);
        ParseError {
            line: text.line,
            column: text.column,
            message: match super::suggest::closest(name, known.iter().copied()) {
                Some(near) => Text::new(
                    format!("没有缓冲区 `{name}`；是不是 `{near}`？"),
                    format!("there is no buffer `{name}`; did you mean `{near}`?"),
                ),
                None => Text::new(
                    format!("没有缓冲区 `{name}`；可用的有 {list}，或用 `scratch {name} 1` 声明一个。"),
                    format!(
                        "there is no buffer `{name}`; use {list}, or declare one with `scratch {name} 1`."
                    ),
                ),
            },
        }
    }
}
