//! Files a page refers to, built into the program. The server hands them out under `/assets/`; an URL made by [`url`] carries the
//! content's hash, so it may be cached for ever.

use std::sync::LazyLock;

/// A static file.
#[derive(Debug, Clone, Copy)]
pub struct Asset {
    /// Below `/assets/`.
    pub path: &'static str,
    pub media_type: &'static str,
    pub bytes: &'static [u8],
}

/// One file per component, in the order of the cascade.
const STYLE: &str = concat!(
    include_str!("../assets/css/theme.css"),
    include_str!("../assets/css/base.css"),
    include_str!("../assets/css/shell.css"),
    include_str!("../assets/css/prose.css"),
    include_str!("../assets/css/content.css"),
    include_str!("../assets/code.css"),
    include_str!("../assets/css/cards.css"),
    include_str!("../assets/css/chapter.css"),
    include_str!("../assets/css/reader.css"),
    include_str!("../assets/css/forms.css"),
    include_str!("../assets/css/quiz.css"),
    include_str!("../assets/css/lab.css"),
    include_str!("../assets/css/run.css"),
    include_str!("../assets/css/timeline.css"),
    include_str!("../assets/css/widgets.css"),
    include_str!("../assets/css/sitting.css"),
    include_str!("../assets/css/report.css"),
    include_str!("../assets/css/reference.css"),
    include_str!("../assets/css/print.css"),
);

macro_rules! fonts {
    ($($name:literal)*) => {
        [$(Asset {
            path: concat!("katex/fonts/KaTeX_", $name, ".woff2"),
            media_type: "font/woff2",
            bytes: include_bytes!(concat!("../assets/katex/fonts/KaTeX_", $name, ".woff2")),
        }),*]
    };
}

static FONTS: [Asset; 20] = fonts!(
    "AMS-Regular" "Caligraphic-Bold" "Caligraphic-Regular" "Fraktur-Bold" "Fraktur-Regular" "Main-Bold" "Main-BoldItalic" "Main-Italic"
    "Main-Regular" "Math-BoldItalic" "Math-Italic" "SansSerif-Bold" "SansSerif-Italic" "SansSerif-Regular" "Script-Regular"
    "Size1-Regular" "Size2-Regular" "Size3-Regular" "Size4-Regular" "Typewriter-Regular"
);

const CSS: &str = "text/css; charset=utf-8";

static TEXTS: [Asset; 4] = [
    Asset { path: "ringlab.css", media_type: CSS, bytes: STYLE.as_bytes() },
    Asset {
        path: "katex/katex.min.css",
        media_type: CSS,
        bytes: include_bytes!("../assets/katex/katex.min.css"),
    },
    Asset {
        path: "site.js",
        media_type: "text/javascript; charset=utf-8",
        bytes: include_bytes!("../assets/js/site.js"),
    },
    Asset {
        path: "favicon.svg",
        media_type: "image/svg+xml",
        bytes: include_bytes!("../assets/favicon.svg"),
    },
];

/// All files below `/assets/`.
pub fn assets() -> &'static [Asset] {
    static ALL: LazyLock<Vec<Asset>> = LazyLock::new(|| TEXTS.iter().chain(&FONTS).copied().collect());
    &ALL
}

/// URL of an asset with its content hash.
///
/// # Panics
/// When there is no such asset: paths are literals of this crate.
pub fn url(path: &str) -> &'static str {
    static URLS: LazyLock<Vec<(&str, String)>> = LazyLock::new(|| {
        TEXTS.iter().map(|a| (a.path, format!("/assets/{}?v={:016x}", a.path, fnv(a.bytes)))).collect()
    });
    let found = URLS.iter().find(|(name, _)| *name == path);
    &found.expect("a page refers only to files of this module").1
}

/// FNV-1a, 64 bits: tells two versions apart, no more.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_font_the_formula_style_asks_for_is_here() {
        let style = std::str::from_utf8(
            TEXTS.iter().find(|a| a.path == "katex/katex.min.css").expect("listed above").bytes,
        )
        .expect("CSS is UTF-8");
        let wanted: Vec<&str> =
            style.split("url(").skip(1).map(|rest| rest.split(')').next().expect("closed")).collect();
        let woff2: Vec<&&str> = wanted.iter().filter(|name| name.ends_with(".woff2")).collect();
        assert!(woff2.len() >= 20);
        for name in woff2 {
            assert!(assets().iter().any(|a| a.path == format!("katex/{name}")), "{name} is not embedded");
        }
    }

    #[test]
    fn paths_are_unique() {
        let mut paths: Vec<_> = assets().iter().map(|a| a.path).collect();
        paths.sort_unstable();
        let all = paths.len();
        paths.dedup();
        assert_eq!(paths.len(), all);
    }

    #[test]
    fn braces_of_the_style_sheet_balance() {
        let depth = STYLE.chars().try_fold(0i32, |depth, c| match c {
            '{' => Some(depth + 1),
            '}' if depth == 0 => None,
            '}' => Some(depth - 1),
            _ => Some(depth),
        });
        assert_eq!(depth, Some(0));
    }
}
