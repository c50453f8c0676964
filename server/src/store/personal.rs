//! What belongs to whom, in one place: everything that names a person is merged, exported and deleted from the lists here. A test holds
//! them against the schema, so that a new table cannot be forgotten.

use axum::body::Bytes;
use sqlx::{AssertSqlSafe, Sqlite, Transaction};
use tokio::sync::mpsc;

use super::members::{By, audit, is_last_admin};
use super::{Store, StoreError, StoreResult, reading};
use crate::clock::UnixMs;

/// A column that names a user.
struct Reference {
    table: &'static str,
    column: &'static str,
    end: End,
}

/// What becomes of a row when its person asks to be forgotten.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// It goes, with all that hangs on it.
    Deleted,
    /// It stays, since what others did depends on it. The user it names is a row without a name; `also` removes names written elsewhere
    /// in it (`?1` is the user).
    Nameless { also: Option<&'static str> },
}

const fn deleted(table: &'static str, column: &'static str) -> Reference {
    Reference { table, column, end: End::Deleted }
}

const REFERENCES: &[Reference] = &[
    deleted("sessions", "user_id"),
    deleted("enrolments", "user_id"),
    deleted("jobs", "owner"),
    deleted("practice_answers", "user_id"),
    deleted("practice_reveals", "user_id"),
    deleted("sections_read", "user_id"),
    deleted("reading_places", "user_id"),
    deleted("quiz_states", "user_id"),
    deleted("notes", "user_id"),
    Reference {
        table: "sittings",
        column: "candidate",
        end: End::Nameless { also: Some("UPDATE sittings SET name = '' WHERE candidate = ?1") },
    },
];

/// One JSON value a row, by section of the export; `?1` is the user. Hashes of tokens and passwords are left out.
const EXPORT: &[(&str, &str)] = &[
    (
        "account",
        "SELECT json_object('id', id, 'kind', kind, 'role', role, 'email', email, 'display_name', display_name,
                'created_ms', created_ms) FROM users WHERE id = ?1 ORDER BY id",
    ),
    (
        "sessions",
        "SELECT json_object('created_ms', created_ms, 'seen_ms', seen_ms) FROM sessions WHERE user_id = ?1 ORDER BY created_ms",
    ),
    (
        "enrolments",
        "SELECT json_object('class', c.title, 'role', e.role, 'created_ms', e.created_ms)
         FROM enrolments e JOIN classes c ON c.id = e.class_id WHERE e.user_id = ?1 ORDER BY c.id",
    ),
    (
        "jobs",
        "SELECT json_object('id', id, 'lab', lab, 'lab_version', lab_version, 'run_number', run_number,
                'submission', json(submission), 'plan', plan, 'state', state, 'created_ms', created_ms,
                'started_ms', started_ms, 'finished_ms', finished_ms, 'failure', json(failure), 'result', json(result))
         FROM jobs WHERE owner = ?1 ORDER BY id",
    ),
    (
        "answers",
        "SELECT json_object('job', a.job, 'lab_version', a.lab_version, 'created_ms', a.created_ms,
                'answers', json(a.answers)) FROM answers a JOIN jobs j ON j.id = a.job WHERE j.owner = ?1 ORDER BY a.job",
    ),
    (
        "marks",
        "SELECT json_object('job', m.job, 'lab_version', m.lab_version, 'computed_ms', m.computed_ms,
                'marks', json(m.marks)) FROM marks m JOIN jobs j ON j.id = m.job WHERE j.owner = ?1 ORDER BY m.id",
    ),
    (
        "events",
        "SELECT json_object('job', e.job, 'attempt', e.attempt, 'seq', e.seq, 'event', json(e.event))
         FROM events e JOIN jobs j ON j.id = e.job WHERE j.owner = ?1 ORDER BY e.job, e.attempt, e.seq",
    ),
    (
        "artifacts",
        "SELECT json_object('job', a.job, 'name', a.name, 'media_type', a.media_type, 'bytes', a.bytes, 'sha256', a.sha256)
         FROM artifacts a JOIN jobs j ON j.id = a.job WHERE j.owner = ?1 ORDER BY a.job, a.position",
    ),
    (
        "practice_answers",
        "SELECT json_object('question', question, 'follow_up', follow_up, 'at_ms', at_ms, 'text', text, 'seen', seen,
                'version', version, 'grade', json(grade)) FROM practice_answers WHERE user_id = ?1 ORDER BY id",
    ),
    (
        "practice_reveals",
        "SELECT json_object('question', question, 'at_ms', at_ms)
         FROM practice_reveals WHERE user_id = ?1 ORDER BY question",
    ),
    (
        "sections_read",
        "SELECT json_object('chapter', chapter, 'section', section, 'at_ms', at_ms)
         FROM sections_read WHERE user_id = ?1 ORDER BY chapter, section",
    ),
    (
        "reading_places",
        "SELECT json_object('chapter', chapter, 'section', section, 'permille', permille, 'at_ms', at_ms)
         FROM reading_places WHERE user_id = ?1 ORDER BY chapter",
    ),
    (
        "quiz_states",
        "SELECT json_object('chapter', chapter, 'quiz', quiz, 'chapter_version', chapter_version,
                'response', json(response), 'correct', correct, 'version', version, 'at_ms', at_ms)
         FROM quiz_states WHERE user_id = ?1 ORDER BY chapter, quiz",
    ),
    (
        "notes",
        "SELECT json_object('id', id, 'chapter', chapter, 'section', section, 'lang', lang, 'quote', quote,
                'quote_before', quote_before, 'quote_after', quote_after, 'colour', colour, 'text', text,
                'version', version, 'created_ms', created_ms, 'changed_ms', changed_ms)
         FROM notes WHERE user_id = ?1 ORDER BY id",
    ),
    (
        "sittings",
        "SELECT json_object('id', s.id, 'title', a.title, 'name', s.name, 'state', s.state, 'started_ms', s.started_ms,
                'ends_ms', s.ends_ms, 'ended_ms', s.ended_ms)
         FROM sittings s JOIN assessments a ON a.id = s.assessment WHERE s.candidate = ?1 ORDER BY s.id",
    ),
    (
        "drafts",
        "SELECT json_object('sitting', d.sitting, 'question', d.question, 'version', d.version, 'saved_ms', d.saved_ms,
                'text', d.text) FROM drafts d JOIN sittings s ON s.id = d.sitting WHERE s.candidate = ?1
         ORDER BY d.sitting, d.question",
    ),
    (
        "draft_versions",
        "SELECT json_object('sitting', d.sitting, 'question', d.question, 'version', d.version, 'saved_ms', d.saved_ms,
                'text', d.text) FROM draft_versions d JOIN sittings s ON s.id = d.sitting WHERE s.candidate = ?1
         ORDER BY d.sitting, d.question, d.version",
    ),
    (
        "sitting_events",
        "SELECT json_object('sitting', e.sitting, 'at_ms', e.at_ms, 'event', json(e.event))
         FROM sitting_events e JOIN sittings s ON s.id = e.sitting WHERE s.candidate = ?1 ORDER BY e.id",
    ),
    (
        "audit_log",
        "SELECT json_object('at_ms', at_ms, 'what', what, 'subject', subject, 'old', old, 'new', new, 'why', why)
         FROM audit_log WHERE who = ?1 OR subject = ?1 ORDER BY id",
    ),
];

