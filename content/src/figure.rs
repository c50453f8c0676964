//! Drawings: `fig/name.svg`, checked element by element and written out again as inline SVG.
//!
//! What comes out is built from an allow-list, so a script, an event handler or a reference to another document cannot come through:
//! it is an error with its place. Colours come from the theme; words in `{{key}}` from `fig/name.toml`.

use std::collections::{BTreeMap, BTreeSet};

use ringlab_engine::text::Lang;
use roxmltree::{Attribute, Document, Node, NodeType};
use serde::Deserialize;

use crate::error::ContentError;
use crate::html::{push, push_escaped};
use crate::source::SourceFile;

const SVG: &str = "http://www.w3.org/2000/svg";

const ELEMENTS: [&str; 21] = [
    "svg",
    "g",
    "defs",
    "title",
    "desc",
    "path",
    "rect",
    "circle",
    "ellipse",
    "line",
    "polyline",
    "polygon",
    "text",
    "tspan",
    "marker",
    "linearGradient",
    "radialGradient",
    "stop",
    "clipPath",
    "pattern",
    "use",
];

/// Besides `data-*` and `aria-*`.
const ATTRIBUTES: [&str; 72] = [
    "id",
    "class",
    "transform",
    "d",
    "x",
    "y",
    "x1",
    "y1",
    "x2",
    "y2",
    "cx",
    "cy",
    "r",
    "rx",
    "ry",
    "dx",
    "dy",
    "width",
    "height",
    "points",
    "viewBox",
    "preserveAspectRatio",
    "fill",
    "fill-opacity",
    "fill-rule",
    "stroke",
    "stroke-width",
    "stroke-opacity",
    "stroke-linecap",
    "stroke-linejoin",
    "stroke-miterlimit",
    "stroke-dasharray",
    "stroke-dashoffset",
    "opacity",
    "visibility",
    "font-family",
    "font-size",
    "font-style",
    "font-weight",
    "letter-spacing",
    "text-anchor",
    "text-decoration",
    "dominant-baseline",
    "alignment-baseline",
    "baseline-shift",
    "rotate",
    "textLength",
    "lengthAdjust",
    "clip-path",
    "clip-rule",
    "marker-start",
    "marker-mid",
    "marker-end",
    "markerWidth",
    "markerHeight",
    "markerUnits",
    "orient",
    "refX",
    "refY",
    "offset",
    "stop-color",
    "stop-opacity",
    "gradientUnits",
    "gradientTransform",
    "spreadMethod",
    "patternUnits",
    "patternTransform",
    "patternContentUnits",
    "clipPathUnits",
    "vector-effect",
    "paint-order",
    "href",
];

const PAINTS: [&str; 3] = ["fill", "stroke", "stop-color"];

/// The words of a drawing in both languages.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Words {
    #[serde(default)]
    zh: BTreeMap<String, String>,
    #[serde(default)]
    en: BTreeMap<String, String>,
}

/// The inline `<svg>` of a drawing. `name` prefixes every id in it, so that two drawings on one page do not clash.
///
/// `words` is `fig/name.toml`, when there is one; `alt` becomes the accessible name.
pub(crate) fn inline(
    name: &str,
    svg: &SourceFile,
    words: Option<&SourceFile>,
    lang: Lang,
    alt: &str,
    errors: &mut Vec<ContentError>,
) -> String {
    let document = match Document::parse(&svg.text) {
        Ok(document) => document,
        Err(error) => {
            let at = error.pos();
            let mut problem = svg.error(0, format!("this is not well-formed SVG: {error}"));
            (problem.line, problem.column) = (at.row, at.col);
            errors.push(problem);
            return String::new();
        }
    };
    let mut writer = Writer {
        name,
        svg,
        table: words.map(|file| language_table(file, lang, errors)).unwrap_or_default(),
        words_file: words.map_or_else(|| svg.path.replace(".svg", ".toml"), |file| file.path.clone()),
        used: BTreeSet::new(),
        errors,
        out: String::new(),
    };
    let root = document.root_element();
    writer.check_root(root);
    writer.element(root, Some(alt), 0);
    let unused: Vec<String> =
        writer.table.keys().filter(|key| !writer.used.contains(*key)).cloned().collect();
    let out = writer.out;
    for key in unused {
        let file = words.map_or(&svg.path, |file| &file.path);
        let message = format!("`{key}` is not used in {}; use it as {{{{{key}}}}} or delete it", svg.path);
        errors.push(ContentError::of_file(file.clone(), message));
    }
    out
}

