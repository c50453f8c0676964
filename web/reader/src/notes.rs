//! The notes of a chapter as the reader sees them: what the server has, and over it what is on its way. Pure.

use std::collections::HashMap;
use std::ops::Range;

use ringlab_content::reading::{NewNote, Note};

use crate::outbox::Write;

#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    Stored,
    /// Not on the server yet.
    Pending,
    /// Changed elsewhere; what it says there.
    Conflict(Note),
    Refused(String),
    /// Just deleted here; can be undone.
    Deleted,
}

/// Whether the passage is still in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Passage {
    /// The note is on the section as a whole.
    None,
    Found(Range<u32>),
    Lost,
    /// It is in the other language's text.
    Elsewhere,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub note: Note,
    pub standing: Standing,
    pub passage: Passage,
}

#[derive(Debug, Default)]
pub struct Notes {
    pub stored: Vec<Note>,
    pub conflicts: HashMap<String, Note>,
    pub refused: HashMap<String, String>,
    pub deleted: HashMap<String, Note>,
}

impl Notes {
    pub fn store(&mut self, note: Note) {
        match self.stored.iter_mut().find(|n| n.id == note.id) {
            Some(old) => *old = note,
            None => self.stored.push(note),
        }
    }

    /// In the order of the text. `place` finds a note's passage, `rank` is the place of its section.
    pub fn entries(
        &self,
        pending: &[Write],
        place: impl Fn(&Note) -> Passage,
        rank: impl Fn(&str) -> usize,
    ) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::new();
        for note in &self.stored {
            if !pending.iter().any(|w| matches!(w, Write::Delete { id, .. } if *id == note.id)) {
                entries.push(Entry {
                    note: note.clone(),
                    standing: Standing::Stored,
                    passage: Passage::None,
                });
            }
        }
        for write in pending {
            let Write::Note { note: new, base, .. } = write else { continue };
            let standing = match (self.conflicts.get(&new.id), self.refused.get(&new.id)) {
                (Some(theirs), _) => Standing::Conflict(theirs.clone()),
                (None, Some(why)) => Standing::Refused(why.clone()),
                (None, None) => Standing::Pending,
            };
            match entries.iter_mut().find(|e| e.note.id == new.id) {
                Some(entry) => {
                    entry.note.colour = new.colour;
                    entry.note.text.clone_from(&new.text);
                    entry.standing = standing;
                }
                None => entries.push(Entry { note: made(new, *base), standing, passage: Passage::None }),
            }
        }
        for note in self.deleted.values() {
            if !entries.iter().any(|e| e.note.id == note.id) {
                entries.push(Entry {
                    note: note.clone(),
                    standing: Standing::Deleted,
                    passage: Passage::None,
                });
            }
        }
        for entry in &mut entries {
            entry.passage = place(&entry.note);
        }
        entries.sort_by_key(|e| {
            let at = match &e.passage {
                Passage::Found(range) => range.start,
                _ => 0,
            };
            (rank(&e.note.section), at, e.note.created_ms, e.note.id.clone())
        });
        entries
    }
}

/// A note that the server has not answered for yet: it comes last in its place.
fn made(new: &NewNote, version: u64) -> Note {
    Note {
        id: new.id.clone(),
        section: new.section.clone(),
        lang: new.lang.clone(),
        quote: new.quote.clone(),
        colour: new.colour,
        text: new.text.clone(),
        version,
        created_ms: i64::MAX,
        changed_ms: i64::MAX,
    }
}

/// The note as it is sent.
pub fn to_send(note: &Note) -> NewNote {
    NewNote {
        id: note.id.clone(),
        section: note.section.clone(),
        lang: note.lang.clone(),
        quote: note.quote.clone(),
        colour: note.colour,
        text: note.text.clone(),
    }
}

#[cfg(test)]
mod tests {
    use ringlab_content::reading::Colour;

    use super::*;

    fn note(id: &str, section: &str, text: &str) -> Note {
        let new = NewNote {
            id: id.into(),
            section: section.into(),
            lang: "en".into(),
            quote: None,
            colour: Colour::Yellow,
            text: text.into(),
        };
        Note { version: 1, created_ms: 5, changed_ms: 5, ..made(&new, 1) }
    }

    fn entries(notes: &Notes, pending: &[Write]) -> Vec<(String, String, Standing)> {
        let rank = |section: &str| ["a", "b"].iter().position(|s| *s == section).unwrap_or(9);
        let all = notes.entries(pending, |_| Passage::None, rank);
        all.into_iter().map(|e| (e.note.id, e.note.text, e.standing)).collect()
    }

    fn write(note: &Note) -> Write {
        Write::Note { folder: "f".into(), base: note.version, note: to_send(note) }
    }

    #[test]
    fn what_is_on_its_way_is_shown_over_what_is_stored() {
        let notes =
            Notes { stored: vec![note("2", "b", "old"), note("1", "a", "first")], ..Notes::default() };
        let pending = [write(&note("2", "b", "new")), write(&note("3", "a", "more"))];
        let shown = entries(&notes, &pending);
        let flat: Vec<(&str, &str)> =
            shown.iter().map(|(id, text, _)| (id.as_str(), text.as_str())).collect();
        assert_eq!(flat, [("1", "first"), ("3", "more"), ("2", "new")]);
        assert_eq!(shown[2].2, Standing::Pending);
    }

    #[test]
    fn a_deleted_note_stays_to_be_undone_and_comes_back_whole() {
        let mut notes = Notes { stored: vec![note("1", "a", "x")], ..Notes::default() };
        notes.deleted.insert("1".into(), note("1", "a", "x"));
        let delete = Write::Delete { folder: "f".into(), id: "1".into(), base: 1 };
        assert_eq!(entries(&notes, &[delete])[0].2, Standing::Deleted);
        notes.deleted.clear();
        assert_eq!(entries(&notes, &[write(&note("1", "a", "x"))])[0].2, Standing::Pending);
    }

    #[test]
    fn a_conflict_shows_both_texts() {
        let theirs = note("1", "a", "theirs");
        let mut notes = Notes { stored: vec![theirs.clone()], ..Notes::default() };
        notes.conflicts.insert("1".into(), theirs.clone());
        let shown = entries(&notes, &[write(&note("1", "a", "mine"))]);
        assert_eq!((shown[0].1.as_str(), &shown[0].2), ("mine", &Standing::Conflict(theirs)));
    }
}
