use super::*;

fn place(text: &str, word: &str) -> (Polarity, Range<usize>) {
    let parsed = Text::new(text);
    let polarity = Polarity::new(&parsed);
    let joined: Vec<String> = parsed.tokens.iter().map(|token| token.text.clone()).collect();
    let wanted: Vec<String> = Text::new(word).tokens.into_iter().map(|token| token.text).collect();
    let at = joined.windows(wanted.len()).position(|window| window == wanted).unwrap();
    (polarity, at..at + wanted.len())
}

fn denied(text: &str, word: &str) -> bool {
    let (polarity, span) = place(text, word);
    let by = polarity.denying(&span);
    !by.is_empty() && !polarity.soft(&by)
}

fn denied_by_a_verb(text: &str, word: &str) -> bool {
    let (polarity, span) = place(text, word);
    let by = polarity.denying(&span);
    !by.is_empty() && polarity.soft(&by)
}

fn plain(text: &str, word: &str) -> bool {
    let (polarity, span) = place(text, word);
    polarity.denying(&span).is_empty() && !polarity.is_supposed(span.start)
}

fn supposed(text: &str, word: &str) -> bool {
    let (polarity, span) = place(text, word);
    polarity.is_supposed(span.start)
}

#[test]
fn scope_ends_where_the_sentence_turns() {
    assert!(denied("返回并不代表完成", "完成"));
    assert!(!denied("不仅异步，完成也要等", "异步"));
    assert!(denied("不是同步的，而是异步的", "同步"));
    assert!(!denied("不是同步的，而是异步的", "异步"));
    assert!(denied("it does not mean completion", "completion"));
    assert!(!denied("not synchronous but asynchronous", "asynchronous"));
    assert!(denied("uses sockets rather than verbs", "verbs"));
    assert!(!denied("不能不完成", "完成"));
}

#[test]
fn reported_errors_are_denied() {
    assert!(denied("很多人以为返回就是完成，其实只是入队", "完成"));
    assert!(!denied("很多人以为返回就是完成，其实只是入队", "入队"));
    assert!(denied("People think the call blocks, but it only enqueues", "blocks"));
    assert!(denied("返回就代表做完，这是错的", "做完"));
    assert!(denied("Treating a return as completion is a mistake", "completion"));
    assert!(denied("把返回当成做完是不对的", "做完"));
}

#[test]
fn a_missing_thing_denies_itself_and_not_what_follows() {
    assert!(plain("没有的话就要先拷到主机内存", "主机内存"));
    assert!(denied("没有 event 就读到旧值", "event"));
    assert!(plain("没有 event 就读到旧值", "旧值"));
    assert!(plain("不同步也会卡死", "卡死"));
    assert!(denied("返回不代表就做完了", "做完"));
    assert!(plain("没有 event 不行", "event"));
    assert!(plain("Without GDR the data goes through host memory", "host memory"));
    assert!(denied("it goes without touching host memory", "host memory"));
}

#[test]
fn a_condition_without_a_comma_ends_at_the_next_subject() {
    assert!(supposed("if the count differs it takes the minimum", "count"));
    assert!(plain("if the count differs it takes the minimum", "takes the minimum"));
    assert!(plain("if dtypes differ the sum is garbage", "garbage"));
    assert!(supposed("it hangs if the counts of two ranks differ", "differ"));
    assert!(plain("如果返回了就说明做完了", "做完"));
    assert!(supposed("如果返回成功，数据就好了", "返回"));
}

#[test]
fn verbs_deny_softly() {
    for (text, word) in [
        ("网卡直接读显存，省掉主机内存中转", "主机内存"),
        ("GDR skips host memory", "host memory"),
        ("it avoids the copy", "copy"),
        ("统一顺序可以避免死锁", "死锁"),
        ("the extra copy is avoided", "copy"),
        ("这次拷贝就省掉了", "拷贝"),
    ] {
        assert!(denied_by_a_verb(text, word), "{text}");
    }
    for (text, word) in
        [("you cannot skip the event", "event"), ("不能跳过 event", "event"), ("没有绕过 CPU", "CPU")]
    {
        assert!(plain(text, word), "{text}");
    }
    assert!(denied("no need to copy", "copy"));
    assert!(denied("不必拷贝", "拷贝"));
    assert!(denied("there is no copy", "copy"));
}

#[test]
fn two_negations_make_a_statement() {
    for (text, word) in [
        ("不是说不检查", "检查"),
        ("it is not that it doesn't check", "check"),
        ("不会不 hang", "hang"),
        ("并不是没有握手", "握手"),
        ("never without an event", "event"),
    ] {
        assert!(plain(text, word), "{text}");
    }
}

#[test]
fn a_negation_ends_before_the_next_statement() {
    for (text, word) in [
        ("异步而不是同步", "异步"),
        ("it does not block and returns at once", "returns"),
        ("不阻塞并且立刻返回", "返回"),
        ("不是同步是异步", "异步"),
        ("延迟不高带宽受限", "带宽受限"),
        ("无序到达会死锁", "死锁"),
        ("It is async rather than sync", "async"),
    ] {
        assert!(plain(text, word), "{text}");
    }
    for (text, word) in [
        ("异步而不是同步", "同步"),
        ("用 verbs 而非 socket", "socket"),
        ("差距不大", "大"),
        ("it no longer blocks", "blocks"),
    ] {
        assert!(denied(text, word), "{text}");
    }
}

#[test]
fn questions_say_what_their_answers_say() {
    assert!(denied("难道返回就做完了吗？", "做完"));
    assert!(plain("返回了不就做完了吗？", "做完"));
    assert!(denied("返回就是做完了吗？不是。", "做完"));
    assert!(denied("Does a return mean it is done? No.", "done"));
    assert!(plain("Does it only enqueue? Yes.", "enqueue"));
    assert!(supposed("返回就是做完了吗？", "做完"));
    assert!(plain("It only enqueues, right?", "enqueues"));
    assert!(denied("How could a return mean that it is done?", "done"));
}

#[test]
fn a_passive_denies_within_its_clause() {
    let text = "packets leave over NVLink, and the CPU isn't involved";
    assert!(denied(text, "CPU"));
    assert!(denied(text, "involved"));
    assert!(plain(text, "NVLink"));
}
