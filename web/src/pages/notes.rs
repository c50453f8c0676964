//! All of a reader's notes, by chapter, and the same as a Markdown file.

use std::fmt::Write as _;

use leptos::prelude::*;
use ringlab_content::reading::Note;
use ringlab_labs::text::Lang;

use crate::document::{Rendered, address};
use crate::format;
use crate::html::esc;
use crate::page::ChapterNotes;
use crate::strings_reading as tn;

pub(super) fn render(lang: Lang, chapters: &[ChapterNotes]) -> Rendered {
    let none = chapters.is_empty();
    let list: String = chapters.iter().map(|chapter| chapter_html(lang, chapter)).collect();
    let body = view! {
        <div class="page notes-page">
            <header class="page-head">
                <h1>{tn::my_notes(lang)}</h1>
                <p class="lead">{tn::notes_lead(lang)}</p>
                <p class="actions" hidden=none>
                    <a class="button" href=address(lang, "/notes.md") download="">
                        {tn::notes_export(lang)}
                    </a>
                </p>
            </header>
            <div data-reader="notes" data-lang=lang.code()></div>
            <p class="muted" hidden=!none>{tn::notes_none(lang)}</p>
            <div inner_html=list></div>
        </div>
    };
    Rendered {
        title: tn::my_notes(lang).into(),
        description: None,
        section: Some("course"),
        body: body.into_any(),
        islands: false,
    }
}

fn heading(chapter: &ChapterNotes) -> String {
    match chapter.number {
        0 => chapter.title.clone(),
        number => format!("{number} · {}", chapter.title),
    }
}

/// As text: nothing here has a view type of its own, and what the reader wrote goes through [`esc`].
fn chapter_html(lang: Lang, chapter: &ChapterNotes) -> String {
    let title = esc(&heading(chapter));
    let mut html = String::from("<section class=\"notes-chapter\"><h2>");
    match &chapter.folder {
        Some(folder) => {
            let _ =
                write!(html, "<a href=\"{}\">{title}</a></h2>", address(lang, &format!("/course/{folder}")));
        }
        None => {
            let _ = write!(html, "{title}</h2><p class=\"muted\">{}</p>", tn::note_chapter_gone(lang));
        }
    }
    html.push_str("<ol class=\"note-list\">");
    for note in &chapter.notes {
        note_html(&mut html, lang, chapter, note);
    }
    html.push_str("</ol></section>");
    html
}

fn note_html(html: &mut String, lang: Lang, chapter: &ChapterNotes, note: &Note) {
    let _ = write!(html, "<li class=\"note {}\" id=\"note-{}\">", note.colour.name(), esc(&note.id));
    let section = chapter.sections.iter().find(|entry| entry.id == note.section);
    // A heading is the renderer's own HTML.
    let title = section.map(|entry| entry.html.as_str());
    let title = title.or(chapter.folder.is_some().then(|| tn::note_section_gone(lang)));
    if let Some(title) = title {
        let _ = write!(html, "<p class=\"eyebrow\">{title}</p>");
    }
    let own = Lang::from_code(&note.lang).unwrap_or(lang);
    if let Some(quote) = &note.quote {
        let _ = write!(html, "<blockquote lang=\"{}\">{}</blockquote>", own.tag(), esc(&quote.exact));
    }
    if !note.text.is_empty() {
        let _ = write!(html, "<p class=\"note-text\">{}</p>", esc(&note.text));
    }
    html.push_str("<p class=\"meta\">");
    html.push_str(&format::when_ms(note.changed_ms));
    if note.quote.is_some() && own != lang {
        html.push_str(" · ");
        html.push_str(quoted_from(lang, own));
    }
    if let Some(folder) = &chapter.folder {
        let path = format!("/course/{folder}?note={}#{}", esc(&note.id), esc(&note.section));
        let _ = write!(html, " · <a href=\"{}\">{}</a>", address(own, &path), tn::note_open(lang));
    }
    html.push_str("</p></li>");
}

