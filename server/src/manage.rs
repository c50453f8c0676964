//! `ringlab-server account …`: accounts from the command line, beside a running server or without one. Whoever can write the data
//! folder is trusted.

use std::io::{BufRead, Write};
use std::path::Path;

use anyhow::{Context as _, bail};
use clap::Subcommand;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use ringlab_interview::api::{AccountView, Role};
use ringlab_labs::text::Lang;

use crate::clock::UnixMs;
use crate::config::Config;
use crate::email::Email;
use crate::password;
use crate::secret::new_token;
use crate::store::Store;
use crate::store::members::{By, Changed, NewMember, SignedUp};

/// Accounts listed at most.
const LIST: u32 = 100_000;
/// Of a password made here: 120 bits in hex.
const PASSWORD: usize = 30;

#[derive(Debug, Clone, Subcommand)]
pub enum Account {
    /// Make an account and print its password, once.
    Create {
        #[arg(long)]
        email: String,
        #[arg(long, default_value = "learner", value_parser = role())]
        role: Role,
        /// Shown to others; the part of the address before the @ by default.
        #[arg(long)]
        name: Option<String>,
        /// Take the password from the first line of standard input instead of making one.
        #[arg(long)]
        password_stdin: bool,
    },
    /// Give an account another role.
    Role {
        #[arg(long)]
        email: String,
        #[arg(long, value_parser = role())]
        role: Role,
        /// For the audit log.
        #[arg(long, default_value = "on the command line")]
        why: String,
    },
    /// Set a new password and print it, once; the account is signed out everywhere.
    Password {
        #[arg(long)]
        email: String,
        /// Take the password from the first line of standard input instead of making one.
        #[arg(long)]
        password_stdin: bool,
    },
    /// List all accounts.
    List,
}

fn role() -> impl clap::builder::TypedValueParser<Value = Role> {
    PossibleValuesParser::new(Role::ALL.map(Role::name))
        .map(|name| Role::from_name(&name).expect("only names of roles are possible"))
}

/// In the audit log.
const WHO: &str = "command line";

pub async fn run(
    config: &Config,
    what: Account,
    input: impl BufRead,
    mut out: impl Write,
) -> anyhow::Result<()> {
    let store = open(&config.data, matches!(what, Account::Create { .. })).await?;
    let done = act(&store, what, input, &mut out).await;
    store.close().await;
    done
}

async fn open(data: &Path, make: bool) -> anyhow::Result<Store> {
    let file = data.join("ringlab.db");
    if make {
        std::fs::create_dir_all(data)
            .with_context(|| format!("making the data folder {}", data.display()))?;
    } else if !file.exists() {
        bail!(
            "there is no database in {}: name the server's data folder with --data before `account`",
            data.display()
        );
    }
    Store::open(&file).await.with_context(|| format!("opening {}", file.display()))
}

async fn act(store: &Store, what: Account, input: impl BufRead, out: &mut impl Write) -> anyhow::Result<()> {
    match what {
        Account::Create { email, role, name, password_stdin } => {
            let email = parse(&email)?;
            let password = choose(password_stdin, input, &email)?;
            let local = email.0.split('@').next().unwrap_or_default();
            let new = NewMember {
                password_hash: password::hash(&password),
                display_name: name.unwrap_or_else(|| local.to_owned()),
                email: email.0.clone(),
                role,
            };
            let by = By { who: WHO, why: "made on the command line" };
            match store.create_member(&new, by, UnixMs::now()).await? {
                SignedUp::Done(_) => writeln!(out, "{} {}", email.0, role.name())?,
                SignedUp::EmailTaken => bail!(
                    "there is an account with {} already: change it with `account role` or `account password`",
                    email.0
                ),
            }
            tell(password_stdin, &password, out)
        }
        Account::Role { email, role, why } => {
            let account = find(store, &email).await?;
            let by = By { who: WHO, why: &why };
            match store.set_role(id(&account), role, by, UnixMs::now()).await? {
                Changed::Done => writeln!(out, "{email} {}", role.name())?,
                Changed::NoSuchAccount => bail!("the account was deleted a moment ago"),
                Changed::LastAdmin => bail!("{email} is the last admin: make another account an admin first"),
            }
            Ok(())
        }
        Account::Password { email, password_stdin } => {
            let account = find(store, &email).await?;
            let password = choose(password_stdin, input, &parse(&email)?)?;
            let by = By { who: WHO, why: "set on the command line" };
            store.reset_password(id(&account), &password::hash(&password), by, UnixMs::now()).await?;
            writeln!(out, "{email} is signed out everywhere")?;
            tell(password_stdin, &password, out)
        }
        Account::List => {
            for account in store.members(None, LIST).await? {
                let show = |text: &Option<String>| text.clone().unwrap_or_default();
                writeln!(
                    out,
                    "{}\t{}\t{}",
                    account.role.name(),
                    show(&account.email),
                    show(&account.display_name)
                )?;
            }
            Ok(())
        }
    }
}

fn parse(email: &str) -> anyhow::Result<Email> {
    Email::parse(email)
        .with_context(|| format!("`{email}` is no e-mail address; one looks like ada@example.org"))
}

async fn find(store: &Store, email: &str) -> anyhow::Result<AccountView> {
    let email = parse(email)?;
    let account = store.members(Some(&email.0), 1).await?.pop();
    account.with_context(|| format!("there is no account with {}; `account list` shows all", email.0))
}

fn id(account: &AccountView) -> &str {
    account.id.as_deref().unwrap_or_default()
}

fn choose(from_input: bool, mut input: impl BufRead, email: &Email) -> anyhow::Result<String> {
    if !from_input {
        return Ok(new_token()[..PASSWORD].to_owned());
    }
    let mut line = String::new();
    input.read_line(&mut line).context("reading the password from standard input")?;
    let password = line.trim_end_matches(['\r', '\n']).to_owned();
    match password::refuse(&password, &email.0) {
        Some(why) => bail!("{}", why.get(Lang::En)),
        None => Ok(password),
    }
}

fn tell(given: bool, password: &str, out: &mut impl Write) -> anyhow::Result<()> {
    if !given {
        writeln!(out, "password: {password}")?;
    }
    Ok(())
}
