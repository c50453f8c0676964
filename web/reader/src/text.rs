//! The chapter's prose as one text, and the way between its positions and the document's.

use std::ops::Range;

use ringlab_content::reading::Quote;
use wasm_bindgen::JsCast;
use web_sys::{Element, Node};

use crate::anchor::Flat;
use crate::dom;

/// What is not the chapter's own prose, or stands there twice.
const SKIPPED: &str = ".katex-mathml, .anchor, .no-wasm, .needs-wasm, .visually-hidden, .terms, leptos-island, svg, script, style, button, select, [popover], [role=tooltip]";

/// Text nodes in order, each with where it begins, in UTF-16 units.
pub struct TextMap {
    nodes: Vec<(Node, u32)>,
    length: u32,
    flat: Flat,
    /// Where each section's heading begins.
    sections: Vec<(String, u32)>,
}

impl TextMap {
    pub fn of(root: &Element, sections: &[String]) -> TextMap {
        let mut map = TextMap { nodes: vec![], length: 0, flat: Flat::default(), sections: vec![] };
        let mut raw = String::new();
        let parts = root.query_selector_all(".prose");
        if let Ok(parts) = parts {
            for i in 0..parts.length() {
                let Some(part) = parts.item(i).and_then(|n| n.dyn_into::<Element>().ok()) else { continue };
                // Not a quiz's, and not the prose of a part that is left out.
                if part.closest(&format!(".quiz, {SKIPPED}")).is_ok_and(|found| found.is_none()) {
                    map.walk(&part, sections, &mut raw);
                    map.push_break(&mut raw);
                }
            }
        }
        map.flat = Flat::new(&raw);
        map
    }

    fn push_break(&mut self, raw: &mut String) {
        raw.push('\n');
        self.length += 1;
    }

    fn walk(&mut self, parent: &Element, sections: &[String], raw: &mut String) {
        let mut next = parent.first_child();
        while let Some(node) = next {
            next = node.next_sibling();
            if node.node_type() == Node::TEXT_NODE {
                let text = node.text_content().unwrap_or_default();
                let length = text.encode_utf16().count() as u32;
                raw.push_str(&text);
                self.nodes.push((node, self.length));
                self.length += length;
            } else if let Ok(element) = node.dyn_into::<Element>() {
                if element.matches(SKIPPED).unwrap_or(false) {
                    continue;
                }
                let id = element.id();
                if !id.is_empty() && sections.contains(&id) {
                    self.sections.push((id, self.length));
                }
                self.walk(&element, sections, raw);
            }
        }
    }

    /// What a range of the document covers of the prose.
    pub fn positions(&self, range: &web_sys::Range) -> Option<Range<u32>> {
        let end_of = |i: usize| self.nodes.get(i + 1).map_or(self.length, |(_, at)| *at);
        let before = |node: &Node, offset: u32| range.compare_point(node, offset).is_ok_and(|at| at < 0);
        let after = |node: &Node| range.compare_point(node, 0).is_ok_and(|at| at > 0);
        let length = |node: &Node| node.text_content().map_or(0, |t| t.encode_utf16().count() as u32);
        let first = self.nodes.partition_point(|(node, _)| before(node, length(node)));
        let last = self.nodes.partition_point(|(node, _)| !after(node)).checked_sub(1)?;
        if first > last {
            return None;
        }
        let within = |i: usize, container: Result<Node, _>, offset: Result<u32, _>| {
            let (node, at) = self.nodes.get(i)?;
            let same = container.is_ok_and(|c: Node| c.is_same_node(Some(node)));
            same.then(|| offset.ok().map(|o: u32| at + o)).flatten()
        };
        let start = within(first, range.start_container(), range.start_offset());
        let end = within(last, range.end_container(), range.end_offset());
        let (start, end) = (start.unwrap_or(self.nodes[first].1), end.unwrap_or(end_of(last)));
        (start < end).then_some(start..end)
    }

    pub fn quote(&self, positions: Range<u32>) -> Option<Quote> {
        self.flat.quote(positions)
    }

    /// The section that a position is in; before the first heading there is none.
    pub fn section_at(&self, position: u32) -> Option<&str> {
        let after = self.sections.partition_point(|(_, at)| *at <= position);
        after.checked_sub(1).map(|i| self.sections[i].0.as_str())
    }

    pub fn find(&self, quote: &Quote, section: &str) -> Option<Range<u32>> {
        let i = self.sections.iter().position(|(id, _)| id == section);
        let extent =
            i.map(|i| self.sections[i].1..self.sections.get(i + 1).map_or(self.length, |(_, at)| *at));
        self.flat.find(quote, extent)
    }

    /// Positions as a range of the document.
    pub fn range(&self, positions: &Range<u32>) -> Option<web_sys::Range> {
        let range = dom::document().create_range().ok()?;
        let node =
            |at: u32| self.nodes.get(self.nodes.partition_point(|(_, from)| *from <= at).checked_sub(1)?);
        let (start, from) = node(positions.start)?;
        range.set_start(start, positions.start - from).ok()?;
        // The last unit is inside its node, the end may be the beginning of the next.
        let (end, from) = node(positions.end.checked_sub(1)?)?;
        range.set_end(end, positions.end - from).ok()?;
        Some(range)
    }
}
