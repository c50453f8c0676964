//! Numbers and formulae as values: `2(N-1)/N·S` is `2S(N−1)/N` is `2S - 2S/N`, and 1.75 GiB is 1792 MiB.
//!
//! Two formulae are equal when they agree for several values of their variables. A part of a longer formula counts as well: the answer
//! `2(N-1)α + 2(N-1)/N·M/B` holds `2(N-1)/N`.

use std::collections::BTreeSet;

use super::names::Names;
use super::normal::Normal;
use super::scan::Scanner;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expr {
    /// With its unit; the value is in bytes, bytes a second or seconds then.
    Number(f64, Option<Unit>),
    Name(String),
    Sum(Vec<Expr>),
    Minus(Box<Expr>),
    Product(Vec<Expr>),
    Inverse(Box<Expr>),
    Power(Box<Expr>, Box<Expr>),
    Log(Box<Expr>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Bytes,
    Rate,
    Time,
}

/// What a pattern's `{…}` asks for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// `{160}`, `{512 KiB}`
    Number(f64, Option<Unit>),
    /// `{2(N-1)/N}`
    Formula(Expr),
    /// `{x*y*z = size}`: numbers of the answer for which this holds. Names that begin with `size`, `rate` or `time` stand for
    /// quantities in bytes, bytes a second and seconds.
    Relation(Expr, Expr),
}

/// Reads what stands between the braces of a pattern.
pub(crate) fn value(text: &str) -> Result<Value, String> {
    let read = |text: &str| {
        let normal = Normal::new(text);
        let none = Names::default();
        let mut scanner = Scanner::new(&normal.chars, &none);
        let expr =
            scanner.expression().ok_or_else(|| format!("`{}` cannot be read as a formula", text.trim()))?;
        match scanner.rest().trim() {
            "" => Ok(expr),
            rest => Err(format!(
                "`{rest}` is left over in the formula `{}`; write `*` between names",
                text.trim()
            )),
        }
    };
    match text.split_once('=') {
        Some((left, right)) => {
            let (left, right) = (read(left)?, read(right)?);
            if left.names().len() > 4 || !matches!(right, Expr::Name(_) | Expr::Number(..)) {
                return Err(
                    "a relation has at most four names on the left and one name or number on the right"
                        .to_owned(),
                );
            }
            Ok(Value::Relation(left, right))
        }
        None => Ok(match read(text)? {
            Expr::Number(value, unit) => Value::Number(value, unit),
            expr => match expr.constant() {
                Some(value) => Value::Number(value, None),
                None => Value::Formula(expr),
            },
        }),
    }
}

impl Expr {
    pub fn names(&self) -> BTreeSet<&str> {
        let mut names = BTreeSet::new();
        self.each(&mut |expr| {
            if let Expr::Name(name) = expr {
                names.insert(name.as_str());
            }
        });
        names
    }

    fn each<'a>(&'a self, see: &mut impl FnMut(&'a Expr)) {
        see(self);
        match self {
            Expr::Number(..) | Expr::Name(_) => {}
            Expr::Sum(parts) | Expr::Product(parts) => parts.iter().for_each(|part| part.each(see)),
            Expr::Minus(part) | Expr::Inverse(part) | Expr::Log(part) => part.each(see),
            Expr::Power(a, b) => {
                a.each(see);
                b.each(see);
            }
        }
    }

    /// The value under an assignment; `None` for an unknown name or no finite result.
    pub fn eval(&self, of: &dyn Fn(&str) -> Option<f64>) -> Option<f64> {
        let value = match self {
            Expr::Number(value, _) => *value,
            Expr::Name(name) => of(name)?,
            Expr::Sum(parts) => parts.iter().try_fold(0.0, |sum, part| Some(sum + part.eval(of)?))?,
            Expr::Minus(part) => -part.eval(of)?,
            Expr::Product(parts) => {
                parts.iter().try_fold(1.0, |product, part| Some(product * part.eval(of)?))?
            }
            Expr::Inverse(part) => 1.0 / part.eval(of)?,
            Expr::Power(a, b) => a.eval(of)?.powf(b.eval(of)?),
            Expr::Log(part) => part.eval(of)?.log2(),
        };
        value.is_finite().then_some(value)
    }

