//! `check`: arithmetic that is computed again on every build.

use super::Block;
use crate::expr::{Names, evaluate, is_name, number_length};
use crate::html::{escape, push};
use crate::markdown::inline;

impl Block<'_, '_> {
    pub(super) fn check(&mut self) -> String {
        let mut names = Names::new();
        let mut rows = String::new();
        let mut numbers = Vec::new();
        let mut at = 0;
        let body = self.body;
        for line in body.text.split_inclusive('\n') {
            self.line_of_check(line, at, &mut names, &mut numbers, &mut rows);
            at += line.len();
        }
        let is_code = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
        if !body.text.lines().any(is_code) {
            self.problem("a `check` block has lines `expression = value`; this one has none");
        }
        self.outline("check", numbers.join("; "));
        self.state.checks += numbers.len() as u32;
        let label = self.env.pick("可核对的算术", "Checked arithmetic");
        format!(
            "<div class=\"check\" role=\"region\" aria-label=\"{label}\" tabindex=\"0\"><table><caption>{label}</caption><tbody>\n{rows}</tbody></table></div>\n"
        )
    }

    /// One line: `name := expression  # words`, `expression = value unit  # words`, or `# words` alone.
    fn line_of_check(
        &mut self,
        line: &str,
        at: usize,
        names: &mut Names,
        numbers: &mut Vec<String>,
        rows: &mut String,
    ) {
        let (code, words) = match line.find('#') {
            Some(hash) => (&line[..hash], Some(hash + 1)),
            None => (line, None),
        };
        let words = words.map_or_else(String::new, |start| {
            let rest = &line[start..];
            let text = start + rest.len() - rest.trim_start().len();
            let end = (start + rest.trim_end().len()).max(text);
            inline(self.env, self.state, &self.body.slice(at + text..at + end))
        });
        if code.trim().is_empty() {
            if !words.is_empty() {
                push(rows, format_args!("<tr><td colspan=\"3\">{words}</td></tr>\n"));
            }
            return;
        }
        let fail = |this: &mut Self, offset: usize, message: String| {
            this.state.errors.push(this.body.error(at + offset, message))
        };
        let start = code.len() - code.trim_start().len();
        if let Some(set) = code.find(":=") {
            let name = code[..set].trim();
            if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(is_name)
            {
                return fail(
                    self,
                    start,
                    format!("`{name}` is no name: letters, digits and `_`, a letter first"),
                );
            }
            let expression = &code[set + 2..];
            match evaluate(expression, names) {
                Ok(value) => {
                    if names.insert(name.to_owned(), value).is_some() {
                        fail(self, start, format!("`{name}` is set twice in this block; use another name"));
                    }
                    numbers.push(format!("{name} := {}", normal(expression)));
                    row(rows, &format!("{name} := {}", expression.trim()), &plain_number(value), &words);
                }
                Err(error) => fail(self, set + 2 + error.offset, error.message),
            }
            return;
        }
        let Some(equals) = code.find('=') else {
            return fail(
                self,
                start,
                "a line reads `expression = value unit  # words` or `name := expression`".to_owned(),
            );
        };
        let expression = &code[..equals];
        let value_at = equals + 1 + code[equals + 1..].len() - code[equals + 1..].trim_start().len();
        let result = code[value_at..].trim_end();
        let sign = usize::from(result.starts_with('-'));
        let length = sign + number_length(&result[sign..]);
        let written = result[..length].replace('_', "");
        let Ok(value) = written.parse::<f64>() else {
            return fail(
                self,
                value_at,
                format!("after `=` comes a number, not `{result}`; group digits by `_`: 1_048_576"),
            );
        };
        if result[length..].starts_with([',', '.', '=']) {
            return fail(
                self,
                value_at + length,
                "the number ends here; group digits by `_`, and write one `=` in a line".to_owned(),
            );
        }
        numbers.push(format!("{} = {written}", normal(expression)));
        match evaluate(expression, names) {
            Ok(computed) if !matches(computed, value, &written) => {
                let message = format!(
                    "{} is {}, not {written}; mend the figure or the expression",
                    expression.trim(),
                    rounded(computed, &written)
                );
                fail(self, value_at, message);
            }
            Ok(_) => row(rows, expression.trim(), result, &words),
            Err(error) => fail(self, error.offset, error.message),
        }
    }
}

fn row(rows: &mut String, expression: &str, result: &str, words: &str) {
    let pretty = expression.replace('*', "×").replace('-', "−");
    push(
        rows,
        format_args!(
            "<tr><td class=\"expression\"><code>{}</code></td><td class=\"result\">= {}</td><td>{words}</td></tr>\n",
            escape(&pretty),
            escape(result)
        ),
    );
}

/// Without white space, so that the two languages may align differently.
fn normal(expression: &str) -> String {
    expression.split_whitespace().collect()
}

/// Size of one unit in the last digit written: 0.01 for `1.75`, 1 for `14`, 1e7 for `1.23e9`.
fn last_digit(written: &str) -> f64 {
    let (mantissa, exponent) = written.split_once(['e', 'E']).unwrap_or((written, "0"));
    let decimals = mantissa.split_once('.').map_or(0, |(_, decimals)| decimals.len() as i32);
    10_f64.powi(exponent.parse::<i32>().unwrap_or(0) - decimals)
}

/// Whether `value` is `computed`, rounded to the digits written. Halves may go either way; 1e-12 allows for binary fractions.
fn matches(computed: f64, value: f64, written: &str) -> bool {
    (computed - value).abs() <= 0.5 * last_digit(written) + computed.abs() * 1e-12
}

/// `computed` with the digits of `written`, and in full where that hides something.
fn rounded(computed: f64, written: &str) -> String {
    let unit = last_digit(written);
    let decimals = (-unit.log10()).round().clamp(0.0, 15.0) as usize;
    let short = format!("{:.decimals$}", (computed / unit).round() * unit);
    let full = plain_number(computed);
    if short == full { short } else { format!("{short} ({full})") }
}

fn plain_number(value: f64) -> String {
    if value.abs() >= 1e16 || (value != 0.0 && value.abs() < 1e-6) {
        format!("{value:e}")
    } else {
        format!("{value}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_matches_to_the_digits_written() {
        for (computed, written, same) in [
            (1.75, "1.75", true),
            (1.75, "1.8", true),
            (1.75, "1.7", true),
            (1.75, "1.76", false),
            (2.0 / 3.0, "0.667", true),
            (2.0 / 3.0, "0.666", false),
            (14.0, "14", true),
            (14.6, "14", false),
            (1_234_567_890.0, "1.23e9", true),
            (1_234_567_890.0, "1.24e9", false),
            (-0.25, "-0.25", true),
        ] {
            assert_eq!(matches(computed, written.parse().unwrap(), written), same, "{computed} {written}");
        }
        assert_eq!(rounded(2.0 / 3.0, "0.66"), "0.67 (0.6666666666666666)");
        assert_eq!(rounded(14.0, "15"), "14");
    }
}
