//! Properties of rendering on arbitrary input, whether or not it is free of errors.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::LazyLock;

use proptest::prelude::*;
use ringlab_engine::text::Lang;

use super::{Env, Math, State, chapter, heading_ids, inline, nested};
use crate::course::ChapterTitle;
use crate::glossary::Term;
use crate::highlight::Highlighter;
use crate::source::SourceFile;
use crate::types::{QuizKind, Segment};

struct World {
    titles: Vec<ChapterTitle>,
    glossary: BTreeMap<String, Term>,
    labs: BTreeSet<String>,
    math: Math,
    code: Highlighter,
}

static WORLD: LazyLock<World> = LazyLock::new(|| {
    let text = |text: &str| text.to_owned();
    let term = Term {
        id: text("ring"),
        zh: text("<环>"),
        en: text("ring"),
        zh_def: text("\"环\""),
        en_def: text("r"),
        chapter: 1,
        avoid: Vec::new(),
    };
    World {
        titles: vec![ChapterTitle { number: 1, slug: text("a"), zh: text("甲"), en: text("A") }],
        glossary: BTreeMap::from([(text("ring"), term)]),
        labs: BTreeSet::from([text("ring-allreduce")]),
        math: Math::default(),
        code: Highlighter::default(),
    }
});

/// Everything a text turns into: as a chapter, within a block, on one line.
fn render_all(text: &str) -> (Vec<String>, State) {
    let file = SourceFile::new("content/course/01-a/zh.md", text);
    let anchors = BTreeMap::from([(1, heading_ids(text))]);
    let env = Env {
        lang: Lang::Zh,
        root: Path::new("/nonexistent"),
        folder: "content/course/01-a",
        number: 1,
        titles: &WORLD.titles,
        glossary: &WORLD.glossary,
        labs: &WORLD.labs,
        anchors: &anchors,
        math: &WORLD.math,
        code: &WORLD.code,
    };
    let mut state = State::default();
    let mut html: Vec<String> = chapter(&env, &mut state, &file.whole()).iter().flat_map(html_of).collect();
    html.push(super::notes_section(&env, &mut state));
    html.extend(state.toc.iter().map(|entry| entry.html.clone()));
    html.push(nested(&env, &mut state, &file.whole()));
    html.push(inline(&env, &mut state, &file.whole()));
    (html, state)
}

fn html_of(segment: &Segment) -> Vec<String> {
    match segment {
        Segment::Html { html } | Segment::Lab { html, .. } => vec![html.clone()],
        Segment::Widget(widget) => vec![widget.fallback.clone()],
        Segment::Quiz(quiz) => {
            let mut html = vec![quiz.prompt.clone(), quiz.explanation.clone()];
            match &quiz.kind {
                QuizKind::Single { options } | QuizKind::Multiple { options } => {
                    html.extend(options.iter().flat_map(|option| [option.html.clone(), option.why.clone()]));
                }
                QuizKind::Order { items } => html.extend(items.clone()),
                QuizKind::Matching { pairs } => {
                    html.extend(pairs.iter().flat_map(|(a, b)| [a.clone(), b.clone()]))
                }
                QuizKind::Numeric { .. } => {}
            }
            html
        }
    }
}

/// Elements that this crate and KaTeX write.
const ELEMENTS: &str = "a annotation aside blockquote br caption code dd del dfn div dl dt em figcaption figure h2 h3 h4 hr li math menclose \
    mfrac mi mn mo mover mpadded mphantom mroot mrow ms mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr munder munderover ol p \
    path pre section semantics span strong sup svg line table tbody td th thead time tr ul";

const ATTRIBUTES: &str = "accent accentunder aria-hidden aria-label aria-labelledby class colspan columnalign columnlines columnspacing d \
    data-language depth display displaystyle encoding fence fill form height href id lang linebreak linethickness lspace mathbackground \
    mathcolor mathsize mathvariant maxsize minsize notation preserveAspectRatio rel role rowalign rowlines rowspacing rspace scope \
    scriptlevel separator side start stretchy style symmetric tabindex title viewBox voffset width x1 x2 y1 y2 xmlns stroke-width";

/// Names the first thing in `html` that this crate would not write.
fn foreign(html: &str) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        let Some(length) = rest[at..].find('>') else { return Err(format!("a bare <: {}", &rest[at..])) };
        let tag = &rest[at + 1..at + length];
        rest = &rest[at + length + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop() != Some(name) {
                return Err(format!("</{name}> closes nothing"));
            }
            continue;
        }
        let tag = tag.trim_end_matches('/').trim();
        let (name, mut attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        if !ELEMENTS.split_whitespace().any(|element| element == name) {
            return Err(format!("element <{tag}>"));
        }
        while let Some((attribute, value)) = attributes.trim_start().split_once("=\"") {
            let Some((value, tail)) = value.split_once('"') else {
                return Err(format!("an unclosed value in <{tag}>"));
            };
            if !ATTRIBUTES.split_whitespace().any(|known| known == attribute) {
                return Err(format!("attribute {attribute} in <{tag}>"));
            }
            let safe = value.starts_with(['#', '/']) || value.starts_with("https://");
            if attribute == "href" && !safe {
                return Err(format!("address {value}"));
            }
            attributes = tail;
        }
        let empty = matches!(name, "br" | "hr") || html[..html.len() - rest.len()].ends_with("/>");
        if !attributes.trim().is_empty() {
            return Err(format!("left over in <{tag}>: {attributes}"));
        }
        if !empty {
            open.push(name);
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("never closed: {open:?}")) }
}

