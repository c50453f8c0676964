//! Lists of a question's own words, made up from its samples and its rubric: whatever stands between the words, they say nothing.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use jieba_rs::Jieba;
use ringlab_content::bank::{Bank, Question, Sample};
use ringlab_content::grade::Reading;

static BANK: LazyLock<Bank> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    Bank::load(root).unwrap_or_else(|errors| panic!("{errors}"))
});
static JIEBA: LazyLock<Jieba> = LazyLock::new(Jieba::new);

/// What a list of keywords may earn.
const MOST: u32 = 2;

/// How the items of a list are set apart.
const BETWEEN: [(&str, &str); 9] = [
    ("commas", ", "),
    ("Chinese commas", "，"),
    ("enumeration commas", "、"),
    ("semicolons", "; "),
    ("slashes", " / "),
    ("stops", ". "),
    ("lines", "\n"),
    ("bullets", "\n- "),
    ("spaces", " "),
];

/// Words of English that carry no content of their own: closed classes only.
const CLOSED: &str = "a an the this that these those it its itself they them their there here he she his her we us our you your i my me \
    who whom whose which what when where why how be is are was were been being am do does did done has have had having will would shall \
    should can could may might must need ought of in on at by for with from to into onto over under above below between among through \
    during before after until since about against across along around behind beside beyond near off out up down upon via per without \
    within as like than and or but nor so yet if unless because although though while whereas whether not no never none neither either \
    both each every all any some many much more most few less least other another such same only just even also too very still already \
    again then thus hence therefore however otherwise instead rather else one isn't don't doesn't can't won't";

fn closed(word: &str) -> bool {
    CLOSED.split_whitespace().any(|closed| closed.eq_ignore_ascii_case(word))
}

/// The words of a text that carry content, in order.
fn content_words(text: &str) -> Vec<String> {
    let han = |c: char| matches!(c, '\u{4e00}'..='\u{9fff}');
    let edge = |c: char| !c.is_alphanumeric();
    let mut out = Vec::new();
    for tag in JIEBA.tag(&text.replace('`', " "), true) {
        if tag.word.chars().all(han) {
            let open = matches!(
                tag.tag.as_bytes().first(),
                Some(b'n' | b'v' | b'a' | b'j' | b'l' | b'i' | b's' | b't' | b'b')
            );
            if open
                && !matches!(
                    tag.word,
                    "是" | "有" | "要" | "会" | "能" | "没有" | "可以" | "可能" | "能够" | "应该" | "需要"
                )
            {
                out.push((tag.byte_start, tag.byte_end, true));
            }
        } else {
            out.push((tag.byte_start, tag.byte_end, false));
        }
    }
    // What is not Han goes by white space and punctuation: `2(N-1)/N`, `all-reduce` and `ncclGroupEnd` are one word each.
    let mut words: Vec<String> = Vec::new();
    let mut at = 0;
    while at < out.len() {
        let (start, mut end, is_han) = out[at];
        at += 1;
        if is_han {
            words.push(text[start..end].to_owned());
            continue;
        }
        while let Some((next, next_end, false)) = out.get(at).copied()
            && next == end
        {
            end = next_end;
            at += 1;
        }
        let piece = &text[start..end];
        for word in piece.split(|c: char| c.is_whitespace() || "，。；：、（）,;:→=".contains(c)) {
            let word = word.trim_matches(edge);
            if !word.is_empty() && !closed(word) {
                words.push(word.to_owned());
            }
        }
    }
    words
}

/// A fixed shuffle.
fn shuffled<T: Clone>(list: &[T], seed: u64) -> Vec<T> {
    let mut list = list.to_vec();
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for i in (1..list.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        list.swap(i, (state >> 33) as usize % (i + 1));
    }
    list
}

/// Verbs and little words that a writer of lists may strew in to look like prose.
const STREWN: [[&str; 8]; 2] = [
    ["需要", "走", "用", "会", "和", "通过", "发送", "然后"],
    ["need", "use", "and", "with", "send", "then", "for", "via"],
];

