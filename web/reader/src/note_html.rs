//! A note in the panel, as HTML. What somebody wrote or the text says goes through [`esc`].

use ringlab_content::reading::Colour;

use crate::dom::esc;
use crate::notes::{Entry, Passage, Standing};
use crate::panel::{Edit, can_jump};
use crate::strings::{self as s, Lang};

/// The panel around the list.
pub fn frame(lang: Lang) -> String {
    format!(
        "<div class=\"reader-head\"><h2>{}</h2>\
         <button type=\"button\" class=\"button quiet\" data-act=\"close\">{}</button></div>\
         <p class=\"actions\"><button type=\"button\" class=\"button\" data-act=\"new\">{}</button>\
         <a href=\"/{}/notes\">{}</a></p><div class=\"reader-form\"></div><div class=\"reader-list\"></div>",
        s::notes_here(lang),
        s::close(lang),
        s::new_note(lang),
        lang.code(),
        s::all_notes(lang),
    )
}

/// `folder`: the chapter's.
pub fn item(lang: Lang, entry: &Entry, folder: &str, title: &str) -> String {
    let note = &entry.note;
    let mut html = format!(
        "<li class=\"note {}\" data-id=\"{}\" tabindex=\"-1\"><p class=\"eyebrow\">{}</p>",
        note.colour.name(),
        esc(&note.id),
        esc(title)
    );
    if let Some(quote) = &note.quote {
        html.push_str(&quoted(&note.lang, &quote.exact));
    }
    if !note.text.is_empty() {
        html.push_str(&format!("<p class=\"note-text\">{}</p>", esc(&note.text)));
    }
    if entry.standing == Standing::Deleted {
        html.push_str(&format!(
            "<p class=\"note-state\" role=\"status\">{} {}</p></li>",
            s::deleted(lang),
            button("undo", s::undo(lang), "")
        ));
        return html;
    }
    let mut state = |class: &str, text: &str| {
        html.push_str(&format!("<p class=\"note-state {class}\">{text}</p>"));
    };
    match &entry.passage {
        Passage::Lost => state("lost", s::lost(lang)),
        Passage::Elsewhere => {
            let (of, id, section) = (esc(&note.lang), esc(&note.id), esc(&note.section));
            let path = format!("/{of}/course/{}?note={id}#{section}", esc(folder));
            state("", &format!("<a href=\"{path}\">{}</a>", s::elsewhere(lang)));
        }
        Passage::None | Passage::Found(_) => {}
    }
    match &entry.standing {
        Standing::Pending => state("pending", s::pending(lang)),
        Standing::Refused(why) => state("trouble", &format!("{}{}", s::refused(lang), esc(why))),
        Standing::Conflict(theirs) => {
            let text = format!(
                "{} <q>{}</q> {} {}",
                s::conflict(lang),
                esc(&theirs.text),
                button("mine", s::keep_mine(lang), ""),
                button("theirs", s::take_theirs(lang), "")
            );
            state("trouble", &text);
        }
        Standing::Stored | Standing::Deleted => {}
    }
    // Many notes have the same buttons: each says which note it is for.
    let words = note.quote.as_ref().map_or(note.text.as_str(), |q| q.exact.as_str());
    let words: String = words.chars().take(40).collect();
    html.push_str("<p class=\"actions\">");
    if can_jump(entry) {
        html.push_str(&button("jump", s::jump(lang), &words));
    }
    html.push_str(&button("edit", s::edit(lang), &words));
    html.push_str(&button("delete", s::delete(lang), &words));
    html.push_str("</p></li>");
    html
}

fn button(act: &str, label: &str, of: &str) -> String {
    let name = if of.is_empty() { String::new() } else { format!(" aria-label=\"{label}: {}\"", esc(of)) };
    format!("<button type=\"button\" class=\"link\" data-act=\"{act}\"{name}>{label}</button>")
}

fn quoted(lang: &str, exact: &str) -> String {
    let tag = if lang == "en" { "en" } else { "zh-Hans" };
    format!("<blockquote lang=\"{tag}\">{}</blockquote>", esc(exact))
}

pub fn form(lang: Lang, edit: &Edit) -> String {
    let note = &edit.note;
    let quote = note.quote.as_ref().map_or_else(String::new, |q| quoted(&note.lang, &q.exact));
    let colours: String = Colour::ALL
        .into_iter()
        .map(|colour| {
            let name = match colour {
                Colour::Yellow => s::yellow(lang),
                Colour::Green => s::green(lang),
                Colour::Blue => s::blue(lang),
                Colour::Pink => s::pink(lang),
            };
            let checked = if colour == note.colour { " checked" } else { "" };
            format!(
                "<label class=\"note-colour {0}\"><input type=\"radio\" name=\"reader-colour\" value=\"{0}\"{checked} /> {name}</label>",
                colour.name()
            )
        })
        .collect();
    format!(
        "<form class=\"note-form\" data-id=\"{}\">{quote}<label for=\"reader-text\">{}</label>\
         <textarea id=\"reader-text\" rows=\"5\" maxlength=\"4000\">\n{}</textarea>\
         <fieldset><legend>{}</legend>{colours}</fieldset><p class=\"form-error\" role=\"alert\" hidden></p>\
         <p class=\"actions\"><button type=\"submit\" class=\"button primary\">{}</button>\
         <button type=\"button\" class=\"button quiet\" data-act=\"cancel\">{}</button></p></form>",
        esc(&note.id),
        s::your_note(lang),
        esc(&note.text),
        s::colour(lang),
        s::save(lang),
        s::cancel(lang)
    )
}

#[cfg(test)]
mod tests {
    use ringlab_content::reading::{Note, Quote};

    use super::*;

    #[test]
    fn what_a_reader_wrote_is_text() {
        let hostile = "\"><script>alert(1)</script>";
        let quote = Quote { before: String::new(), exact: hostile.into(), after: String::new() };
        let note = Note {
            id: hostile.into(),
            section: "s".into(),
            lang: "zh".into(),
            quote: Some(quote),
            colour: Colour::Pink,
            text: hostile.into(),
            version: 1,
            created_ms: 0,
            changed_ms: 0,
        };
        for standing in
            [Standing::Stored, Standing::Conflict(note.clone()), Standing::Refused(hostile.into())]
        {
            let entry = Entry { note: note.clone(), standing, passage: Passage::Lost };
            let html = item(Lang::En, &entry, hostile, hostile);
            assert!(!html.contains("<script") && !html.contains("=\"\">"), "{html}");
            assert!(html.contains(s::lost(Lang::En)), "{html}");
        }
        let edit = Edit { note: crate::notes::to_send(&note), base: 1 };
        assert!(!form(Lang::Zh, &edit).contains("<script"));
    }
}
