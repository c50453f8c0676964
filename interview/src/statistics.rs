//! What many sittings say about a question.

/// One answer as statistics see it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answer {
    pub total: u32,
    pub max: u32,
    /// Of the sitting's other questions; `rest_max` is 0 when there are none.
    pub rest: u32,
    pub rest_max: u32,
    pub seconds: u32,
    /// The grader's total and the instructors', once they confirmed it.
    pub reviewed: Option<(u32, u32)>,
}

/// Mean share of the points, 0 (too hard) to 1.
pub fn facility(answers: &[Answer]) -> Option<f64> {
    let shares: Vec<f64> = answers.iter().filter_map(|a| share(a.total, a.max)).collect();
    mean(&shares)
}

/// Pearson's correlation with the rest of the sitting, the question itself left out: whether those who do well elsewhere do well here.
/// `None` for fewer than two answers, or when one side never varies.
pub fn discrimination(answers: &[Answer]) -> Option<f64> {
    let pairs: Vec<(f64, f64)> =
        answers.iter().filter_map(|a| share(a.total, a.max).zip(share(a.rest, a.rest_max))).collect();
    let (xs, ys): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let (mx, my) = (mean(&xs)?, mean(&ys)?);
    let sum = |f: fn(f64, f64) -> f64| pairs.iter().map(|(x, y)| f(x - mx, y - my)).sum::<f64>();
    let (xy, xx, yy) = (sum(|x, y| x * y), sum(|x, _| x * x), sum(|_, y| y * y));
    // Shares of whole marks differ by far more than this, or not at all.
    (xx > 1e-9 && yy > 1e-9).then(|| xy / (xx * yy).sqrt())
}

/// The lower of the two in the middle, of an even number.
pub fn median_seconds(answers: &[Answer]) -> Option<u32> {
    let mut seconds: Vec<u32> = answers.iter().map(|a| a.seconds).collect();
    seconds.sort_unstable();
    seconds.get(seconds.len().checked_sub(1)? / 2).copied()
}

/// Quadratic weighted kappa of pairs of totals from 0 to 10 (larger ones count as 10): 1 − Σwo/Σwe with w = (a−b)², observed against
/// what the two sides' own frequencies would give by chance. `None` without pairs; 1 when both sides always say the same one total.
pub fn kappa(pairs: &[(u32, u32)]) -> Option<f64> {
    const LEVELS: usize = 11;
    let level = |total: u32| (total as usize).min(LEVELS - 1);
    if pairs.is_empty() {
        return None;
    }
    let (mut left, mut right, mut observed) = ([0.0; LEVELS], [0.0; LEVELS], 0.0);
    let weight = |a: usize, b: usize| (a.abs_diff(b) as f64).powi(2);
    for (a, b) in pairs.iter().map(|(a, b)| (level(*a), level(*b))) {
        left[a] += 1.0;
        right[b] += 1.0;
        observed += weight(a, b);
    }
    let mut expected = 0.0;
    for (a, n) in left.iter().enumerate() {
        for (b, m) in right.iter().enumerate() {
            expected += weight(a, b) * n * m / pairs.len() as f64;
        }
    }
    Some(if expected == 0.0 { 1.0 } else { 1.0 - observed / expected })
}

fn share(total: u32, max: u32) -> Option<f64> {
    (max > 0).then(|| f64::from(total) / f64::from(max))
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(total: u32, rest: u32, seconds: u32) -> Answer {
        Answer { total, max: 10, rest, rest_max: 20, seconds, reviewed: None }
    }

    fn close(a: Option<f64>, b: f64) {
        assert!(a.is_some_and(|a| (a - b).abs() < 1e-9), "{a:?} instead of {b}");
    }

    #[test]
    fn facility_is_the_mean_share() {
        close(facility(&[answer(2, 0, 0), answer(6, 0, 0), answer(10, 0, 0)]), 0.6);
        assert_eq!(facility(&[]), None);
    }

    #[test]
    fn discrimination_is_the_correlation_with_the_rest() {
        // Shares 0.2, 0.4, 0.9 (mean 0.5: −0.3, −0.1, 0.4) and 0.1, 0.5, 0.6 (mean 0.4: −0.3, 0.1, 0.2):
        // 0.09 − 0.01 + 0.08 = 0.16; squares 0.26 and 0.14; 0.16 / √0.0364.
        let answers = [answer(2, 2, 0), answer(4, 10, 0), answer(9, 12, 0)];
        close(discrimination(&answers), 0.16 / 0.0364_f64.sqrt());
        close(discrimination(&[answer(1, 20, 0), answer(2, 10, 0), answer(3, 0, 0)]), -1.0);
        assert_eq!(discrimination(&[answer(5, 3, 0), answer(5, 9, 0)]), None, "the same for all");
        assert_eq!(discrimination(&[answer(5, 3, 0)]), None);
        let alone = Answer { rest_max: 0, ..answer(5, 0, 0) };
        assert_eq!(discrimination(&[alone, alone]), None, "nothing else was asked");
    }

    #[test]
    fn the_median_is_a_time_that_someone_took() {
        let of =
            |seconds: &[u32]| median_seconds(&seconds.iter().map(|s| answer(0, 0, *s)).collect::<Vec<_>>());
        assert_eq!((of(&[]), of(&[7]), of(&[9, 1, 5]), of(&[4, 1, 9, 5])), (None, Some(7), Some(5), Some(4)));
    }

    #[test]
    fn kappa_weighs_disagreement_by_its_square() {
        // (0,0) (2,2) (4,2): observed 4. Left 0, 2, 4 and right 0, 2, 2, once each: the nine squares are 0+4+4 + 4+0+0 + 16+4+4 = 36;
        // by three pairs 12. 1 − 4/12.
        close(kappa(&[(0, 0), (2, 2), (4, 2)]), 2.0 / 3.0);
        close(kappa(&[(0, 10), (10, 0)]), -1.0);
        close(kappa(&[(3, 3), (8, 8)]), 1.0);
        close(kappa(&[(5, 5), (5, 5)]), 1.0);
        close(kappa(&[(12, 10), (0, 0)]), 1.0);
        assert_eq!(kappa(&[]), None);
    }
}
