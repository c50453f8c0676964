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
    assert!(supposed("If it waited, the call would block", "block"));
    assert!(plain("If I am first, I wait for you, although both would have come", "wait"));
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

#[test]
fn what_goes_wrong_otherwise_is_not_denied() {
    for (text, word) in [
        ("必须先等 event，否则结果就错了", "event"),
        ("要先等 event 再读，不然读到的就是错的", "event"),
        ("如果不在同一个 stream 上，就要等 event，直接读是错的", "event"),
        ("如果顺序不一样，结果就错了", "结果"),
        ("You must wait for the event, otherwise the sums are wrong", "event"),
        ("要等 event 才对，马上读是错的", "event"),
        ("先等 event 再读，这样才对", "event"),
    ] {
        assert!(plain(text, word), "{text}");
    }
    for (text, word) in [
        ("认为返回了，数据就能读，是错的", "数据就能读"),
        ("返回了数据就能读，这样理解是错的", "数据就能读"),
        ("马上读是错的", "马上读"),
    ] {
        assert!(denied(text, word), "{text}");
    }
}

#[test]
fn what_ends_a_statement_is_no_question() {
    assert!(plain("返回只说明入队，不说明别的什么", "入队"));
    assert!(plain("先看它入队之后在等什么", "入队"));
    assert!(supposed("返回就是做完了么", "做完"));
}

#[test]
fn somebody_says_in_many_ways() {
    for text in [
        "有同事说返回就是做完",
        "有的新人会觉得返回就是做完",
        "网上有些文章说返回就是做完",
        "不少同学认为返回就是做完",
        "有人觉得返回就是做完",
        "很多人会把返回当成做完",
    ] {
        assert!(denied(text, "做完"), "{text}");
    }
    for text in [
        "many also think that it is done",
        "Some engineers still believe it is done",
        "A colleague of mine says it is done",
        "Most newcomers will tend to assume that it is done",
    ] {
        assert!(denied(text, "done"), "{text}");
    }
    assert!(plain("有 event 说明做完了", "做完"));
    assert!(plain("some ranks are done", "done"));
}

#[test]
fn a_reason_that_is_none_is_denied() {
    assert!(denied("It isn't because the ring is slow", "ring is slow"));
    assert!(denied("小消息慢不是因为带宽不够，而是固定开销", "带宽"));
    assert!(plain("小消息慢不是因为带宽不够，而是固定开销", "固定开销"));
    assert!(plain("It is not slow because of the ring but because of the launches", "launches"));
}

#[test]
fn a_warning_ends_with_its_clause() {
    assert!(denied("别以为返回就是做完，要等 event", "做完"));
    assert!(plain("别以为返回就是做完，要等 event", "event"));
    assert!(denied("别以为函数返回了，数据就能读", "数据就能读"));
}

#[test]
fn not_simply_denies_unless_more_follows() {
    assert!(denied("Returning does not simply mean that it is done", "done"));
    assert!(denied("It isn't just done when the call returns", "done"));
    assert!(plain("It is not just async but also ordered", "async"));
    assert!(plain("It does not merely enqueue, it also orders", "enqueue"));
    assert!(plain("not only async but ordered", "async"));
}

#[test]
fn no_phrase_goes_on_beyond_its_clause() {
    for text in ["去，除了它", "队列走不下去，除了 rank 0", "它不；是", "no, need it", "避，免得拷贝"]
    {
        Polarity::new(&Text::new(text));
    }
}

#[test]
fn a_later_clause_takes_back_what_was_said() {
    for (text, word) in [
        ("有人说返回就是做完，这不对。", "做完"),
        ("有人说返回就是做完。这不对。", "做完"),
        ("返回就是做完。这是错的，它只是入队。", "做完"),
        ("返回就是做完。不是这样的，只是入队。", "做完"),
        ("返回就是做完。但这种说法是不对的。", "做完"),
        ("返回就是做完？错。", "做完"),
        ("返回就是做完？大错特错！", "做完"),
        ("返回就是做完？这不对。", "做完"),
        ("如果每张卡都发给所有卡，那就要 N-1 倍；ring 不是这样。", "倍"),
        ("如果每张卡都发给所有卡，那就要 N-1 倍，但 ring 不是这样。", "倍"),
        ("Many conclude that it is done. Not so.", "done"),
        ("A return means that it is done. That's wrong.", "done"),
        ("A return means that it is done, which is wrong.", "done"),
        ("Some say it is done, but this is not true.", "done"),
        ("It is done when it returns. That is not how NCCL works.", "done"),
    ] {
        assert!(denied(text, word), "{text}");
    }
    for (text, word) in [
        ("返回就是做完。这不对。它只是入队。", "入队"),
        ("ring 要 2(N-1) 步，tree 不是这样。", "步"),
        ("返回时已经入队。错误：以为做完了。", "入队"),
        ("The call enqueues. Wrong: it is done.", "enqueues"),
        ("顺序不对，就会卡死。", "卡死"),
        ("先看它入队没有。顺序不对也会卡死。", "卡死"),
    ] {
        assert!(plain(text, word), "{text}");
    }
}