fn quoted_from(lang: Lang, own: Lang) -> &'static str {
    match own {
        Lang::Zh => tn::note_in_zh(lang),
        Lang::En => tn::note_in_en(lang),
    }
}

/// All notes as a Markdown file.
pub fn markdown(lang: Lang, chapters: &[ChapterNotes]) -> String {
    let mut out = format!("# {}\n", tn::exported_title(lang));
    if chapters.is_empty() {
        let _ = write!(out, "\n{}\n", tn::notes_none(lang));
    }
    for chapter in chapters {
        let _ = write!(out, "\n## {}\n", escaped(&heading(chapter)));
        let mut section = None;
        for note in &chapter.notes {
            if section.replace(&note.section) != Some(&note.section) {
                let title = chapter.sections.iter().find(|entry| entry.id == note.section);
                let title = title.map_or_else(|| note.section.clone(), |entry| plain(&entry.html));
                let _ = write!(out, "\n### {}\n", escaped(&title));
            }
            if let Some(quote) = &note.quote {
                let _ = write!(out, "\n> {}\n", escaped(&quote.exact));
            }
            if !note.text.is_empty() {
                let _ = write!(out, "\n{}\n", escaped(&note.text).replace('\n', "  \n"));
            }
        }
    }
    out
}

/// Words of a heading, without its tags.
fn plain(html: &str) -> String {
    let mut text = String::new();
    let mut inside = false;
    for c in html.chars() {
        match c {
            '<' => inside = true,
            '>' if inside => inside = false,
            c if !inside => text.push(c),
            _ => {}
        }
    }
    for (entity, c) in [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")] {
        text = text.replace(entity, c);
    }
    text
}

/// Plain text as Markdown that shows it as it is.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut start = true;
    for c in text.chars() {
        // At the start of a line these begin a list, a heading, a rule or a quote.
        let begins = start && matches!(c, '#' | '+' | '-' | '=' | '>' | '~' | '|');
        if begins || matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '$' | '&') {
            out.push('\\');
        }
        out.push(c);
        start = c == '\n' || (start && c.is_whitespace());
    }
    out
}

#[cfg(test)]
mod tests {
    use ringlab_content::reading::{Colour, Quote};
    use ringlab_content::types::TocEntry;

    use super::*;

    fn chapter(text: &str) -> ChapterNotes {
        let quote = Quote { before: String::new(), exact: "N − 1 <steps>".into(), after: String::new() };
        ChapterNotes {
            number: 12,
            title: "Ring".into(),
            folder: Some("12-ring".into()),
            sections: vec![TocEntry {
                level: 2, id: "time".into(), html: "Time: <em>α</em> &amp; β".into()
            }],
            notes: vec![Note {
                id: "n1".into(),
                section: "time".into(),
                lang: "zh".into(),
                quote: Some(quote),
                colour: Colour::Yellow,
                text: text.into(),
                version: 1,
                created_ms: 0,
                changed_ms: 0,
            }],
        }
    }

    #[test]
    fn what_a_reader_wrote_is_text_in_html_and_in_markdown() {
        let hostile = "<script>alert(1)</script>\n# no heading\n- [x](javascript:1) *a*";
        let html = chapter_html(Lang::En, &chapter(hostile));
        assert!(!html.contains("<script"), "{html}");
        assert!(html.contains("quoted from the Chinese text"), "{html}");
        assert!(html.contains("/zh/course/12-ring?note=n1#time"), "{html}");
        let text = markdown(Lang::En, &[chapter(hostile)]);
        assert!(text.contains("### Time: α \\& β\n"), "{text}");
        assert!(text.contains("\n> N − 1 \\<steps\\>\n"), "{text}");
        for bad in ["\n# no", "\n- [", " *a*"] {
            assert!(!text.contains(bad), "{text}");
        }
    }
}
