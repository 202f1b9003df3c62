//! The labels of an axis, and the places of values on it.

/// The vertical axis of a panel.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Scale {
    /// From zero.
    Linear,
    /// Powers of ten, from 0.1.
    Logarithmic,
}

impl Scale {
    /// The labels, of which the first and the last one are the ends of the axis.
    pub(super) fn labels(self, largest: f64) -> Vec<f64> {
        let step = step(largest.max(1.0) / 4.0);
        let mut labels = vec![if self == Self::Linear { 0.0 } else { 0.1 }];
        while let Some(last) = labels.last()
            && (labels.len() < 2 || *last < largest)
        {
            labels.push(match self {
                Self::Linear => last + step,
                Self::Logarithmic => (last * 100.0).round() / 10.0,
            });
        }
        labels
    }

    /// The place of a value: 0 at the first label, 1 at the last one.
    pub(super) fn place(self, value: f64, labels: &[f64]) -> f64 {
        let end = labels.last().copied().unwrap_or(1.0);
        match self {
            Self::Linear => value / end,
            Self::Logarithmic => (value.max(0.1) / 0.1).log10() / (end / 0.1).log10(),
        }
    }
}

/// The smallest of 1, 2, 5, 10, 20, … (or tenths of them) that is not below `least`.
pub(super) fn step(least: f64) -> f64 {
    let mut step = 0.1;
    for factor in [2.0, 2.5, 2.0].iter().cycle().take(30) {
        if step >= least {
            break;
        }
        step *= factor;
    }
    (step * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_round_numbers() {
        let steps = [0.05, 0.3, 0.9, 3.0, 12.0, 60.0, 700.0];
        let steps = steps.map(|least| step(least).to_string());
        assert_eq!(steps, ["0.1", "0.5", "1", "5", "20", "100", "1000"]);
    }

    #[test]
    fn labels_reach_the_largest_value() {
        assert_eq!(Scale::Linear.labels(23.0), [0.0, 10.0, 20.0, 30.0]);
        assert_eq!(Scale::Linear.labels(0.0), [0.0, 0.5]);
        assert_eq!(Scale::Logarithmic.labels(30.0), [0.1, 1.0, 10.0, 100.0]);
        let labels = [0.1, 1.0, 10.0];
        assert!((Scale::Logarithmic.place(1.0, &labels) - 0.5).abs() < 1e-9);
    }
}
