//! The one form of an id, in files, pages and URLs.

/// Lower-case letters, digits and single hyphens, starting with a letter or digit.
pub(crate) fn is_id(id: &str) -> bool {
    !id.is_empty()
        && id.split('-').all(|part| !part.is_empty())
        && id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}
