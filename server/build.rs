//! `sqlx::migrate!` embeds the migrations but does not notice a new file.

fn main() {
    println!("cargo:rerun-if-changed=../migrations/sqlite");
}