/// Fragments of two to four words.
fn fragments(words: &[String], strewn: Option<&[&str]>) -> Vec<String> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let length = 2 + out.len() % 3;
        let mut fragment: Vec<&str> =
            words[at..words.len().min(at + length)].iter().map(String::as_str).collect();
        // In every second fragment, before its first or its second word.
        if let Some(strewn) = strewn.filter(|_| out.len() % 2 == 0) {
            fragment.insert(out.len() / 2 % 2, strewn[out.len() / 2 % strewn.len()]);
        }
        out.push(fragment.join(" "));
        at += length;
    }
    out
}

struct List {
    name: String,
    items: Vec<String>,
}

/// The sample with the most marks in a language.
fn fullest(question: &Question, chinese: bool) -> Option<&Sample> {
    let is = |sample: &&Sample| {
        let han = sample.text.chars().filter(|c| matches!(c, '\u{4e00}'..='\u{9fff}')).count();
        sample.follow_up.is_none() && !sample.fatal && (han * 10 > sample.text.chars().count()) == chinese
    };
    question.samples.iter().filter(is).max_by_key(|sample| sample.total())
}

fn lists(question: &Question) -> Vec<List> {
    let mut sources: Vec<(String, usize, Vec<String>)> = Vec::new();
    for (n, chinese) in [true, false].into_iter().enumerate() {
        let name = if chinese { "zh" } else { "en" };
        if let Some(sample) = fullest(question, chinese) {
            sources.push((format!("{name} sample"), n, content_words(&sample.text)));
        }
        let texts = if chinese { &question.zh } else { &question.en };
        sources.push((format!("{name} core"), n, content_words(&texts.core)));
    }
    let concepts = question.rubric.keywords();
    let of = |pick: &dyn Fn(&Vec<String>) -> Option<&String>| -> Vec<String> {
        concepts.iter().filter_map(pick).flat_map(|phrase| content_words(phrase)).collect()
    };
    sources.push(("rubric first".into(), 0, of(&|words| words.first())));
    sources.push(("rubric last".into(), 1, of(&|words| words.last())));
    let mut out = Vec::new();
    for nth in 0..5 {
        let items: Vec<String> =
            concepts.iter().filter_map(|words| words.get(nth * words.len() / 5)).cloned().collect();
        out.push(List { name: format!("rubric {nth}, phrases"), items: items.clone() });
        out.push(List {
            name: format!("rubric {nth} shuffled, phrases"),
            items: shuffled(&items, nth as u64),
        });
    }
    out.push(List {
        name: "rubric all, phrases".to_owned(),
        items: concepts.iter().flatten().cloned().collect(),
    });
    for (name, language, words) in sources {
        let mut seen = BTreeSet::new();
        let once: Vec<String> =
            words.iter().filter(|word| seen.insert(word.to_lowercase())).cloned().collect();
        for (order, words) in [
            ("in order", words),
            ("once", once.clone()),
            ("shuffled", shuffled(&once, u64::from(question.number))),
        ] {
            for (kind, items) in [
                ("words", words.clone()),
                ("fragments", fragments(&words, None)),
                ("strewn", fragments(&words, Some(&STREWN[language]))),
            ] {
                out.push(List { name: format!("{name} {order}, {kind}"), items });
            }
        }
    }
    out
}

/// Of a thousand lists of words, and of a thousand made of whole phrases that the rubric looks for, so many may earn more than [`MOST`].
const STRAY_WORDS: usize = 5;
const STRAY_PHRASES: usize = 40;

#[test]
fn a_list_of_keywords_earns_two_marks_at_most() {
    let mut wrong: [Vec<String>; 2] = Default::default();
    let mut all = [0; 2];
    for question in BANK.questions() {
        for list in lists(question) {
            // Nobody but the rubric's author can write these: nearly statements, each of them.
            let phrases = usize::from(list.name.ends_with("phrases"));
            for (between, separator) in BETWEEN {
                let total = question.grade(&Reading::new(&list.items.join(separator))).total;
                all[phrases] += 1;
                if total > MOST {
                    wrong[phrases]
                        .push(format!("{:02}: {} with {between} earns {total}", question.number, list.name));
                }
            }
        }
    }
    for (kind, most) in [STRAY_WORDS, STRAY_PHRASES].into_iter().enumerate() {
        let (wrong, all) = (&wrong[kind], all[kind]);
        println!("{} of {all} lists earn more than {MOST}", wrong.len());
        assert!(all > 5_000 && wrong.len() * 1_000 <= all * most, "{}", wrong.join("\n"));
    }
}
