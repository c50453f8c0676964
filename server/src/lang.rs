//! Which of the two languages a request prefers.

use axum::http::{HeaderMap, header};
use ringlab_labs::text::Lang;

/// From `Accept-Language` (RFC 9110 §12.5.4); English when it names neither, or nothing.
pub fn preferred(headers: &HeaderMap) -> Lang {
    let ranges = headers.get_all(header::ACCEPT_LANGUAGE).iter().filter_map(|v| v.to_str().ok());
    let mut best = (0.0, Lang::En);
    for range in ranges.flat_map(|v| v.split(',')) {
        let mut parts = range.split(';').map(str::trim);
        let tag = parts.next().unwrap_or_default();
        let quality = parts
            .find_map(|p| p.strip_prefix("q="))
            .map_or(1.0, |q| q.parse::<f64>().ok().filter(|q| (0.0..=1.0).contains(q)).unwrap_or(0.0));
        let primary = tag.split('-').next().unwrap_or_default().to_ascii_lowercase();
        if let Some(lang) = Lang::from_code(&primary).filter(|_| quality > best.0) {
            best = (quality, lang);
        }
    }
    best.1
}

/// The language in front of a page's path: `/zh/…`.
pub fn of_path(path: &str) -> Option<Lang> {
    Lang::from_code(path.strip_prefix('/')?.split('/').next()?)
}

/// The language a request to the API comes from: that of the page it was sent by, else what the browser prefers.
pub fn of_request(headers: &HeaderMap) -> Lang {
    let referer = headers.get(header::REFERER).and_then(|v| v.to_str().ok());
    let path =
        referer.and_then(|r| r.split_once("://")).and_then(|(_, rest)| rest.find('/').map(|at| &rest[at..]));
    path.and_then(of_path).unwrap_or_else(|| preferred(headers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_quality_of_the_two_languages_wins() {
        let cases = [
            ("zh-CN,zh;q=0.9,en;q=0.8", Lang::Zh),
            ("en-GB,en;q=0.9,zh;q=0.8", Lang::En),
            ("fr, zh;q=0.3, en;q=0.2", Lang::Zh),
            ("ZH-Hant", Lang::Zh),
            ("zh;q=0, en;q=0.1", Lang::En),
            ("zh;q=nonsense", Lang::En),
            ("*", Lang::En),
            ("", Lang::En),
        ];
        for (value, lang) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_LANGUAGE, value.parse().unwrap());
            assert_eq!(preferred(&headers), lang, "{value}");
        }
    }

    #[test]
    fn the_page_that_asks_sets_the_language() {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT_LANGUAGE, "en".parse().unwrap());
        for (referer, lang) in [
            ("http://a:1/zh/labs/busbw?x=1", Lang::Zh),
            ("http://a:1/zh", Lang::Zh),
            ("http://a:1/zhongwen", Lang::En),
            ("http://a:1", Lang::En),
            ("nonsense", Lang::En),
        ] {
            headers.insert(header::REFERER, referer.parse().unwrap());
            assert_eq!(of_request(&headers), lang, "{referer}");
        }
    }
}
