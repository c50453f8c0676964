//! Code with classes: `<span class="hl-k">for</span>`. Colours live in a style sheet ([`style_sheet`]), as the Content-Security-Policy
//! and the two themes want it.
//!
//! C++, Rust, Python, Bash and XML are read by syntect's grammars; TOML and the plan language are small enough for [`words`]. CUDA C++ is
//! C++ in which the words of CUDA are marked too.

mod style;
mod words;

use std::fmt;
use std::str::FromStr;

use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};
use syntect::util::LinesWithEndings;

use crate::html::push_escaped;

pub use style::style_sheet;

/// What a stretch of code is. The class is the key of the style sheet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Comment,
    String,
    Number,
    Keyword,
    Type,
    Function,
    Constant,
    Attribute,
    /// A word of CUDA: qualifiers, built-in variables, intrinsics.
    Cuda,
}

impl Class {
    const fn name(self) -> &'static str {
        match self {
            Class::Comment => "hl-c",
            Class::String => "hl-s",
            Class::Number => "hl-n",
            Class::Keyword => "hl-k",
            Class::Type => "hl-t",
            Class::Function => "hl-f",
            Class::Constant => "hl-l",
            Class::Attribute => "hl-a",
            Class::Cuda => "hl-g",
        }
    }
}

/// Languages that a code fence may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    Cuda,
    Cpp,
    Rust,
    Python,
    Bash,
    Xml,
    Toml,
    Text,
    Plan,
}

impl Language {
    pub const ALL: [Language; 9] = [
        Language::Cuda,
        Language::Cpp,
        Language::Rust,
        Language::Python,
        Language::Bash,
        Language::Xml,
        Language::Toml,
        Language::Text,
        Language::Plan,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Language::Cuda => "cuda",
            Language::Cpp => "cpp",
            Language::Rust => "rust",
            Language::Python => "python",
            Language::Bash => "bash",
            Language::Xml => "xml",
            Language::Toml => "toml",
            Language::Text => "text",
            Language::Plan => "plan",
        }
    }

    const fn grammar(self) -> Option<&'static str> {
        match self {
            Language::Cuda | Language::Cpp => Some("C++"),
            Language::Rust => Some("Rust"),
            Language::Python => Some("Python"),
            Language::Bash => Some("Bourne Again Shell (bash)"),
            Language::Xml => Some("XML"),
            Language::Toml | Language::Text | Language::Plan => None,
        }
    }
}

impl FromStr for Language {
    type Err = ();

    fn from_str(name: &str) -> Result<Language, ()> {
        Language::ALL.into_iter().find(|language| language.name() == name).ok_or(())
    }
}

/// The grammars, loaded once.
pub struct Highlighter {
    syntaxes: SyntaxSet,
    /// Scope prefixes and what they mean; the first that fits wins.
    scopes: Vec<(Scope, Option<Class>)>,
}

impl fmt::Debug for Highlighter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Highlighter").finish_non_exhaustive()
    }
}

impl Default for Highlighter {
    fn default() -> Highlighter {
        let class =
            |prefix: &str, class| (Scope::new(prefix).expect("a scope of a few atoms is valid"), class);
        Highlighter {
            syntaxes: SyntaxSet::load_defaults_newlines(),
            scopes: vec![
                class("comment", Some(Class::Comment)),
                class("string", Some(Class::String)),
                class("constant.character", Some(Class::String)),
                class("constant.numeric", Some(Class::Number)),
                class("constant", Some(Class::Constant)),
                class("variable.language", Some(Class::Constant)),
                class("keyword.operator.word", Some(Class::Keyword)),
                class("keyword.operator", None),
                class("keyword", Some(Class::Keyword)),
                class("storage.type", Some(Class::Type)),
                class("storage", Some(Class::Keyword)),
                class("entity.name.tag", Some(Class::Keyword)),
                class("entity.name.function", Some(Class::Function)),
                class("variable.function", Some(Class::Function)),
                class("support.function", Some(Class::Function)),
                class("support.macro", Some(Class::Function)),
                class("entity.name", Some(Class::Type)),
                class("support.type", Some(Class::Type)),
                class("support.class", Some(Class::Type)),
                class("entity.other.attribute-name", Some(Class::Attribute)),
                class("variable.annotation", Some(Class::Attribute)),
            ],
        }
    }
}

