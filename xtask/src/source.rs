//! Rust source with everything blanked out that is not code.
//!
//! Not a parser: it knows comments, strings and characters well enough that a word in what is left is a word
//! of the program. Line numbers stay as they were.

use std::ops::Range;

/// The code with comments and the contents of literals turned into spaces.
pub(crate) fn code(text: &str) -> String {
    blanked(text, |_| true)
}

/// The code with comments turned into spaces; literals stay.
pub(crate) fn without_comments(text: &str) -> String {
    blanked(text, |start| start == '/')
}

/// The text with the comments and literals turned into spaces whose first character `blanks` picks.
fn blanked(text: &str, blanks: impl Fn(char) -> bool) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = literal_or_comment(&chars, at);
        match end {
            Some(end) => {
                let keep = !blanks(chars[at]);
                code.extend(chars[at..end].iter().map(|&c| if keep || c == '\n' { c } else { ' ' }));
                at = end;
            }
            None => {
                // Whole words at a time, so that the `r` of `for` is not taken for the start of a raw string.
                let start = at;
                while at < chars.len() && is_word(chars[at]) {
                    at += 1;
                }
                at = at.max(start + 1);
                code.extend(&chars[start..at]);
            }
        }
    }
    code
}

/// Where the comment or literal that starts here ends; `None` if none starts here.
fn literal_or_comment(chars: &[char], at: usize) -> Option<usize> {
    let next = |offset: usize| chars.get(at + offset).copied();
    match chars[at] {
        '/' if next(1) == Some('/') => Some(find(chars, at, |c| c == '\n')),
        '/' if next(1) == Some('*') => Some(end_of_block_comment(chars, at)),
        '"' => Some(end_of_quoted(chars, at + 1, '"')),
        '\'' => end_of_char(chars, at),
        'b' if next(1) == Some('\'') => end_of_char(chars, at + 1),
        'b' | 'c' if next(1) == Some('"') => Some(end_of_quoted(chars, at + 2, '"')),
        'b' | 'c' if next(1) == Some('r') => end_of_raw(chars, at + 2),
        'r' => end_of_raw(chars, at + 1),
        _ => None,
    }
}

fn find(chars: &[char], from: usize, end: impl Fn(char) -> bool) -> usize {
    (from..chars.len()).find(|&i| end(chars[i])).unwrap_or(chars.len())
}

fn end_of_block_comment(chars: &[char], at: usize) -> usize {
    let (mut depth, mut i) = (0, at);
    while i < chars.len() {
        match (chars[i], chars.get(i + 1)) {
            ('/', Some('*')) => (depth, i) = (depth + 1, i + 2),
            ('*', Some('/')) => (depth, i) = (depth - 1, i + 2),
            _ => i += 1,
        }
        if depth == 0 {
            return i;
        }
    }
    chars.len()
}

fn end_of_quoted(chars: &[char], mut at: usize, quote: char) -> usize {
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            c if c == quote => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

/// A character literal is one character or an escape; anything else after `'` is a lifetime.
fn end_of_char(chars: &[char], at: usize) -> Option<usize> {
    match (chars.get(at + 1)?, chars.get(at + 2)) {
        ('\\', _) => Some(end_of_quoted(chars, at + 1, '\'')),
        (_, Some('\'')) => Some(at + 3),
        _ => None,
    }
}

/// `at` is behind the `r`. A raw identifier like `r#type` is not a literal.
fn end_of_raw(chars: &[char], at: usize) -> Option<usize> {
    let quote = find(chars, at, |c| c != '#');
    if chars.get(quote) != Some(&'"') {
        return None;
    }
    let hashes = quote - at;
    let closes = |i: usize| {
        chars[i] == '"' && chars.len() - i > hashes && chars[i + 1..=i + hashes].iter().all(|&c| c == '#')
    };
    Some((quote + 1..chars.len()).find(|&i| closes(i)).map_or(chars.len(), |i| i + hashes + 1))
}

pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Byte offsets at which `word` stands on its own.
pub(crate) fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

/// The number of the line at a byte offset, from 1.
pub(crate) fn line(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// The code without the bodies that follow `marker`: `#[cfg(test)]`, `fn from_env`.
pub(crate) fn without_bodies(code: &str, marker: &str) -> String {
    let mut rest = code.to_owned();
    for body in bodies(code, marker) {
        let blank: String = code[body.clone()].chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
        // As many bytes as before, so that the other bodies stay where they are.
        let padding = " ".repeat(body.len() - blank.len());
        rest.replace_range(body, &(padding + &blank));
    }
    rest
}

/// Where the bodies that follow `marker` are, from behind the marker to their end.
pub(crate) fn bodies(code: &str, marker: &str) -> Vec<Range<usize>> {
    let mut bodies = Vec::new();
    let mut from = 0;
    while let Some(found) = code[from..].find(marker) {
        let start = from + found + marker.len();
        from = end_of_item(code, start);
        bodies.push(start..from);
    }
    bodies
}

/// Behind the `}` that closes the first `{`, or behind the `;` that comes before any.
fn end_of_item(code: &str, start: usize) -> usize {
    let mut depth = 0;
    for (at, c) in code[start..].char_indices() {
        match c {
            ';' if depth == 0 => return start + at + 1,
            '{' => depth += 1,
            '}' if depth <= 1 => return start + at + 1,
            '}' => depth -= 1,
            _ => {}
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_code_is_blanked_and_lines_stay() {
        let text =
            "let a = \"word\"; // word\n/* word /* word */ word */ let b = r#\"word \" word\"#;\nword()";
        let code = code(text);
        assert_eq!(words(&code, "word").map(|at| line(&code, at)).collect::<Vec<_>>(), [3]);
        assert_eq!(code.lines().count(), text.lines().count());
        assert!(code.contains("let a =") && code.contains("let b ="));
    }

    #[test]
    fn literals_stay_where_only_comments_go() {
        let kept = without_comments("let a = \"// no comment\"; // word\nlet b = '/';");
        assert_eq!(kept.trim_end(), "let a = \"// no comment\";        \nlet b = '/';");
    }

    #[test]
    fn characters_and_lifetimes_are_told_apart() {
        let text = r#"fn f<'a>(x: &'a str) { let q = '"'; let e = '\''; let n = b'"'; word() } // '"#;
        let code = code(text);
        assert_eq!(words(&code, "word").count(), 1, "{code}");
        assert!(code.contains("<'a>"), "{code}");
    }

    #[test]
    fn a_word_is_a_whole_word() {
        assert_eq!(words("swords word_ word word!", "word").count(), 2);
        let code = code("for x in bar\"word\" { r#word(); br\"word\" }");
        assert_eq!(words(&code, "word").count(), 1, "{code}");
    }

    #[test]
    fn bodies_behind_a_marker_go_and_nothing_else() {
        let code = "fn a() { keep() }\nfn from_env() -> X { if x { drop_me() } }\nfn b() { keep() }";
        let rest = without_bodies(code, "fn from_env");
        assert!(!rest.contains("drop_me"), "{rest}");
        assert_eq!(rest.matches("keep").count(), 2, "{rest}");
        let rest = without_bodies("#[cfg(test)]\nmod tests;\nfn b() { keep() }", "#[cfg(test)]");
        assert!(rest.contains("keep"), "{rest}");
    }
}