/// Pieces that Markdown, TOML, TeX and HTML are made of.
fn piece() -> impl Strategy<Value = String> {
    let fixed = prop::sample::select(vec![
        "# ",
        "## 步 {#steps}\n",
        "### T {#a .b c=d}\n",
        "\n\n",
        "\n",
        "- ",
        "1. ",
        "> ",
        "| a | b |\n|--|:-:|\n| c | d |\n",
        "*",
        "**",
        "_",
        "~~",
        "`",
        "```",
        "```\n",
        "```cuda\n",
        "```plan\n",
        "```toml\n",
        "```xml\n",
        "[",
        "](",
        ")",
        "[[ring]]",
        "[[ring|",
        "]]",
        "[^a]",
        "[^a]: ",
        "![x](fig/a.svg \"c\")",
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "<!-- c -->",
        "<b",
        "</p>",
        "&lt;",
        "&#0;",
        "&copy;",
        "$x$",
        "$",
        "$$",
        "\\frac{a}{b}",
        "\\text{环}",
        "{",
        "}",
        "\\href{javascript:alert(1)}{x}",
        "javascript:alert(1)",
        "https://e.org/?a=\"b'",
        "<https://e.org/<>",
        "[a](chapter:1)",
        "[a](#steps)",
        "[a](lab:ring-allreduce)",
        "[a](javascript:alert%281%29)",
        "[a](data:text/html,x)",
        "\"",
        "'",
        "<",
        ">",
        "&",
        "\\",
        "环",
        "带宽",
        "𝔸",
        "\u{200f}",
        "\u{0}",
        "\t",
        "    ",
        " ",
        "rank",
        "8 = 8\n",
        "```check\nN := 8\nN * 2 = 16 # <i> $x$\n```\n",
        "```aside\nkind = \"trap\"\ntitle = \"<b> $x$\"\ntext = \"\"\"\n<i>\n- a\n\"\"\"\n```\n",
        "```quiz\nid = \"q\"\ntype = \"order\"\nprompt = \"<p>\"\nexplanation = \"</p>\"\nitems = [\"<a\", \"'b\", \"\\\"c\"]\n```\n",
        "```widget\nkind = \"w\"\nfallback = '<script>'\n```\n",
        "```lab\nid = \"ring-allreduce\"\ntext = \"<x>\"\n```\n",
        "```source\ntag = \"v1\"\nfile = \"a.h\"\nsymbol = \"<b>\"\nnote = \"\\u003cscript>\"\n```\n",
        "```measured\nfile = \"a.json\"\ncaption = \"<\"\n```\n",
    ]);
    prop_oneof![4 => fixed.prop_map(str::to_owned), 1 => "\\PC{0,12}", 1 => any::<char>().prop_map(String::from)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, ..ProptestConfig::default() })]

    #[test]
    fn nothing_an_author_writes_becomes_markup_of_its_own(pieces in prop::collection::vec(piece(), 0..24)) {
        let text = pieces.concat();
        let (html, _) = render_all(&text);
        for html in html {
            if let Err(problem) = foreign(&html) {
                prop_assert!(false, "{problem}\nin {html}\nof {text:?}");
            }
        }
    }

    #[test]
    fn errors_point_into_the_file(pieces in prop::collection::vec(piece(), 0..24)) {
        let text = pieces.concat();
        let (_, state) = render_all(&text);
        let lines: Vec<&str> = text.split('\n').collect();
        for error in state.errors.iter().filter(|error| error.file.ends_with("zh.md")) {
            let line = lines.get(error.line as usize - 1);
            prop_assert!(line.is_some_and(|line| error.column as usize <= line.chars().count() + 1), "{error} in {text:?}");
            prop_assert!(!error.message.is_empty());
        }
    }
}

#[test]
fn the_property_itself_finds_foreign_markup() {
    for bad in [
        "<script>",
        "<p",
        "<p>",
        "</p>",
        "<p onclick=\"x\"></p>",
        "<a href=\"javascript:x\">a</a>",
        "<p class=\"a\"b\"></p>",
    ] {
        assert!(foreign(bad).is_err(), "{bad}");
    }
    assert_eq!(foreign("<p class=\"a\">b<br>&lt;</p><path d=\"M0\"/>"), Ok(()));
}
