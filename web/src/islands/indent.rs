//! Indenting lines of a text field by key, since Tab leaves the field.

/// Two spaces before every line that the selection touches, or up to two fewer. Positions are UTF-16 units, as a textarea counts.
/// Returns the range to replace and what with.
pub fn lines(text: &str, start: u32, end: u32, out: bool) -> (u32, u32, String) {
    let units: Vec<u16> = text.encode_utf16().collect();
    let newline = u16::from(b'\n');
    let (start, end) = ((start as usize).min(units.len()), (end as usize).min(units.len()));
    let first = units[..start].iter().rposition(|&u| u == newline).map_or(0, |at| at + 1);
    let last = units[end..].iter().position(|&u| u == newline).map_or(units.len(), |at| end + at);
    let block = String::from_utf16_lossy(&units[first..last.max(first)]);
    let shifted = |line: &str| {
        if out {
            let spaces = line.len() - line.trim_start_matches(' ').len();
            line[spaces.min(2)..].to_owned()
        } else {
            format!("  {line}")
        }
    };
    let text = block.split('\n').map(shifted).collect::<Vec<_>>().join("\n");
    (first as u32, last as u32, text)
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn every_line_the_selection_touches_moves() {
        assert_eq!(lines("a\nb\nc", 2, 2, false), (2, 3, "  b".into()));
        assert_eq!(lines("a\nb\nc", 0, 3, false), (0, 3, "  a\n  b".into()));
        assert_eq!(lines("环𝟙\n  x", 6, 6, true), (4, 7, "x".into()));
        assert_eq!(lines(" a", 0, 0, true), (0, 2, "a".into()));
        assert_eq!(lines("", 0, 0, false), (0, 0, "  ".into()));
    }
}
