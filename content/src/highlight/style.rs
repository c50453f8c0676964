//! The colours of code in both themes, as the style sheet that `web` ships: `web/assets/code.css`.

use crate::html::push;

use super::Class;

/// Class, colour on light paper, colour on dark. The test holds their contrast against every background of the theme.
const COLOURS: [(Class, &str, &str); 9] = [
    (Class::Comment, "#57606a", "#8b949e"),
    (Class::String, "#0a5c2f", "#7ee2a8"),
    (Class::Number, "#0550ae", "#79c0ff"),
    (Class::Keyword, "#a40e26", "#ff8f87"),
    (Class::Type, "#7a3e00", "#ffb77c"),
    (Class::Function, "#6639ba", "#d2a8ff"),
    (Class::Constant, "#0550ae", "#79c0ff"),
    (Class::Attribute, "#8a4600", "#f2cc60"),
    (Class::Cuda, "#00665e", "#4ed8c7"),
];

/// The whole style sheet. `ringlab-content-check --write-css FILE` writes it.
///
/// The theme is the page's `color-scheme`, as for every other colour of the site.
pub fn style_sheet() -> String {
    let mut css = String::from(
        "/* Written by ringlab-content-check --write-css. Change content/src/highlight/style.rs instead. */\n",
    );
    for (class, light, dark) in COLOURS {
        push(&mut css, format_args!(".{} {{ color: light-dark({light}, {dark}); }}\n", class.name()));
    }
    css.push_str(".hl-c { font-style: italic; }\n");
    // Paper takes no colours from a screen's theme.
    css.push_str("@media print { [class^=\"hl-\"] { color: inherit; } }\n");
    css
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance as WCAG 2 defines it.
    fn luminance(hex: &str) -> f64 {
        let channel = |i: usize| {
            let value = f64::from(u8::from_str_radix(&hex[i..i + 2], 16).unwrap()) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a) + 0.05, luminance(b) + 0.05);
        a.max(b) / a.min(b)
    }

    #[test]
    fn code_can_be_read_in_both_themes() {
        // `--paper`, `--surface` and `--raised` of web/assets/css/theme.css.
        for (light_paper, dark_paper) in
            [("#fbfaf5", "#14191b"), ("#f2efe6", "#1c2326"), ("#ffffff", "#20282b")]
        {
            for (class, light, dark) in COLOURS {
                assert!(
                    contrast(light, light_paper) >= 4.5,
                    "{class:?} on {light_paper}: {}",
                    contrast(light, light_paper)
                );
                assert!(
                    contrast(dark, dark_paper) >= 4.5,
                    "{class:?} on {dark_paper}: {}",
                    contrast(dark, dark_paper)
                );
            }
        }
    }

    #[test]
    fn the_shipped_style_sheet_is_the_generated_one() {
        let shipped = include_str!("../../../web/assets/code.css");
        assert_eq!(
            shipped,
            style_sheet(),
            "run `cargo run -p ringlab-content --bin ringlab-content-check -- --write-css web/assets/code.css`"
        );
    }
}