impl Highlighter {
    /// HTML for the inside of a `<code>` element. Text that a grammar cannot follow comes out without colours, never lost.
    pub fn html(&self, language: Language, code: &str) -> String {
        let mut out = Spans::default();
        let grammar = language.grammar().and_then(|name| self.syntaxes.find_syntax_by_name(name));
        match (language, grammar) {
            (Language::Toml, _) => words::toml(code, &mut out),
            (Language::Plan, _) => words::plan(code, &mut out),
            (_, Some(syntax)) => self.by_grammar(syntax, language, code, &mut out),
            _ => out.push(code, None),
        }
        out.finish()
    }

    fn by_grammar(&self, syntax: &SyntaxReference, language: Language, code: &str, out: &mut Spans) {
        let mut state = ParseState::new(syntax);
        let mut stack = ScopeStack::new();
        for line in LinesWithEndings::from(code) {
            let Ok(ops) = state.parse_line(line, &self.syntaxes) else {
                out.push(line, None);
                continue;
            };
            let mut from = 0;
            for (at, op) in ops {
                self.region(&line[from..at], &stack, language, out);
                from = at;
                // A pop from an empty stack would be a fault of the grammar; the colours of this line are all that suffers.
                if stack.apply(&op).is_err() {
                    break;
                }
            }
            self.region(&line[from..], &stack, language, out);
        }
    }

    fn region(&self, text: &str, stack: &ScopeStack, language: Language, out: &mut Spans) {
        let class = self.class(stack);
        let is_code = !matches!(class, Some(Class::Comment | Class::String));
        if language == Language::Cuda && is_code {
            words::cuda(text, class, out);
        } else {
            out.push(text, class);
        }
    }

    fn class(&self, stack: &ScopeStack) -> Option<Class> {
        for scope in stack.as_slice().iter().rev() {
            if let Some((_, class)) = self.scopes.iter().find(|(prefix, _)| prefix.is_prefix_of(*scope)) {
                return *class;
            }
        }
        None
    }
}

/// Collects stretches of code; neighbours of one class become one `<span>`.
#[derive(Debug, Default)]
pub(crate) struct Spans {
    html: String,
    open: Option<Class>,
}

impl Spans {
    pub(crate) fn push(&mut self, text: &str, class: Option<Class>) {
        if text.is_empty() {
            return;
        }
        // White space takes the colour of what stands before it.
        if class != self.open && !text.trim().is_empty() {
            self.close();
            if let Some(class) = class {
                self.html.push_str("<span class=\"");
                self.html.push_str(class.name());
                self.html.push_str("\">");
            }
            self.open = class;
        }
        push_escaped(&mut self.html, text);
    }

    fn close(&mut self) {
        if self.open.take().is_some() {
            self.html.push_str("</span>");
        }
    }

    fn finish(mut self) -> String {
        self.close();
        self.html
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_keeps_the_text_and_marks_something() {
        let highlighter = Highlighter::default();
        let samples = [
            (Language::Cuda, "__global__ void k(float* x) { x[threadIdx.x] = __ldg(x); } // <环>\n", "hl-g"),
            (Language::Cpp, "template <typename T> struct A { int f() const { return 42; } };\n", "hl-k"),
            (Language::Rust, "pub fn f(x: &str) -> u32 { x.len() as u32 } // 注释\n", "hl-k"),
            (Language::Python, "import torch\nx = torch.ones(3)  # 张量\n", "hl-k"),
            (Language::Bash, "export NCCL_DEBUG=INFO && echo \"$NCCL_DEBUG\"\n", "hl-s"),
            (Language::Xml, "<gpu dev=\"0\"><!-- c --></gpu>\n", "hl-a"),
            (Language::Toml, "[term.ring]\nzh = \"环\" # 名\nn = 12\n", "hl-s"),
            (Language::Plan, "plan ring v1 # 环\nrank 0:\n  send 1 input[0]\n", "hl-k"),
            (Language::Text, "a < b & c", "&lt;"),
        ];
        for (language, code, mark) in samples {
            let html = highlighter.html(language, code);
            assert!(html.contains(mark), "{}: {html}", language.name());
            let text = crate::html::label(&html);
            let text = text
                .replace("&lt;", "<")
                .replace("&gt;", ">")
                .replace("&quot;", "\"")
                .replace("&#39;", "'")
                .replace("&amp;", "&");
            assert_eq!(text, code.trim(), "{}", language.name());
        }
    }

    #[test]
    fn cuda_words_are_marked_in_code_and_not_in_comments() {
        let html = Highlighter::default().html(Language::Cuda, "__syncthreads(); // __syncthreads\n");
        assert_eq!(html.matches("hl-g").count(), 1, "{html}");
    }
}