fn language_table(file: &SourceFile, lang: Lang, errors: &mut Vec<ContentError>) -> BTreeMap<String, String> {
    let words: Words = match file.whole().toml("the figure's words") {
        Ok(words) => words,
        Err(error) => {
            errors.push(error);
            return BTreeMap::new();
        }
    };
    let (mine, other) = match lang {
        Lang::Zh => (words.zh, words.en),
        Lang::En => (words.en, words.zh),
    };
    for key in other.keys().filter(|key| !mine.contains_key(*key)) {
        let message = format!("`{key}` is missing in [{}]; give every key in both languages", lang.code());
        errors.push(ContentError::of_file(file.path.clone(), message));
    }
    mine
}

struct Writer<'a> {
    name: &'a str,
    svg: &'a SourceFile,
    table: BTreeMap<String, String>,
    words_file: String,
    used: BTreeSet<String>,
    errors: &'a mut Vec<ContentError>,
    out: String,
}

impl Writer<'_> {
    fn problem(&mut self, at: usize, message: impl Into<String>) {
        self.errors.push(self.svg.error(at, message));
    }

    fn check_root(&mut self, root: Node<'_, '_>) {
        let at = root.range().start;
        if root.tag_name().name() != "svg" {
            self.problem(at, "the outermost element must be `svg`");
        }
        if root.attribute("viewBox").and_then(view_width).is_none() {
            self.problem(
                at,
                "give the drawing a `viewBox=\"0 0 WIDTH HEIGHT\"`, so that it can shrink on a narrow screen",
            );
        }
        let title = root.children().find(|child| child.has_tag_name((SVG, "title")));
        if title.and_then(|title| title.text()).is_none_or(|text| text.trim().is_empty()) {
            self.problem(
                at,
                "the first thing in a drawing is `<title>` with its name, usually `<title>{{title}}</title>`",
            );
        }
    }

    /// `alt` is given for the outermost element alone.
    fn element(&mut self, node: Node<'_, '_>, alt: Option<&str>, depth: u32) {
        let tag = node.tag_name();
        let at = node.range().start;
        if depth > 32 {
            return self.problem(at, "elements are nested deeper than 32 levels; flatten the drawing");
        }
        if tag.namespace() != Some(SVG)
            || !ELEMENTS.contains(&tag.name())
            || (tag.name() == "svg" && alt.is_none())
        {
            let message = format!(
                "`<{}>` is not allowed in a drawing; allowed: {}",
                tag.name(),
                ELEMENTS[1..].join(" ")
            );
            return self.problem(at, message);
        }
        push(&mut self.out, format_args!("<{}", tag.name()));
        if let Some(alt) = alt {
            self.out.push_str(" role=\"img\" aria-label=\"");
            push_escaped(&mut self.out, alt);
            self.out.push('"');
            if let Some(width) = node.attribute("viewBox").and_then(view_width) {
                push(&mut self.out, format_args!(" width=\"{width}\""));
            }
            if node.attribute("fill").is_none() {
                self.out.push_str(" fill=\"currentColor\"");
            }
        }
        for attribute in node.attributes() {
            // The width is the viewBox's, the height follows from it.
            if alt.is_none()
                || !matches!(attribute.name(), "width" | "height" | "role" | "aria-label" | "aria-labelledby")
            {
                self.attribute(attribute);
            }
        }
        if !node.has_children() {
            return self.out.push_str("/>");
        }
        self.out.push('>');
        for child in node.children() {
            match child.node_type() {
                NodeType::Element => self.element(child, None, depth + 1),
                NodeType::Text => self.words(child.text().unwrap_or(""), child.range().start),
                NodeType::Comment => {}
                NodeType::PI | NodeType::Root => {
                    self.problem(child.range().start, "processing instructions are not allowed here")
                }
            }
        }
        push(&mut self.out, format_args!("</{}>", tag.name()));
    }

    fn attribute(&mut self, attribute: Attribute<'_, '_>) {
        let (name, value, at) = (attribute.name(), attribute.value().trim(), attribute.range().start);
        let known = ATTRIBUTES.contains(&name) || name.starts_with("data-") || name.starts_with("aria-");
        // Editors write `xlink:href`; it means `href`.
        if !known || attribute.namespace().is_some_and(|space| !(name == "href" && space.ends_with("/xlink")))
        {
            let hint = match name {
                "style" => "; write presentation attributes instead: fill, stroke, font-size, …",
                _ if name.starts_with("on") => "; a drawing does nothing by itself, use a `widget` block",
                _ => "; delete it",
            };
            return self.problem(at, format!("attribute `{name}` is not allowed in a drawing{hint}"));
        }
        let lower = value.to_ascii_lowercase();
        if lower.contains("url(")
            && !(lower.starts_with("url(#") && lower.ends_with(')') && lower.matches("url(").count() == 1)
        {
            return self
                .problem(at, format!("`{name}` refers outside the drawing; only url(#id) is allowed"));
        }
        if name == "href" && !value.starts_with('#') {
            return self.problem(at, "`href` refers outside the drawing; only #id is allowed");
        }
        if PAINTS.contains(&name) && !is_theme_colour(value) {
            let message = format!(
                "{name}=\"{value}\" does not follow the theme; use currentColor, none, var(--accent), var(--accent-2), \
                                   var(--muted), var(--surface) or url(#id)"
            );
            return self.problem(at, message);
        }
        push(&mut self.out, format_args!(" {name}=\""));
        if name == "id" {
            push(&mut self.out, format_args!("fig-{}-", self.name));
            self.words(value, at);
        } else if let Some(id) = value.strip_prefix("url(#") {
            push(&mut self.out, format_args!("url(#fig-{}-", self.name));
            self.words(id, at);
        } else if let ("href", Some(id)) = (name, value.strip_prefix('#')) {
            push(&mut self.out, format_args!("#fig-{}-", self.name));
            self.words(id, at);
        } else {
            self.words(value, at);
        }
        self.out.push('"');
    }

    /// Text with `{{key}}` replaced, escaped.
    fn words(&mut self, text: &str, at: usize) {
        let mut rest = text;
        while let Some(open) = rest.find("{{") {
            push_escaped(&mut self.out, &rest[..open]);
            let Some(length) = rest[open..].find("}}") else {
                return self.problem(at, "`{{` is never closed by `}}`");
            };
            let key = rest[open + 2..open + length].trim();
            match self.table.get(key).cloned() {
                Some(words) => {
                    push_escaped(&mut self.out, &words);
                    self.used.insert(key.to_owned());
                }
                None => self.problem(
                    at,
                    format!(
                        "`{{{{{key}}}}}` has no words; add `{key}` to [zh] and [en] in {}",
                        self.words_file
                    ),
                ),
            }
            rest = &rest[open + length + 2..];
        }
        push_escaped(&mut self.out, rest);
    }
}

