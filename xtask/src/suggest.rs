//! The nearest of the right words to a wrong one.

/// ` (did you mean `X`?)` for the word that is meant most likely, or nothing when none is near.
pub(crate) fn did_you_mean<'a>(wrong: &str, right: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(wrong, right) {
        Some(word) => format!(" (did you mean `{word}`?)"),
        None => String::new(),
    }
}

/// The candidate that the fewest edits turn into, as long as it keeps most of the word.
fn nearest<'a>(wrong: &str, right: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = (wrong.chars().count() / 3).max(2);
    right
        .into_iter()
        .map(|word| (distance(wrong, word), word))
        .filter(|(edits, word)| *edits <= allowed && *edits < word.chars().count())
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, word)| word)
}

/// Edits between two words: insert, delete, replace, or swap two neighbours.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    rows[0] = (0..=b.len()).collect();
    for i in 1..=a.len() {
        rows[i][0] = i;
        for j in 1..=b.len() {
            let replace = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replace.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_wins() {
        let words = ["core", "cli", "election", "examples"];
        assert_eq!(nearest("cor", words), Some("core"));
        assert_eq!(nearest("elction", words), Some("election"));
        assert_eq!(nearest("exmaple", words), Some("examples"));
    }

    #[test]
    fn a_word_that_is_like_none_suggests_none() {
        assert_eq!(nearest("postgres", ["core", "cli"]), None);
        assert_eq!(nearest("", ["ab"]), None);
        assert_eq!(did_you_mean("zzzzzz", ["core"]), "");
    }

    #[test]
    fn swapped_neighbours_are_one_edit() {
        assert_eq!(distance("tset", "test"), 1);
        assert_eq!(distance("tidy", "tidy"), 0);
        assert_eq!(distance("", "abc"), 3);
    }
}