    pub fn constant(&self) -> Option<f64> {
        self.eval(&|_| None)
    }

    /// The unit of a number, or of a product: 1 GiB / (50 GB/s) is a time.
    pub fn unit(&self) -> Option<Unit> {
        match self {
            Expr::Number(_, unit) => *unit,
            Expr::Product(_) | Expr::Inverse(_) => match self.powers()? {
                (1, 0) => Some(Unit::Bytes),
                (1, -1) => Some(Unit::Rate),
                (0, 1) => Some(Unit::Time),
                _ => None,
            },
            _ => None,
        }
    }

    /// Powers of bytes and of seconds.
    fn powers(&self) -> Option<(i32, i32)> {
        match self {
            Expr::Number(_, unit) => Some(match unit {
                None => (0, 0),
                Some(Unit::Bytes) => (1, 0),
                Some(Unit::Rate) => (1, -1),
                Some(Unit::Time) => (0, 1),
            }),
            Expr::Product(parts) => parts.iter().try_fold((0, 0), |sum, part| {
                let (bytes, seconds) = part.powers()?;
                Some((sum.0 + bytes, sum.1 + seconds))
            }),
            Expr::Inverse(part) => part.powers().map(|(bytes, seconds)| (-bytes, -seconds)),
            Expr::Sum(parts) => {
                let first = parts.first()?.powers()?;
                parts.iter().all(|part| part.powers() == Some(first)).then_some(first)
            }
            Expr::Minus(part) => part.powers(),
            _ => None,
        }
    }

    /// Calls `see` with this expression, its parts, and runs of neighbouring terms or factors.
    fn parts(&self, see: &mut impl FnMut(&Expr) -> bool) -> bool {
        if see(self) {
            return true;
        }
        match self {
            Expr::Number(..) | Expr::Name(_) => false,
            Expr::Sum(parts) | Expr::Product(parts) => {
                let product = matches!(self, Expr::Product(_));
                let runs = (0..parts.len()).flat_map(|from| (from + 2..=parts.len()).map(move |to| from..to));
                for run in runs.filter(|run| run.len() < parts.len()).take(64) {
                    let slice = parts[run].to_vec();
                    if see(&if product { Expr::Product(slice) } else { Expr::Sum(slice) }) {
                        return true;
                    }
                }
                parts.iter().any(|part| part.parts(see))
            }
            Expr::Minus(part) | Expr::Inverse(part) | Expr::Log(part) => part.parts(see),
            Expr::Power(a, b) => a.parts(see) || b.parts(see),
        }
    }

    /// Whether this expression of an answer is, or holds, the wanted formula.
    pub fn holds(&self, wanted: &Expr) -> bool {
        let names = wanted.names();
        if !names.iter().all(|name| self.names().contains(name)) {
            return false;
        }
        let target: Option<Vec<f64>> =
            (0..3).map(|round| wanted.eval(&|name| Some(sample(name, round)))).collect();
        let Some(target) = target else { return false };
        let equal = |part: &Expr| {
            target.iter().enumerate().all(|(round, wanted)| {
                part.eval(&|name| Some(sample(name, round))).is_some_and(|value| near(value, *wanted, 1e-9))
            })
        };
        self.parts(&mut |part| {
            equal(part) || part.without_other_factors(&names).is_some_and(|part| equal(&part))
        })
    }

    /// `2S(N-1)/N` without S, when only N is asked for.
    fn without_other_factors(&self, names: &BTreeSet<&str>) -> Option<Expr> {
        let Expr::Product(parts) = self else { return None };
        let kept: Vec<Expr> = parts
            .iter()
            .filter(|part| part.names().iter().all(|name| names.contains(name)))
            .cloned()
            .collect();
        (kept.len() < parts.len()).then_some(Expr::Product(kept))
    }