/// Width of a viewBox, as it is written.
fn view_width(view_box: &str) -> Option<f64> {
    let numbers: Vec<f64> = view_box
        .split([' ', ','])
        .filter(|part| !part.is_empty())
        .map_while(|part| part.parse().ok())
        .collect();
    match numbers[..] {
        [_, _, width, height] if width > 0.0 && height > 0.0 && width.is_finite() && height.is_finite() => {
            Some(width)
        }
        _ => None,
    }
}

fn is_theme_colour(value: &str) -> bool {
    let variable = value.strip_prefix("var(--").and_then(|rest| rest.strip_suffix(')'));
    matches!(value, "none" | "currentColor" | "transparent" | "inherit" | "context-stroke" | "context-fill")
        || variable.is_some_and(crate::ids::is_id)
        || value.starts_with("url(#")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(svg: &str, words: Option<&str>) -> (String, Vec<ContentError>) {
        let svg = SourceFile::new("fig/a.svg", svg);
        let words = words.map(|words| SourceFile::new("fig/a.toml", words));
        let mut errors = Vec::new();
        let out = inline("a", &svg, words.as_ref(), Lang::Zh, "环 \"A\"", &mut errors);
        (out, errors)
    }

    fn body(inner: &str) -> String {
        format!(
            "<svg xmlns=\"{SVG}\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" viewBox=\"0 0 20 10\"><title>t</title>{inner}</svg>"
        )
    }

    #[test]
    fn a_drawing_keeps_its_shapes_and_gets_its_words() {
        let svg = body(
            "<marker id=\"m\"/><text x=\"1\">{{a}} &lt; {{ b }}</text><use xlink:href=\"#m\"/><path d=\"M0 0\" marker-end=\"url(#m)\"/>",
        );
        let (out, errors) =
            render(&svg, Some("[zh]\na = \"<甲>\"\nb = \"乙\"\n[en]\na = \"A\"\nb = \"B\"\n"));
        assert_eq!(errors, []);
        assert_eq!(
            out,
            "<svg role=\"img\" aria-label=\"环 &quot;A&quot;\" width=\"20\" fill=\"currentColor\" viewBox=\"0 0 20 10\"><title>t</title>\
             <marker id=\"fig-a-m\"/><text x=\"1\">&lt;甲&gt; &lt; 乙</text><use href=\"#fig-a-m\"/>\
             <path d=\"M0 0\" marker-end=\"url(#fig-a-m)\"/></svg>"
        );
    }

    #[test]
    fn nothing_that_acts_or_reaches_out_comes_through() {
        for (inner, part) in [
            ("<script>alert(1)</script>", "`<script>` is not allowed"),
            ("<foreignObject/>", "`<foreignObject>` is not allowed"),
            ("<style>a{}</style>", "`<style>` is not allowed"),
            ("<animate/>", "`<animate>` is not allowed"),
            ("<g xmlns=\"http://www.w3.org/1999/xhtml\"/>", "is not allowed"),
            ("<rect onclick=\"x()\"/>", "attribute `onclick`"),
            ("<rect style=\"fill:red\"/>", "presentation attributes"),
            ("<use href=\"https://example.org/a.svg#b\"/>", "only #id"),
            ("<use xlink:href=\"javascript:alert(1)\"/>", "only #id"),
            ("<rect clip-path=\"url(https://example.org)\"/>", "only url(#id)"),
            ("<rect clip-path=\"url(#a) url(//b)\"/>", "only url(#id)"),
            ("<rect fill=\"#fff\"/>", "does not follow the theme"),
            ("<text>{{nope}}</text>", "has no words"),
            ("<svg/>", "`<svg>` is not allowed"),
        ] {
            let (out, errors) = render(&body(inner), None);
            assert!(errors.iter().any(|error| error.message.contains(part)), "{inner}: {errors:?}");
            for forbidden in ["script", "onclick", "example.org", "style"] {
                assert!(!out.contains(forbidden), "{inner}: {out}");
            }
        }
        assert!(render("<svg>", None).1[0].message.contains("not well-formed"));
        assert!(
            render("<!DOCTYPE svg [<!ENTITY a \"b\">]><svg/>", None).1[0].message.contains("not well-formed")
        );
    }

    #[test]
    fn size_title_and_both_languages_are_asked_for() {
        let (_, errors) = render(&format!("<svg xmlns=\"{SVG}\"/>"), Some("[zh]\n[en]\nx = \"X\"\n"));
        let messages: Vec<&str> = errors.iter().map(|error| error.message.as_str()).collect();
        assert!(messages.iter().any(|m| m.contains("`x` is missing in [zh]")), "{messages:?}");
        assert!(messages.iter().any(|m| m.contains("viewBox")), "{messages:?}");
        assert!(messages.iter().any(|m| m.contains("<title>")), "{messages:?}");
    }
}