#[test]
fn what_seems_so_or_is_tempting_is_an_opinion() {
    for (text, word) in [
        ("Naively, each rank sends everything, so the factor is N.", "factor"),
        ("Naively one would multiply by N.", "multiply"),
        ("乍一看返回就是做完，其实只是入队", "做完"),
        ("表面上返回就是做完，实际上只是入队", "做完"),
        ("看起来返回就是做完，其实只是入队", "做完"),
        ("It seems to be done when it returns. But it is only queued.", "done"),
        ("It's tempting to say that it is done, but it is only queued.", "done"),
        ("It is tempting to say that it is done, but it is only queued.", "done"),
        ("A common mistake is to think that it is done.", "done"),
        ("One mistake is to read at once.", "read"),
        ("很多人把返回当成做完", "做完"),
        ("Many treat the return as if it was done", "done"),
    ] {
        assert!(denied(text, word), "{text}");
    }
    for (text, word) in [
        ("乍一看返回就是做完，其实只是入队", "入队"),
        ("It seems to hang in the collective.", "hang"),
        ("看起来是卡死了", "卡死"),
        ("Naively splitting the tensor costs more", "costs"),
    ] {
        assert!(plain(text, word), "{text}");
    }
}

#[test]
fn what_something_is_unlike_is_not_said_of_it() {
    for (text, word) in [
        ("Unlike MPI_Send, which blocks until it is done, ncclSend only enqueues", "blocks"),
        ("Unlike a blocking call, ncclSend only enqueues", "blocking"),
        ("不像 Gloo 那样等做完了才返回，NCCL 只是入队", "返回"),
    ] {
        assert!(denied(text, word), "{text}");
    }
    for (text, word) in [
        ("Unlike MPI_Send, which blocks until it is done, ncclSend only enqueues", "enqueues"),
        ("Contrary to what many think, it only enqueues", "enqueues"),
        ("Contrary to popular belief, it only enqueues", "enqueues"),
        ("不像 Gloo 那样等做完了才返回，NCCL 只是入队", "入队"),
    ] {
        assert!(plain(text, word), "{text}");
    }
}

#[test]
fn a_verb_that_denies_is_turned_round_by_an_outer_not() {
    for (text, verb, word) in [
        ("fusion does not remove the copy", "remove", "copy"),
        ("it doesn't completely eliminate the copy", "eliminate", "copy"),
        ("fusion by itself does not avoid the copy", "avoid", "copy"),
        ("A return does not mean that you can skip the event", "skip", "event"),
        ("A return does not mean that NCCL skips the event", "skips", "event"),
        ("the two are fused without removing the copy", "removing", "copy"),
        ("不能省掉拷贝", "省掉", "拷贝"),
        ("并没有避免拷贝", "避免", "拷贝"),
        ("并没有真正消除拷贝", "消除", "拷贝"),
        ("返回不代表可以省掉拷贝", "省掉", "拷贝"),
        ("无法绕过拷贝", "绕过", "拷贝"),
        ("这次拷贝省不掉", "省", "拷贝"),
        ("绕不开拷贝", "绕", "拷贝"),
    ] {
        assert!(denied(text, verb), "{text}: {verb}");
        assert!(plain(text, word), "{text}: {word}");
    }
    assert!(denied_by_a_verb("it does not block and avoids the copy", "copy"));
    assert!(denied_by_a_verb("不阻塞，省掉拷贝", "拷贝"));
}

#[test]
fn a_whole_statement_is_denied_with_what_it_denies() {
    for (text, word) in [
        ("It is not the case that it is done.", "done"),
        ("It's not the case that when it returns, the data is ready.", "ready"),
        ("It does not mean that once it returns, the data is ready.", "ready"),
        ("It is not as if it were done.", "done"),
        ("并不是说返回就完成了。", "完成"),
        ("并不是说返回了，数据就能读。", "能读"),
        ("不代表只要返回，数据就能读。", "能读"),
    ] {
        assert!(denied(text, word), "{text}");
    }
    for (text, word) in [
        ("并不是说延迟不重要", "延迟"),
        ("并不是说延迟不重要", "重要"),
        ("It is not the case that latency does not matter", "latency"),
        ("It is not the case that latency does not matter", "matter"),
        ("It's not that the order doesn't matter", "order"),
        ("It is not the case that it is done, it only enqueues.", "enqueues"),
        ("并不是说返回了，要等 event。", "event"),
    ] {
        assert!(plain(text, word), "{text}");
    }
}
