//! How well two graders agree.

/// Agreement of totals from 0 to 10 between the grader and a reference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Agreement {
    /// Quadratic weighted kappa; 1 when there is nothing to disagree about.
    pub kappa: f64,
    /// Mean absolute error in marks.
    pub mae: f64,
    pub n: usize,
}

/// Of pairs (ours, reference); totals above 10 count as 10.
pub fn agreement(pairs: &[(u32, u32)]) -> Agreement {
    const LEVELS: usize = 11;
    let n = pairs.len();
    let mut observed = [[0.0_f64; LEVELS]; LEVELS];
    let (mut ours, mut theirs) = ([0.0_f64; LEVELS], [0.0_f64; LEVELS]);
    let mut error = 0.0;
    for (a, b) in pairs {
        let (a, b) = ((*a as usize).min(LEVELS - 1), (*b as usize).min(LEVELS - 1));
        observed[a][b] += 1.0;
        ours[a] += 1.0;
        theirs[b] += 1.0;
        error += a.abs_diff(b) as f64;
    }
    let count = n.max(1) as f64;
    let (mut seen, mut expected) = (0.0, 0.0);
    for a in 0..LEVELS {
        for b in 0..LEVELS {
            let weight = (a.abs_diff(b) as f64).powi(2);
            seen += weight * observed[a][b];
            expected += weight * ours[a] * theirs[b] / count;
        }
    }
    let kappa = if expected == 0.0 { 1.0 } else { 1.0 - seen / expected };
    Agreement { kappa, mae: error / count, n }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        assert_eq!(agreement(&[(0, 0), (10, 10), (5, 5)]).kappa, 1.0);
        assert_eq!(agreement(&[(0, 10), (10, 0)]).kappa, -1.0);
        let some = agreement(&[(1, 2), (2, 2), (3, 2), (8, 9)]);
        assert_eq!(some.mae, 0.75);
        assert!(some.kappa > 0.9 && some.kappa < 1.0);
        assert_eq!(agreement(&[]).kappa, 1.0);
    }
}
