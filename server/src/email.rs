//! E-mail addresses as names of accounts. No mail is sent, so that nothing proves whose address it is.

use ringlab_labs::text::Text;

/// Trimmed and in lower case: one address, one account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Email(pub String);

/// RFC 5321 §4.5.3.1.3.
const LENGTH_MAX: usize = 254;

impl Email {
    /// Whatever could be an address: only the receiving server knows more.
    pub fn parse(text: &str) -> Option<Email> {
        let text = text.trim().to_lowercase();
        let (local, domain) = text.rsplit_once('@')?;
        let fine = !local.is_empty()
            && !domain.is_empty()
            && text.len() <= LENGTH_MAX
            && !local.contains('@')
            && !text.chars().any(|c| c.is_whitespace() || c.is_control());
        fine.then_some(Email(text))
    }

    pub fn wanted() -> Text {
        Text::new("请填写邮箱地址，例如 ada@example.org", "give an e-mail address, such as ada@example.org")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_two_sides_and_no_blanks() {
        let parse = |t: &str| Email::parse(t).map(|e| e.0);
        assert_eq!(parse(" Ada@Example.ORG "), Some("ada@example.org".into()));
        assert_eq!(parse("root@localhost"), Some("root@localhost".into()));
        for bad in
            ["", "ada", "@", "a@", "@b", "a b@c", "a@b@c", "a@b\u{7}", &format!("{}@b", "a".repeat(300))]
        {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