    /// Whether this expression is, or holds, this number.
    pub fn holds_number(&self, wanted: f64, unit: Option<Unit>) -> bool {
        let tolerance = if unit == Some(Unit::Bytes) { 0.06 } else { 0.005 };
        self.parts(&mut |part| {
            let fits = part.unit() == unit
                || (unit.is_some() && part.unit().is_none() && !matches!(part, Expr::Number(..)));
            fits && part.constant().is_some_and(|value| near(value, wanted, tolerance))
        })
    }
}

/// A value for a name: fixed, positive, different for every name and round.
fn sample(name: &str, round: usize) -> f64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325 ^ (round as u64 + 1);
    for byte in name.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    2.0 + (hash >> 40) as f64 / (1_u64 << 24) as f64 * 9.0
}

fn near(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * a.abs().max(b.abs()).max(1e-300)
}

/// A number of the answer that can stand for a name in a relation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Known {
    pub value: f64,
    pub unit: Option<Unit>,
    /// Which expression of the answer it came from; `usize::MAX` for one that words imply (bf16 is 2 bytes).
    pub source: usize,
}

/// The sources of numbers for which `left = right` holds.
pub(crate) fn solve(left: &Expr, right: &Expr, known: &[Known]) -> Option<Vec<usize>> {
    let names: Vec<&str> = left.names().into_iter().collect();
    let mut chosen = Vec::with_capacity(names.len());
    choose(left, right, known, &names, &mut chosen)
}

fn choose(
    left: &Expr,
    right: &Expr,
    known: &[Known],
    names: &[&str],
    chosen: &mut Vec<usize>,
) -> Option<Vec<usize>> {
    let Some(name) = names.get(chosen.len()) else {
        return settle(left, right, known, names, chosen);
    };
    for (i, candidate) in known.iter().enumerate() {
        if chosen.contains(&i) || !fits(name, candidate) {
            continue;
        }
        chosen.push(i);
        let found = choose(left, right, known, names, chosen);
        if found.is_some() {
            return found;
        }
        chosen.pop();
    }
    None
}

fn fits(name: &str, known: &Known) -> bool {
    if name.starts_with("size") {
        return known.unit == Some(Unit::Bytes) && known.value >= 256.0;
    }
    if name.starts_with("rate") {
        return known.unit == Some(Unit::Rate);
    }
    if name.starts_with("time") {
        return known.unit == Some(Unit::Time);
    }
    let small = known.unit == Some(Unit::Bytes) && known.value <= 16.0;
    (known.unit.is_none() || small) && known.value != 1.0 && known.value > 0.0
}