/// Rows of the export read at a time.
const PAGE: i64 = 500;

/// Of an export.
pub type Piece = Result<Bytes, StoreError>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forgotten {
    Done,
    /// Nobody could give roles any more.
    LastAdmin,
}

/// Moves what a guest did into an account, and ends the guest. A member's work is never moved.
pub(super) async fn merge_guest(
    tx: &mut Transaction<'static, Sqlite>,
    guest: &str,
    member: &str,
    now: UnixMs,
) -> StoreResult<()> {
    let is_guest: bool =
        sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM users WHERE id = ? AND kind = 'guest')")
            .bind(guest)
            .fetch_one(&mut **tx)
            .await?;
    if !is_guest {
        return Ok(());
    }
    // The guest's runs of a lab are numbered on after the account's own, in their order. Their seeds stay: the runs are what they were.
    let labs: Vec<(String, i64)> = sqlx::query_as(
        "SELECT g.lab, (SELECT coalesce(max(run_number), 0) FROM jobs WHERE owner = ?2 AND lab = g.lab)
         FROM jobs g WHERE g.owner = ?1 GROUP BY g.lab",
    )
    .bind(guest)
    .bind(member)
    .fetch_all(&mut **tx)
    .await?;
    for (lab, last) in labs {
        sqlx::query("UPDATE jobs SET owner = ?2, run_number = run_number + ?3 WHERE owner = ?1 AND lab = ?4")
            .bind(guest)
            .bind(member)
            .bind(last)
            .bind(lab)
            .execute(&mut **tx)
            .await?;
    }
    reading::keep_newest(tx, guest, member).await?;
    for Reference { table, column, .. } in REFERENCES.iter().filter(|r| r.table != "sessions") {
        // What the account has already (a class, say) stays as the account has it.
        let sql = format!("UPDATE OR IGNORE {table} SET {column} = ?2 WHERE {column} = ?1");
        sqlx::query(AssertSqlSafe(sql)).bind(guest).bind(member).execute(&mut **tx).await?;
    }
    sqlx::query("DELETE FROM users WHERE id = ?").bind(guest).execute(&mut **tx).await?;
    let by = By { who: member, why: "signed in in the guest's browser" };
    audit(tx, by, "account.merge", member, Some(guest), Some(member), now).await
}

