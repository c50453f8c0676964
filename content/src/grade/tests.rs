//! Whole rubrics of a few lines, and what answers earn under them.

use super::read::{read_lexicon, read_rubric};
use super::{Prompts, Reading, grade};
use crate::report::Grade;
use crate::source::SourceFile;

const LEXICON: &str = r#"
[concepts]
returns = ["返回", "return"]
done = ["完成", "finished", "done"]
means = ["说明", "代表", "means"]
hang = ["卡死", "hang", "hanging"]
all-reduce = ["all reduce"]
"#;

/// Grades under one point of 10 marks whose claim has these lines, and one fatal error with those.
fn graded(claim: &str, fatal: &str, answer: &str) -> Grade {
    let text = format!(
        r#"
[[point]]
zh = "点"
en = "point"
max = 10
[[point.claim]]
id = "claim"
zh = "论断"
en = "claim"
marks = 10
{claim}
[[fatal]]
zh = "错"
en = "error"
{fatal}
"#
    );
    let mut errors = Vec::new();
    let lexicon = read_lexicon(&SourceFile::new("lexicon.toml", LEXICON.to_owned()), &mut errors);
    let rubric = read_rubric(&SourceFile::new("rubric.toml", text), &lexicon, &mut errors);
    assert!(errors.is_empty(), "{errors:?}");
    grade(&rubric.unwrap(), &Prompts::default(), &Reading::new(answer))
}

const NO_FATAL: &str = r#"when = ["unheard of"]"#;

fn earns(claim: &str, answer: &str) -> bool {
    graded(claim, NO_FATAL, answer).total == 10
}

#[test]
fn either_way_holds_in_conditions_and_questions_too() {
    let claim = r#"when = ["?@done & @returns"]"#;
    for answer in ["返回时不一定完成", "先看返回时是否完成", "check whether it is done when it returns"]
    {
        assert!(earns(claim, answer), "{answer}");
    }
    assert!(!earns(r#"when = ["@done"]"#, "先看是否完成"));
}

#[test]
fn a_slip_within_a_compound_is_forgiven() {
    let claim = r#"when = ["@all-reduce"]"#;
    assert!(earns(claim, "每层两次 allreudce"));
    assert!(earns(claim, "two allredcue per layer"));
    assert!(!earns(claim, "two allgather per layer"));
}

#[test]
fn an_excuse_excuses_only_its_own_window() {
    let fatal = "when = [\"@returns & @means & @done\"]\nunless = [\"可能\", \"may\"]";
    let found = |answer: &str| !graded(r#"when = ["@returns"]"#, fatal, answer).fatal.is_empty();
    assert!(found("返回就说明完成。网络可能会慢。"));
    assert!(!found("返回可能就说明完成。"));
}

#[test]
fn the_opposite_anywhere_takes_a_claim_back() {
    let claim = "when = [\"@returns & !@done\"]\nunless = [\"@returns & @means & @done\"]";
    assert!(earns(claim, "返回时还没完成。"));
    assert!(!earns(claim, "返回时还没完成。返回就说明完成。"));
}

#[test]
fn rather_than_excuses_no_error_that_stands_before_it() {
    let fatal = r#"when = ["NCCL .. @returns .. !@hang"]"#;
    for answer in [
        "If the order differs on two ranks, NCCL returns an error rather than hanging.",
        "If the order differs on two ranks NCCL returns an error rather than hanging.",
        "If a rank makes its calls in another order then NCCL will return an error instead of hanging.",
    ] {
        assert!(!graded(r#"when = ["@done"]"#, fatal, answer).fatal.is_empty(), "{answer}");
    }
}

#[test]
fn a_person_is_asked_where_much_was_said_and_little_understood() {
    let claim = r#"when = ["@returns & !@done"]"#;
    let fatal = r#"when = ["@returns & @means & @done"]"#;
    let long = "下单以后手机上马上就显示成功了，可是厨房里的师傅可能还在切菜，单子只是贴到了墙上，谁也没有站在那里等，\
                过一会儿才轮到这一单，所以不能拿着小票就去取餐，要看叫号的屏幕，轮到自己了再去窗口，这样才拿得到东西。";
    let cooking = graded(claim, fatal, long);
    assert!(cooking.person && cooking.total == 0, "{}", cooking.confidence);
    for answer in ["返回时还没完成。", "返回就说明完成。", ""] {
        let grade = graded(claim, fatal, answer);
        assert!(!grade.person, "{answer}: {}", grade.confidence);
    }
    // An accusation that takes many marks is worth a second look.
    assert!(graded(claim, fatal, "返回时还没完成。返回就说明完成。").person);
}

#[test]
fn what_is_not_the_case_meets_a_denied_pattern() {
    let claim = r#"when = ["@returns & !@done"]"#;
    for answer in [
        "It is not the case that it is done when it returns.",
        "It isn't the case that a return means done.",
        "并不是说返回就完成了。",
        "并不是说返回了，数据就完成了。",
    ] {
        assert!(earns(claim, answer), "{answer}");
    }
    assert!(!earns(claim, "并不是说返回时没有完成。"));
    let fatal = r#"when = ["@returns .. !@hang"]"#;
    for answer in ["It is not the case that it returns without hanging.", "并不是说返回就不会卡死。"]
    {
        assert!(graded(claim, fatal, answer).fatal.is_empty(), "{answer}");
    }
}

#[test]
fn a_word_of_one_sign_is_found_with_its_complement() {
    for (pattern, answer) in [
        ("拆", "把矩阵拆到四张卡上"),
        ("拆", "权重拆成四份"),
        ("头", "注意力按头切分"),
        ("卡", "发给每张卡"),
        ("送", "数据送给下一个 rank"),
    ] {
        assert!(earns(&format!(r#"when = ["{pattern}"]"#), answer), "{pattern}: {answer}");
    }
    for (pattern, answer) in [
        ("一", "一起算，统一顺序"),
        ("流", "数据流到下一张卡"),
        ("完", "完成以后再读"),
        ("加", "加入通信组"),
        ("除", "除了顺序都可以"),
        ("头", "老头在前头"),
    ] {
        assert!(!earns(&format!(r#"when = ["{pattern}"]"#), answer), "{pattern}: {answer}");
    }
}

#[test]
fn a_piece_of_an_identifier_is_no_word_of_the_answer() {
    assert!(!earns(r#"when = ["append"]"#, "ncclEnqueueCheck calls taskAppend first"));
    assert!(earns(r#"when = ["taskAppend"]"#, "ncclEnqueueCheck calls taskAppend first"));
    assert!(earns(r#"when = ["task append"]"#, "ncclEnqueueCheck calls taskAppend first"));
    assert!(earns(r#"when = ["broadcast"]"#, "it calls ncclBroadcast first"));
}