fn settle(
    left: &Expr,
    right: &Expr,
    known: &[Known],
    names: &[&str],
    chosen: &[usize],
) -> Option<Vec<usize>> {
    let of = |name: &str| names.iter().position(|n| *n == name).map(|i| known[chosen[i]].value);
    let value = left.eval(&of)?;
    let mut sources: Vec<usize> = chosen.iter().map(|i| known[*i].source).collect();
    match right {
        Expr::Number(wanted, _) => near(value, *wanted, 0.01).then_some(sources),
        Expr::Name(name) => {
            let result = known.iter().enumerate().find(|(i, candidate)| {
                // A GB is 10^9 bytes to one and 2^30 to another.
                let tolerance = match candidate.unit {
                    Some(Unit::Rate | Unit::Time) => 0.08,
                    Some(Unit::Bytes) => 0.06,
                    None => 0.03,
                };
                !chosen.contains(i) && fits(name, candidate) && near(value, candidate.value, tolerance)
            })?;
            sources.push(result.1.source);
            Some(sources)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grade::names::Spellings;
    use crate::grade::scan::find;

    fn names() -> Names {
        let spell = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect();
        Names::new(&Spellings::from([
            ("N".to_owned(), spell(&["N", "n", "p", "world size"])),
            ("M".to_owned(), spell(&["M", "S", "message size", "字节数"])),
            ("B".to_owned(), spell(&["B", "W", "路宽", "bandwidth"])),
            ("alpha".to_owned(), spell(&["α", "alpha", "起步价"])),
        ]))
    }

    fn holds(answer: &str, wanted: &str) -> bool {
        let normal = Normal::new(answer);
        let found = find(&normal.chars, &names());
        match value(wanted).unwrap() {
            Value::Formula(expr) => found.iter().any(|f| f.expr.holds(&expr)),
            Value::Number(number, unit) => found.iter().any(|f| f.expr.holds_number(number, unit)),
            Value::Relation(..) => false,
        }
    }

    #[test]
    fn a_formula_is_its_value() {
        for text in [
            "2(N-1)/N·S",
            "2S(N−1)/N",
            "系数是 2*(n-1)/n",
            "2-2/p 倍",
            "2(p-1)α+2(p-1)/p·M/B",
            "2 × (N - 1) ÷ N",
            r"$\frac{2(N-1)}{N}$",
            r"\dfrac{2(N - 1)}{N} \cdot S",
            r"2\cdot\frac{N-1}{N}\cdot M",
            r"2 \times \left(N-1\right) / N",
            r"$$2(p-1)\alpha + 2\,\frac{p-1}{p}\cdot\frac{M}{B}$$",
            r"2\frac{N-1}{N}M",
        ] {
            assert!(holds(text, "2(N-1)/N"), "{text}");
        }
        assert!(!holds("(N-1)/N", "2(N-1)/N"));
        assert!(!holds("(p-1)×M", "2(N-1)/N"));
        assert!(holds("T = alpha + M/B", "alpha + M/B"));
        assert!(holds("起步价 + 字节数 ÷ 路宽 W", "M/B"));
        assert!(holds("α×B 持平，αB", "alpha*B"));
        assert!(holds("2·log2N·α", "2*log(N)*alpha"));
        assert!(holds("2 log p", "log(N)"));
        assert!(holds(r"\alpha + \frac{M}{B}", "alpha + M/B"));
        assert!(holds(r"\frac12 \cdot 320", "160"));
        assert!(holds(r"2\log_2 N \cdot \alpha", "2*log(N)*alpha"));
    }

    #[test]
    fn relations_hold_between_quantities() {
        let related = |answer: &str, wanted: &str| {
            let normal = Normal::new(answer);
            let Value::Relation(left, right) = value(wanted).unwrap() else { return false };
            let mut known = Vec::new();
            for (source, found) in find(&normal.chars, &names()).iter().enumerate() {
                known.extend(
                    found.expr.unit().or(Some(Unit::Bytes)).and(found.expr.constant()).map(|value| Known {
                        value,
                        unit: found.expr.unit(),
                        source,
                    }),
                );
            }
            solve(&left, &right, &known).is_some()
        };
        for text in ["1 GB 走 100 GB/s 要 10 ms", "1 GB at 100 GB/s takes 10 ms"] {
            assert!(related(text, "size/rate = time"), "{text}");
        }
        assert!(!related("1 GB 走 100 GB/s 要 40 ms", "size/rate = time"));
        assert!(related("8 张卡每张 50 GB/s，合计 400 GB/s", "x*rate = rateall"));
        assert!(related("16 steps of 5 us each, 80 microseconds in all", "x*time = timeall"));
    }

    #[test]
    fn numbers_carry_their_units() {
        assert!(holds("1.75 GiB", "1792 MiB"));
        assert!(holds("80×2=160", "160"));
        assert!(holds("一百六十回", "160"));
        assert!(!holds("160 GB/s", "160"));
        assert!(holds("半兆的小活", "512 KiB"));
        assert!(holds("1,024 个", "1024"));
    }
}
