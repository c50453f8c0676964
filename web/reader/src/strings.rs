//! What this module says, in both languages.

/// Of the page, `zh` or `en`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lang {
    Zh,
    En,
}

impl Lang {
    pub fn from_code(code: &str) -> Lang {
        if code == "en" { Lang::En } else { Lang::Zh }
    }

    pub const fn code(self) -> &'static str {
        match self {
            Lang::Zh => "zh",
            Lang::En => "en",
        }
    }
}

macro_rules! strings {
    ($($name:ident = $zh:literal, $en:literal;)*) => {
        $(
            #[doc = $en]
            pub const fn $name(lang: Lang) -> &'static str {
                match lang {
                    Lang::Zh => $zh,
                    Lang::En => $en,
                }
            }
        )*

        #[cfg(test)]
        const ALL: &[(&str, &str, &str)] = &[$((stringify!($name), $zh, $en)),*];
    };
}

strings! {
    // Progress
    read_mark = "已读", "read";
    continue_here = "继续阅读", "Continue";
    last_time = "上次读到", "Last time you were at";
    dismiss = "不用了", "Dismiss";
    go_on = "接着读", "Continue reading";

    // Selection
    selection_tools = "划线与批注", "Highlight or note";
    selection_hint = "已选中文字：按 Tab 可划线或写批注，按 Escape 取消", "Text selected: press Tab to highlight it or write a note, Escape to cancel";
    selection_long = "选中的文字太长，最多 2000 个字符", "The selection is too long: at most 2,000 characters";
    highlight = "划线", "Highlight";
    note = "批注", "Note";
    cancel = "取消", "Cancel";

    // Panel
    notes = "笔记", "Notes";
    notes_here = "本章笔记", "Notes on this chapter";
    close = "关闭", "Close";
    all_notes = "全部笔记", "All notes";
    none_here = "本章还没有笔记。选中一段文字就可以划线或写批注。", "No notes on this chapter yet. Select a passage to highlight it or write a note.";
    new_note = "给当前小节写笔记", "Note on this section";
    jump = "到原文", "Go to the passage";
    edit = "编辑", "Edit";
    delete = "删除", "Delete";
    undo = "撤销", "Undo";
    save = "保存", "Save";
    deleted = "已删除。", "Deleted.";
    your_note = "笔记内容（纯文本）", "Your note (plain text)";
    colour = "颜色", "Colour";
    yellow = "黄", "Yellow";
    green = "绿", "Green";
    blue = "蓝", "Blue";
    pink = "粉", "Pink";
    lost = "原文里已找不到这段话", "This passage is not in the text any more";
    elsewhere = "引自另一语言的版本", "Quoted from the other language's text";
    pending = "尚未存到服务器", "Not on the server yet";
    conflict = "这条笔记在别处改过了。别处的内容：", "This note was changed elsewhere. It says there:";
    keep_mine = "保留我的", "Keep mine";
    take_theirs = "用别处的", "Take the other";
    refused = "服务器没有接受：", "The server did not take it: ";
    empty_note = "请写点什么，或取消", "Write something, or cancel";

    // Saving
    saved = "已保存", "Saved";
    saving = "正在保存……", "Saving…";
    offline = "还没保存：暂时连不上服务器，内容留在这个浏览器里，会自动重试", "Not saved yet: the server cannot be reached. It is kept in this browser and tried again";
    unloaded = "没能取得你的阅读记录，会自动重试", "Your reading state could not be fetched; it is tried again";
}

pub fn progress(lang: Lang, read: usize, of: usize) -> String {
    match lang {
        Lang::Zh => format!("已读 {read} / {of} 节"),
        Lang::En => format!("{read} of {of} sections read"),
    }
}

pub fn quizzes(lang: Lang, right: u32, of: u32) -> String {
    match lang {
        Lang::Zh => format!("测验答对 {right} / {of}"),
        Lang::En => format!("{right} of {of} quiz questions right"),
    }
}

pub fn note_count(lang: Lang, n: u32) -> String {
    match (lang, n) {
        (Lang::Zh, n) => format!("{n} 条笔记"),
        (Lang::En, 1) => "1 note".into(),
        (Lang::En, n) => format!("{n} notes"),
    }
}

pub fn chapter(lang: Lang, number: u32, title: &str) -> String {
    match lang {
        Lang::Zh => format!("第 {number} 章 {title}"),
        Lang::En => format!("Chapter {number}: {title}"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn both_languages_say_something() {
        for (name, zh, en) in super::ALL {
            assert!(!zh.is_empty() && !en.is_empty() && zh != en, "{name}");
        }
    }
}
