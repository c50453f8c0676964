//! Writes every kind of page, in both languages, with the assets and sample replies of the API into a folder, to be looked at in a browser through any file server:
//! `cargo run -p ringlab-web --features ssr --example preview -- DIR`.

#[path = "../tests/common/mod.rs"]
mod common;

use std::path::Path;
use std::{env, fs, io};

use ringlab_labs::text::Lang;
use ringlab_web::{assets, render};

fn main() -> io::Result<()> {
    let Some(folder) = env::args().nth(1) else {
        eprintln!("usage: preview DIR");
        std::process::exit(2);
    };
    let root = Path::new(&folder);
    for asset in assets() {
        write(&root.join("assets").join(asset.path), asset.bytes)?;
    }
    for lang in Lang::ALL {
        for (path, page) in common::pages() {
            let html = render(common::shell(lang, path), page);
            let file = root.join(lang.code()).join(path.trim_start_matches('/')).join("index.html");
            write(&file, html.as_bytes())?;
        }
    }
    // A file server shows a folder's index: that is the reply.
    for (path, reply) in common::interview::replies() {
        let file = root.join("api/v1").join(path).join("index.html");
        write(&file, reply.to_string().as_bytes())?;
    }
    println!("written to {folder}");
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, bytes)
}
