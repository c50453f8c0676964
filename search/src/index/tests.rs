use super::*;

fn document(kind: Kind, title: &str, text: &str) -> Document {
    Document {
        kind,
        href: format!("/{title}"),
        title: title.into(),
        context: String::new(),
        text: text.into(),
        lang: "zh-Hans".into(),
    }
}

fn index() -> Index {
    let documents = [
        document(
            Kind::Chapter,
            "环形 AllReduce",
            "每个 rank 把数据切成 n 块，沿环传递；先 ReduceScatter，再 AllGather。",
        ),
        document(Kind::Chapter, "死锁", "两个 rank 以不同的顺序调用，双方都等在 ncclRecv 里，永远不返回。"),
        document(Kind::Variable, "NCCL_IB_TIMEOUT", "网卡多久没有收到应答就重传。"),
        document(Kind::Question, "为什么小消息用树？", "比较环与树的延迟项。"),
        document(Kind::Term, "总线带宽", "把算法的搬运量除进去以后的带宽。"),
    ];
    let synonyms = [
        vec!["死锁".to_owned(), "deadlock".to_owned()],
        vec!["总线带宽".to_owned(), "bus bandwidth".to_owned()],
    ];
    Index::build(documents, &synonyms).unwrap()
}

fn search(text: &str) -> Results {
    index().search(&Query { text, kind: None, offset: 0, limit: 10 }).unwrap()
}

fn first(text: &str) -> String {
    let results = search(text);
    assert!(!results.partial, "{text}: {results:?}");
    let title = results.hits.first().unwrap_or_else(|| panic!("{text} finds nothing")).title.iter();
    title.map(|piece| piece.text.as_str()).collect()
}

#[test]
fn words_of_both_languages_find_their_document() {
    for (text, title) in [
        ("环形", "环形 AllReduce"),
        ("allreduce", "环形 AllReduce"),
        ("AllReduec", "环形 AllReduce"),
        ("沿环", "环形 AllReduce"),
        ("死锁", "死锁"),
        ("deadlock", "死锁"),
        ("bus bandwidth", "总线带宽"),
        ("ncclRecv", "死锁"),
        ("recv", "死锁"),
        ("ib timeout", "NCCL_IB_TIMEOUT"),
        ("NCCL_IB_TIM", "NCCL_IB_TIMEOUT"),
        ("小消息", "为什么小消息用树？"),
        ("等在", "死锁"),
    ] {
        assert_eq!(first(text), title, "{text}");
    }
}

#[test]
fn words_that_no_document_has_together_find_some_of_them() {
    let results = search("重传 环形");
    assert!(results.partial);
    assert_eq!(results.total, 2);
}

#[test]
fn nothing_typed_is_an_error() {
    for text in ["", "  ", "\"", "a AND (", "title:x", "***", "💥", "' OR 1=1 --", "\u{0}", "+-~^[", "的"]
    {
        search(text);
    }
    assert_eq!(search("xyzzyplugh").total, 0);
    search(&"环 ".repeat(10_000));
    search(&"a".repeat(100_000));
}

#[test]
fn every_run_of_a_long_text_can_be_found_and_shown() {
    let text =
        "中华人民共和国的集合通信研究所里，每一位研究生命科学的学生都知道 ncclAllReduceRingLL128 的缓冲区；"
            .repeat(12);
    let index = Index::build([document(Kind::Chapter, "长文", &text)], &[]).unwrap();
    let characters: Vec<char> = text.chars().take(50).collect();
    for start in 0..characters.len() {
        for length in [1, 2, 5, 13] {
            let asked: String = characters[start..].iter().take(length).collect();
            let found = index.search(&Query { text: &asked, kind: None, offset: 0, limit: 5 }).unwrap();
            let searchable = asked.chars().any(char::is_alphanumeric);
            let cut_inside_a_name = asked.bytes().any(|b| b.is_ascii_alphanumeric());
            assert!(found.total == 1 || !searchable || cut_inside_a_name, "{asked}");
        }
    }
}

#[test]
fn only_one_kind_when_asked() {
    let index = index();
    let query = Query { text: "带宽", kind: Some(Kind::Term), offset: 0, limit: 10 };
    let found = index.search(&query).unwrap();
    assert_eq!(found.total, 1);
    let none = index.search(&Query { kind: Some(Kind::Lab), ..query }).unwrap();
    assert_eq!((none.total, none.partial), (0, false));
}

#[test]
fn a_snippet_shows_what_was_found() {
    let results = search("ncclRecv");
    let marked: Vec<&str> =
        results.hits[0].snippet.iter().filter(|p| p.found).map(|p| p.text.as_str()).collect();
    assert_eq!(marked, ["ncclRecv"]);
}
