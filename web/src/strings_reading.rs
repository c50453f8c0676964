//! Sentences of the reader's own state, where pages show them. Those of the module that keeps it are in `web/reader`.

use ringlab_labs::text::Lang;

use crate::strings::strings;

strings! {
    my_notes = "我的笔记", "My notes";
    notes_lead = "划线和批注按章排列。只有你自己看得到；注册帐号后，换一台设备也还在。", "Highlights and notes, by chapter. Only you see them; with an account they follow you to another device.";
    notes_none = "还没有笔记。打开一章，选中一段文字，就可以划线或写批注。", "There are no notes yet. Open a chapter and select a passage to highlight it or to write a note.";
    notes_export = "导出为 Markdown", "Export as Markdown";
    note_open = "到原文", "Go to the passage";
    note_section_gone = "这一节已不在正文里", "This section is not in the text any more";
    note_chapter_gone = "这一章已不在课程里", "This chapter is not in the course any more";
    note_in_zh = "引自中文版", "quoted from the Chinese text";
    note_in_en = "引自英文版", "quoted from the English text";
    exported_title = "Ringlab 笔记", "Ringlab notes";
}

#[cfg(test)]
mod tests {
    #[test]
    fn both_languages_say_something() {
        for (name, zh, en) in super::ALL {
            assert!(!zh.is_empty() && !en.is_empty(), "{name}");
        }
    }
}