impl Store {
    /// Deletes a person's data. What others' work depends on stays, and names an empty row.
    pub async fn forget(&self, user: &str, now: UnixMs) -> StoreResult<Forgotten> {
        let mut tx = self.begin_durable().await?;
        if is_last_admin(&mut tx, user).await? {
            return Ok(Forgotten::LastAdmin);
        }
        let mut needed = false;
        for Reference { table, column, end } in REFERENCES {
            match end {
                End::Deleted => {
                    let sql = format!("DELETE FROM {table} WHERE {column} = ?1");
                    sqlx::query(AssertSqlSafe(sql)).bind(user).execute(&mut *tx).await?;
                }
                End::Nameless { also } => {
                    if let Some(also) = also {
                        sqlx::query(*also).bind(user).execute(&mut *tx).await?;
                    }
                    let sql = format!("SELECT EXISTS (SELECT 1 FROM {table} WHERE {column} = ?1)");
                    needed |= sqlx::query_scalar::<_, bool>(AssertSqlSafe(sql))
                        .bind(user)
                        .fetch_one(&mut *tx)
                        .await?;
                }
            }
        }
        let end = if needed {
            "UPDATE users SET kind = 'guest', role = 'learner', email = NULL, password_hash = NULL,
                              display_name = NULL WHERE id = ?"
        } else {
            "DELETE FROM users WHERE id = ?"
        };
        sqlx::query(end).bind(user).execute(&mut *tx).await?;
        let by = By { who: user, why: "the person asked" };
        audit(&mut tx, by, "account.delete", user, None, None, now).await?;
        tx.commit().await?;
        Ok(Forgotten::Done)
    }

    /// Guests of whom nothing is stored and who were not seen since `before` are dropped. Returns how many.
    pub async fn forget_idle_guests(&self, before: UnixMs) -> StoreResult<u64> {
        let nothing: String = REFERENCES
            .iter()
            .filter(|r| r.table != "sessions")
            .map(|Reference { table, column, .. }| {
                format!(" AND NOT EXISTS (SELECT 1 FROM {table} WHERE {column} = users.id)")
            })
            .collect();
        let sql = format!(
            "DELETE FROM users WHERE kind = 'guest' AND created_ms < ?1
             AND NOT EXISTS (SELECT 1 FROM sessions WHERE user_id = users.id AND seen_ms >= ?1){nothing}"
        );
        let done = sqlx::query(AssertSqlSafe(sql)).bind(before.0).execute(&self.write).await?;
        Ok(done.rows_affected())
    }

    /// Everything stored on a person, as one JSON document in pieces: an object with one list a section. Read a page at a time, so that
    /// a slow browser holds no connection. Ends early when nobody listens any more.
    pub async fn export(&self, user: &str, now: UnixMs, out: &mpsc::Sender<Piece>) -> StoreResult<()> {
        let mut piece = format!("{{\"exported_ms\":{}", now.0);
        for (section, sql) in EXPORT {
            piece.push_str(&format!(",\n\"{section}\":["));
            let paged = format!("{sql} LIMIT {PAGE} OFFSET ?2");
            for page in 0.. {
                let rows: Vec<String> = sqlx::query_scalar(AssertSqlSafe(paged.clone()))
                    .bind(user)
                    .bind(page * PAGE)
                    .fetch_all(&self.read)
                    .await?;
                if page > 0 && !rows.is_empty() {
                    piece.push(',');
                }
                piece.push_str(&rows.join(",\n"));
                if out.send(Ok(std::mem::take(&mut piece).into())).await.is_err() {
                    return Ok(());
                }
                if i64::try_from(rows.len()).is_ok_and(|n| n < PAGE) {
                    break;
                }
            }
            piece.push(']');
        }
        piece.push_str("}\n");
        let _ = out.send(Ok(piece.into())).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[tokio::test]
    async fn every_column_that_names_a_user_is_in_the_list() {
        let folder = std::env::temp_dir().join(format!("ringlab-personal-{}", uuid::Uuid::now_v7()));
        std::fs::create_dir_all(&folder).unwrap();
        let store = Store::open(&folder.join("ringlab.db")).await.unwrap();
        let columns: Vec<(String, String)> = sqlx::query_as(
            "SELECT m.name, f.\"from\" FROM sqlite_schema m JOIN pragma_foreign_key_list(m.name) f
             WHERE m.type = 'table' AND f.\"table\" = 'users'",
        )
        .fetch_all(&store.read)
        .await
        .unwrap();
        let schema: BTreeSet<_> = columns.into_iter().collect();
        let listed: BTreeSet<_> =
            REFERENCES.iter().map(|r| (r.table.to_owned(), r.column.to_owned())).collect();
        assert_eq!(listed, schema, "REFERENCES (left) and the schema (right); add to EXPORT too");
        for (section, sql) in EXPORT {
            assert!(sql.contains("ORDER BY"), "{section} is read in pages");
        }
        let (out, mut pieces) = mpsc::channel(100);
        store.export("nobody", UnixMs(7), &out).await.unwrap();
        drop(out);
        let mut text = Vec::new();
        while let Some(piece) = pieces.recv().await {
            text.extend_from_slice(&piece.unwrap());
        }
        let export: serde_json::Value = serde_json::from_slice(&text).unwrap();
        for (section, _) in EXPORT {
            assert_eq!(export[section], serde_json::json!([]), "{section}");
        }
        store.close().await;
        std::fs::remove_dir_all(folder).unwrap();
    }
}
