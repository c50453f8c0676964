//! One broken chapter a rule: the error names the place and what to do.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use ringlab_content::{Library, check_sources};

static COUNT: AtomicU32 = AtomicU32::new(0);

/// A course of two chapters in a folder of its own, deleted when dropped.
struct Course {
    root: PathBuf,
}

impl Course {
    fn new() -> Course {
        let name = format!("course-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let course = Course { root: Path::new(env!("CARGO_TARGET_TMPDIR")).join(name) };
        course.write(
            "content/course/index.toml",
            "[[chapter]]\nnumber = 1\nslug = \"one\"\nzh = \"一\"\nen = \"One\"\n[[chapter]]\nnumber = 2\nslug = \"two\"\nzh = \"二\"\nen = \"Two\"\n",
        );
        course.write(
            "content/glossary.toml",
            "[term.ring]\nzh = \"环\"\nen = \"ring\"\nzh_def = \"环\"\nen_def = \"r\"\nchapter = 1\n",
        );
        course.write("labs/catalogue/l/lab.toml", "");
        course
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Chapter 1 with these texts below a front matter of 8 lines.
    fn chapter(&self, zh: &str, en: &str) {
        for (lang, title, text) in [("zh", "一", zh), ("en", "One", en)] {
            let head = format!(
                "+++\nnumber = 1\nslug = \"one\"\ntitle = \"{title}\"\nsummary = \"s\"\nobjectives = [\"o\"]\nprerequisites = []\n+++\n"
            );
            self.write(&format!("content/course/01-one/{lang}.md"), &(head + text));
        }
    }

    fn errors(&self) -> Vec<String> {
        match Library::load(&self.root) {
            Ok(_) => Vec::new(),
            Err(errors) => {
                errors.0.iter().map(|error| error.to_string().replace("content/course/01-one/", "")).collect()
            }
        }
    }
}

impl Drop for Course {
    fn drop(&mut self) {
        // A folder that stays behind in the build directory harms nothing.
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// The errors of a text that stands in both languages, without those of the other language.
fn errors_of(text: &str) -> Vec<String> {
    let course = Course::new();
    course.chapter(text, text);
    course.errors().into_iter().filter(|error| error.starts_with("zh.md")).collect()
}

#[track_caller]
fn one_error(text: &str, wanted: &str) {
    let errors = errors_of(text);
    assert_eq!(errors.len(), 1, "{text:?}: {errors:#?}");
    assert!(errors[0].starts_with(wanted), "{text:?}:\n{}\nwanted\n{wanted}", errors[0]);
}

#[test]
fn a_good_chapter_has_no_errors() {
    let course = Course::new();
    course.chapter(
        "## 步 {#a}\n\n见[上](#a)，[[ring]]，[二](chapter:2)。\n",
        "## Step {#a}\n\nSee [above](#a), [[ring]], [two](chapter:2).\n",
    );
    assert_eq!(course.errors(), Vec::<String>::new());
}

#[test]
fn text() {
    one_error("甲 <br>乙\n", "zh.md:9:3: raw HTML is not allowed: `<br>`");
    one_error("甲\n\n<div>\n乙\n</div>\n", "zh.md:11:1: raw HTML");
    one_error("带宽 $x $ 高\n", "zh.md:9:4: this `$` opens or closes no formula");
    one_error("价格 \\$5 与 $a+\\nope$\n", "zh.md:9:13: this formula cannot be read");
    one_error("他说**“环”**是\n", "zh.md:9:3: this `**` was not read as emphasis");
    one_error("注[^a]\n", "zh.md:9:2: this footnote has no definition");
    one_error("注[^a]\n\n[^a]: 一\n\n[^b]: 二\n", "zh.md:13:1: nothing refers to footnote `b`");
    one_error("[[nope]]\n", "zh.md:9:1: `nope` is not in content/glossary.toml");
    one_error("甲\n\n    code\n", "zh.md:11:5: code stands between ``` fences");
    assert_eq!(errors_of("\\$5、`$x $`、`**`、\\[[x]]\n"), Vec::<String>::new());
}

#[test]
fn headings() {
    one_error("# 题 {#a}\n", "zh.md:9:1: use `##`");
    one_error("## 题\n", "zh.md:9:1: this heading has no id");
    one_error("## 题 {#a}\n\n#### 题 {#b}\n", "zh.md:11:1: this heading skips a level");
    one_error("## 题 {#a}\n\n## 题 {#a}\n", "zh.md:11:1: id `a` is used twice");
    one_error("## 题 {#A_b}\n", "zh.md:9:1: id `A_b`: use lower-case");
    one_error("## 题 {#terms}\n", "zh.md:9:1: id `terms` is one the page uses itself");
    one_error("> ## 题 {#a}\n", "zh.md:9:3: a heading belongs to the chapter's own text");
    one_error("## [[ring]] {#a}\n", "zh.md:9:1: no links or glossary terms in a heading");
}

#[test]
fn links() {
    one_error(
        "[x](#nope)\n",
        "zh.md:9:1: no heading of this chapter has the id `nope`; there are no ids yet",
    );
    one_error("[x](chapter:3)\n", "zh.md:9:1: there is no chapter `3`; write its number, 1 to 2");
    one_error("[x](chapter:2#a)\n", "zh.md:9:1: chapter 2 is not written yet");
    one_error("[x](lab:nope)\n", "zh.md:9:1: there is no lab `nope` in labs/catalogue; known labs: l");
    one_error("[x](javascript:alert)\n", "zh.md:9:1: `javascript:alert` is no link this course knows");
    one_error("[x](http://example.org)\n", "zh.md:9:1: `http://example.org` is no link this course knows");
    one_error("[](https://example.org)\n", "zh.md:9:1: a link needs words");
}

#[test]
fn figures() {
    one_error("文 ![a](fig/a.svg \"c\")\n", "zh.md:9:3: a figure stands alone");
    one_error("![a](fig/a.svg \"c\")\n", "zh.md:9:1: fig/a.svg cannot be read");
    one_error("![a](a.png \"c\")\n", "zh.md:9:1: `a.png` is not a figure of this chapter");
    let course = Course::new();
    course.chapter("![](fig/a.svg)\n", "![](fig/a.svg)\n");
    course.write(
        "content/course/01-one/fig/a.svg",
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1 1\">\n<title>t</title>\n<script/></svg>",
    );
    let errors = course.errors();
    for wanted in [
        "zh.md:9:1: say between the brackets",
        "zh.md:9:1: give the figure a caption",
        "fig/a.svg:3:1: `<script>` is not allowed",
    ] {
        assert!(errors.iter().any(|error| error.starts_with(wanted)), "{wanted}: {errors:#?}");
    }
}

#[test]
fn fences() {
    one_error("```\nx\n```\n", "zh.md:9:1: this fence has no name; code: cuda");
    one_error("```java\nx\n```\n", "zh.md:9:1: `java` names no block");
    one_error("```rust\nx\n", "zh.md:9:1: this fence is never closed");
    one_error("- ```check\n  1 = 1\n  ```\n", "zh.md:9:3: a `check` block stands in the chapter's own text");
    one_error(" ```check\n 1 = 1\n 2 = 2\n ```\n", "zh.md:9:2: start the `check` block in the first column");
}

#[test]
fn a_whole_plan_is_read_by_the_engine() {
    let plan = |step: &str| {
        format!(
            "```plan\nplan p v1\ncollective broadcast root 0\nranks 2\nchannels 1\nchunks 1\n\nrank 0:\n  {step}\nrank 1:\n  recv from 0 into output[0]\n```\n"
        )
    };
    assert_eq!(errors_of("```plan\n# 片段\nsend input[0] to nowhere\n```\n"), Vec::<String>::new());
    one_error(&plan("sned input[0] to 1"), "zh.md:17:3: this plan cannot be read: ");
    assert_eq!(errors_of(&plan("send input[0] to 1")), Vec::<String>::new());
}

#[test]
fn blocks_of_toml() {
    one_error(
        "```aside\nkind = \"trap\"\ntitle = \"t\"\ntext = \"x\"\nmore = 1\n```\n",
        "zh.md:13:1: this `aside` block cannot be read as TOML: unknown field `more`",
    );
    one_error(
        "```aside\nkind = \"fun\"\ntitle = \"t\"\ntext = \"x\"\n```\n",
        "zh.md:10:8: `fun` is no kind of aside",
    );
    one_error(
        "```aside\nkind = \"trap\"\ntitle = \"t\"\ntext = \"\"\"\n甲\n\n- 乙 [x](#no)\n\"\"\"\n```\n",
        "zh.md:15:5: no heading of this chapter",
    );
    one_error("```lab\nid = \"nope\"\ntext = \"x\"\n```\n", "zh.md:10:6: there is no lab `nope`");
    one_error("```widget\nkind = \"w\"\n```\n", "zh.md:9:1: a widget needs `kind`");
    one_error(
        "```widget\nkind = \"w\"\nfallback = \"x\"\nn = [1]\n```\n",
        "zh.md:12:1: `n` must be a string, a number or true/false",
    );
    one_error(
        "```source\ntag = \"--x\"\nfile = \"a\"\nsymbol = \"s\"\nnote = \"n\"\n```\n",
        "zh.md:10:7: `--x` is no tag",
    );
    one_error(
        "```source\ntag = \"v1\"\nfile = \"../a\"\nsymbol = \"s\"\nnote = \"n\"\n```\n",
        "zh.md:11:8: `../a` is no path",
    );
}

#[test]
fn arithmetic() {
    one_error(
        "```check\nN := 8\n2 * (N - 1) / N = 1.57 倍  # 错\n```\n",
        "zh.md:11:19: 2 * (N - 1) / N is 1.75, not 1.57",
    );
    one_error("```check\n2 × 3 = 6\n```\n", "zh.md:10:3: write `*` instead of `×`");
    one_error("```check\nK + 1 = 2\n```\n", "zh.md:10:1: `K` has no value");
    one_error(
        "```check\n1024 * 1024 = 1,048,576\n```\n",
        "zh.md:10:16: the number ends here; group digits by `_`",
    );
    one_error("```check\n1 + 1 = two\n```\n", "zh.md:10:9: after `=` comes a number, not `two`");
    one_error("```check\n# 只有字\n```\n", "zh.md:9:1: a `check` block has lines");
    one_error("```check\nN := 1\nN := 2\n```\n", "zh.md:11:1: `N` is set twice");
    one_error("```check\n1 = 1 # $\\nope$\n```\n", "zh.md:10:10: this formula cannot be read");
}

#[test]
fn quizzes() {
    let quiz =
        |rest: &str| format!("```quiz\nid = \"q\"\nprompt = \"p\"\nexplanation = \"e\"\n{rest}\n```\n");
    let option = |text: &str, correct: bool| {
        format!("\n[[option]]\ntext = \"{text}\"\ncorrect = {correct}\nwhy = \"w\"\n")
    };
    let (right, wrong) = (option("a", true), option("b", false));
    assert_eq!(errors_of(&quiz(&format!("type = \"single\"{right}{wrong}"))), Vec::<String>::new());
    one_error(
        &quiz(&format!("type = \"single\"{right}{}", option("b", true))),
        "zh.md:9:1: a `single` quiz has one option",
    );
    one_error(
        &quiz(&format!("type = \"multiple\"{wrong}{}", option("c", false))),
        "zh.md:9:1: no option has `correct = true`",
    );
    one_error(
        &quiz(&format!("type = \"single\"{right}{}", option("a", false))),
        "zh.md:20:8: this option stands twice",
    );
    one_error(&quiz("type = \"numeric\""), "zh.md:9:1: a `numeric` quiz needs `answer`");
    one_error(
        &quiz("type = \"numeric\"\nanswer = 1\ntolerance = 5"),
        "zh.md:15:13: the tolerance is relative",
    );
    one_error(
        &quiz("type = \"numeric\"\nanswer = 0\ntolerance = 0.1"),
        "zh.md:15:13: a tolerance relative to 0",
    );
    one_error(
        &quiz("type = \"numeric\"\nanswer = 1\nitems = [\"a\"]"),
        "zh.md:13:8: a quiz of type `numeric` has no `items`",
    );
    one_error(
        &quiz("type = \"order\"\nitems = [\"a\", \"b\"]"),
        "zh.md:9:1: an `order` quiz needs at least three",
    );
    one_error(
        &quiz("type = \"matching\"\npairs = [[\"a\", \"b\"], [\"c\", \"b\"]]"),
        "zh.md:14:28: this right side stands twice",
    );
    one_error(&quiz("type = \"essay\""), "zh.md:13:8: `essay` is no type of quiz");
    one_error(
        &(quiz("type = \"numeric\"\nanswer = 1") + &quiz("type = \"numeric\"\nanswer = 2")),
        "zh.md:17:6: quiz id `q` is used twice",
    );
}

#[test]
fn measured_figures() {
    let block = |rest: &str| format!("```measured\nfile = \"m.json\"\ncaption = \"c\"\n{rest}\n```\n");
    one_error(
        &block("sentence = \"{}\"\nfigures = [[\"/a\", \"us\"]]"),
        "zh.md:10:8: labs/measurements/m.json cannot be read",
    );
    let head = "\"date\": \"2026-01-02\", \"commit\": \"c\", \"command\": \"x\", \"hardware\": \"H\", \"driver\": null";
    let errors = |json: &str, text: &str| {
        let course = Course::new();
        course.write("labs/measurements/m.json", json);
        course.chapter(text, text);
        course.errors().into_iter().filter(|error| error.starts_with("zh.md")).collect::<Vec<_>>()
    };
    let good = format!("{{{head}, \"a\": 1.5, \"rows\": [{{\"b\": 1}}]}}");
    let sentence = block("sentence = \"{}\"\nfigures = [[\"/a\", \"us\"]]");
    assert_eq!(errors(&good, &sentence), Vec::<String>::new());
    for (json, text, wanted) in [
        ("{", sentence.clone(), "zh.md:10:8: labs/measurements/m.json is no JSON"),
        ("{\"date\": \"d\"}", sentence, "zh.md:10:8: labs/measurements/m.json lacks hardware, driver"),
        (
            &good,
            block("sentence = \"{} {}\"\nfigures = [[\"/a\", \"us\"]]"),
            "zh.md:12:12: the sentence has 2 `{}` for 1 figures",
        ),
        (
            &good,
            block("sentence = \"{}\"\nfigures = [[\"/z\", \"us\"]]"),
            "zh.md:13:13: `/z` leads to nothing; known keys: a, command",
        ),
        (
            &good,
            block("rows = \"/a\"\ncolumns = [[\"/b\", \"h\", \"us\"]]"),
            "zh.md:12:8: `/a` leads to no array",
        ),
        (
            &good,
            block("rows = \"/rows\"\ncolumns = [[\"/b\", \"h\", \"kg\"]]"),
            "zh.md:13:24: `/b` is 1, and `kg` is no format",
        ),
        (&good, block(""), "zh.md:9:1: give either `rows` and `columns`"),
    ] {
        let errors = errors(json, &text);
        assert!(errors.len() == 1 && errors[0].starts_with(wanted), "wanted {wanted}: {errors:#?}");
    }
}

#[test]
fn both_languages_have_the_same_parts() {
    for (zh, en, wanted) in [
        (
            "## 甲 {#a}\n",
            "## A {#b}\n",
            "en.md:9: here stands heading ## {#b}, but at the same place zh.md:9 has heading ## {#a}",
        ),
        ("## 甲 {#a}\n", "### A {#a}\n", "en.md:9: this heading skips a level"),
        ("$x$ 与 $y$\n", "$x$\n", "en.md:1: between the front matter and the next part there are 1 `$…$`"),
        (
            "## 甲 {#a}\n\n## 乙 {#b}\n",
            "## A {#a}\n",
            "zh.md:11: heading ## {#b} is missing in the other language",
        ),
        ("甲\n", "A\n\n```rust\nx\n```\n", "en.md:11: code in rust is missing in the other language"),
        (
            "```check\n1 + 1 = 2\n```\n",
            "```check\n2 = 2\n```\n",
            "en.md:9: check is [2 = 2] here, but [1+1 = 2] in zh.md:9",
        ),
        ("|甲|\n|-|\n", "|A|B|\n|-|-|\n", "en.md:9: a table is [2 columns] here, but [1 columns]"),
    ] {
        let course = Course::new();
        course.chapter(zh, en);
        let errors: Vec<String> =
            course.errors().iter().map(|error| error.replacen(":1: ", ": ", 1)).collect();
        assert!(errors.iter().any(|error| error.starts_with(wanted)), "wanted {wanted}: {errors:#?}");
    }
}

#[test]
fn a_thing_has_one_name() {
    let course = Course::new();
    course.write(
        "content/glossary.toml",
        "[term.ring]\nzh = \"环\"\nen = \"ring\"\nzh_def = \"环\"\nen_def = \"r\"\nchapter = 1\navoid = [\"圈圈\"]\n",
    );
    course.chapter("走圈圈。\n", "A ring.\n");
    let errors = course.errors();
    assert!(
        errors.iter().any(|error| error.contains("`圈圈` has another name in this course: 环 (ring)")),
        "{errors:#?}"
    );
}

#[test]
fn files_and_front_matter() {
    let course = Course::new();
    course.write("content/course/01-one/zh.md", "+++\nnumber = 2\nslug = \"x\"\ntitle = \"t\"\nsummary = \"\"\nobjectives = []\nprerequisites = []\nlab = \"l\"\n+++\n");
    course.write("content/course/02-two/en.md", "");
    course.write("content/course/03-nope/zh.md", "");
    let errors = course.errors();
    for wanted in [
        "zh.md:2:10: number is 2 but the folder is 01-one",
        "zh.md:3:8: slug is `x` but content/course/index.toml has `one`",
        "zh.md:4:9: the title differs from content/course/index.toml, which has `一`",
        "zh.md:5:11: write one or two sentences",
        "zh.md:2:1: `objectives` is empty",
        "zh.md:8:7: the text has no `lab` block for `l`",
        "content/course/02-two/zh.md:1:1: content/course/02-two/en.md is there, but this file is missing; write the chapter in Chinese first",
        "content/course/03-nope:1:1: content/course/index.toml has no such chapter",
    ] {
        assert!(errors.iter().any(|error| error.starts_with(wanted)), "{wanted}: {errors:#?}");
    }
    for (text, wanted) in [
        ("## x\n", "zh.md:1:1: the file starts with `+++`"),
        ("+++\nnumber = 1\n", "zh.md:1:1: the front matter is never closed"),
        ("+++\nnumber = \"环\n+++\n", "zh.md:2:"),
        ("\u{feff}+++\n+++\n", "zh.md:1:1: the file starts with a byte order mark"),
        ("+++\r\n+++\r\n", "zh.md:1:4: the lines end in CR LF"),
    ] {
        course.write("content/course/01-one/zh.md", text);
        let errors = course.errors();
        assert!(errors.iter().any(|error| error.starts_with(wanted)), "{wanted}: {errors:#?}");
    }
}

#[test]
fn a_missing_index_and_glossary_are_named() {
    let course = Course { root: Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-such-course") };
    let errors = course.errors();
    assert!(errors[0].starts_with("content/course/index.toml:1:1: this file cannot be read"), "{errors:#?}");
    assert!(errors[1].starts_with("content/glossary.toml:1:1: this file cannot be read"), "{errors:#?}");
}

#[test]
fn citations_are_held_against_a_git_directory() {
    let course = Course::new();
    let cite = |tag: &str, file: &str, symbol: &str| {
        format!(
            "```source\nrepo = \"a/b\"\ntag = \"{tag}\"\nfile = \"{file}\"\nsymbol = \"{symbol}\"\nnote = \"n\"\n```\n"
        )
    };
    let text = cite("v1", "src/x.h", "runRing")
        + &cite("v1", "src/x.h", "runTree")
        + &cite("v1", "src/y.h", "f")
        + &cite("v2", "src/x.h", "runRing");
    course.chapter(&text, &text);
    course.write("repo/src/x.h", "void runRing(int n);\n");
    let repo = course.root.join("repo");
    for arguments in [
        &["init", "-q"][..],
        &["add", "."],
        &[
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.org",
            "-c",
            "commit.gpgsign=false",
            "commit",
            "-qm",
            "x",
        ],
        &["tag", "v1"],
    ] {
        let status = Command::new("git").arg("-C").arg(&repo).args(arguments).status().unwrap();
        assert!(status.success(), "git {arguments:?}");
    }
    let library = Library::load(&course.root).unwrap_or_else(|errors| panic!("{errors}"));
    let (errors, unchecked) = check_sources(&library, &[("a/b".to_owned(), repo)].into());
    let errors: Vec<String> =
        errors.iter().map(ToString::to_string).filter(|error| error.contains("/zh.md")).collect();
    assert_eq!(unchecked, 0);
    assert_eq!(errors.len(), 3, "{errors:#?}");
    assert!(errors[0].contains("zh.md:16:1: `runTree` does not occur in src/x.h of a/b v1"), "{}", errors[0]);
    assert!(errors[1].contains("zh.md:23:1: src/y.h is not in tag v1"), "{}", errors[1]);
    assert!(errors[2].contains("zh.md:30:1: tag v2 is not in"), "{}", errors[2]);
    assert_eq!(check_sources(&library, &[].into()), (Vec::new(), 8));
}
