//! Sentences of search, reference pages and the learning path, in both languages.

use ringlab_content::reference::VariableKind;
use ringlab_labs::text::Lang;
use ringlab_search::Kind;

use crate::strings::strings;

strings! {
    // Search
    search = "搜索", "Search";
    search_lead = "在 36 章课程、54 道面试题、术语、环境变量、公式和源码地图里找。中文、English、标识符都可以。", "Looks through 36 chapters, 54 interview questions, terms, environment variables, formulas and the source map. Chinese, English and identifiers all work.";
    search_label = "要找什么", "What to look for";
    search_example = "例如：死锁、busbw、NCCL_IB_TIMEOUT、为什么树比环快", "For example: deadlock, busbw, NCCL_IB_TIMEOUT, double binary tree";
    search_nothing_title = "没有找到", "Nothing found";
    search_nothing = "换一个更短的词，或者用英文术语再试；也可以从术语表和学习路径开始找。", "Try a shorter word, or the Chinese term; the glossary and the learning path are other ways in.";
    search_partial = "没有一处同时包含所有的词；下面是包含其中一部分的。", "No place holds all of these words; below are those that hold some.";
    everything = "全部", "Everything";
    more = "下一页", "Next page";
    fewer = "上一页", "Previous page";

    // Reference
    reference = "参考", "Reference";
    reference_lead = "查的时候翻这里：每一条都标明出处，源码以 NCCL 2.22.3 为准。", "For looking things up. Every entry names where it comes from; the source is NCCL 2.22.3.";
    glossary = "术语表", "Glossary";
    glossary_lead = "一件事一个名字。每个术语一句定义，后面是讲它的章。", "One name for one thing: a definition in a sentence, and the chapter that teaches it.";
    environment = "环境变量", "Environment variables";
    environment_lead = "NCCL 2.22.3 读取的全部环境变量：默认值、读取它的源码位置，以及改它会怎样。先测量，再改；改完再测量。", "Every environment variable that NCCL 2.22.3 reads: its default, where the source reads it, and what changing it does. Measure, change, measure again.";
    formulas = "公式表", "Formula sheet";
    formulas_lead = "课程里推导过的公式，字母带单位，后面是推导它的章。", "The formulas derived in the course, letters with units, and the chapter that derives each.";
    source_map = "源码地图", "Source map";
    source_map_lead = "从一个概念到写着它的文件和函数，按一次调用的经过排列。读源码时放在手边。", "From a concept to the file and function where it is written, in the order of a call's life. Keep it beside you while reading the source.";
    filter = "筛选", "Filter";
    filter_none = "没有匹配的条目。", "No entry matches.";
    unset_means = "默认", "default";
    since = "始于", "since";
    example = "例", "example";
    copy_tex = "TeX", "TeX";
    on_this_page = "本页内容", "On this page";

    // Learning path
    path = "学习路径", "Learning path";
    path_lead = "箭头从先修章指向后续章。只想弄懂某一章，就从它往左走到头，再按顺序读回来。", "Arrows lead from a chapter to those that build on it. To understand just one chapter, follow them left to the start and read your way back.";
    path_graph = "各章先修关系图", "Which chapter builds on which";
    path_start = "可以直接开始读", "Start anywhere here";
    path_needs = "先读", "needs";
    path_leads = "通向", "leads to";
    as_list = "按编号看全部章节", "All chapters by number";

    // Chapter
    open_questions = "带着这些问题继续", "Questions to go on with";
    open_questions_lead = "本章内容会被这样问到。先自己写答案，再看评分和参考答案。", "This is how the chapter is asked about. Write your own answer first, then see the marks and a model answer.";
}

pub fn results(lang: Lang, count: usize) -> String {
    match lang {
        Lang::Zh => format!("{count} 条结果"),
        Lang::En if count == 1 => "1 result".into(),
        Lang::En => format!("{count} results"),
    }
}

pub fn entries(lang: Lang, count: usize) -> String {
    match lang {
        Lang::Zh => format!("{count} 条"),
        Lang::En => format!("{count} entries"),
    }
}

pub fn path_stage(lang: Lang, stage: usize) -> String {
    match lang {
        Lang::Zh => format!("第 {stage} 层"),
        Lang::En => format!("Stage {stage}"),
    }
}

pub fn question_number(lang: Lang, number: u32) -> String {
    match lang {
        Lang::Zh => format!("第 {number} 题"),
        Lang::En => format!("Question {number}"),
    }
}

pub const fn kind(lang: Lang, kind: Kind) -> &'static str {
    match (kind, lang) {
        (Kind::Chapter, Lang::Zh) => "课程",
        (Kind::Chapter, Lang::En) => "Course",
        (Kind::Question, Lang::Zh) => "面试题",
        (Kind::Question, Lang::En) => "Questions",
        (Kind::Term, Lang::Zh) => "术语",
        (Kind::Term, Lang::En) => "Terms",
        (Kind::Variable, _) => environment(lang),
        (Kind::Formula, Lang::Zh) => "公式",
        (Kind::Formula, Lang::En) => "Formulas",
        (Kind::SourceMap, _) => source_map(lang),
        (Kind::Lab, Lang::Zh) => "实验",
        (Kind::Lab, Lang::En) => "Labs",
    }
}

pub const fn variable_kind(lang: Lang, kind: VariableKind) -> &'static str {
    match (kind, lang) {
        (VariableKind::Integer, Lang::Zh) => "整数",
        (VariableKind::Integer, Lang::En) => "integer",
        (VariableKind::Words, Lang::Zh) => "关键词",
        (VariableKind::Words, Lang::En) => "words",
        (VariableKind::Path, Lang::Zh) => "路径",
        (VariableKind::Path, Lang::En) => "path",
        (VariableKind::List, Lang::Zh) => "列表",
        (VariableKind::List, Lang::En) => "list",
        (VariableKind::Size, Lang::Zh) => "字节数",
        (VariableKind::Size, Lang::En) => "bytes",
        (VariableKind::Flag, Lang::Zh) => "开关",
        (VariableKind::Flag, Lang::En) => "switch",
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_sentence_is_there_in_both_languages() {
        crate::strings::tests::both_languages(super::ALL, &["copy_tex"]);
    }
}
