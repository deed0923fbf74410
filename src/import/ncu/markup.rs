//! Parser for the links in the text of NVIDIA's rules: `@section:Identifier:Label@` and `@url:Label:https://…@`.

use crate::model::sections::Piece;

/// Splits the text of a rule into pieces. Invalid links are kept as text.
pub fn split_pieces(text: &str) -> Vec<Piece> {
    let mut out = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('@') {
        let after = &rest[at + 1..];
        let link = after.find('@').and_then(|end| Some((parse_link(&after[..end])?, &after[end + 1..])));
        match link {
            Some((piece, tail)) => {
                plain.push_str(&rest[..at]);
                if !plain.is_empty() {
                    out.push(Piece::Text(std::mem::take(&mut plain)));
                }
                out.push(piece);
                rest = tail;
            }
            None => {
                plain.push_str(&rest[..=at]);
                rest = after;
            }
        }
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        out.push(Piece::Text(plain));
    }
    out
}

fn parse_link(inside: &str) -> Option<Piece> {
    let (kind, rest) = inside.split_once(':')?;
    // Split at the first colon, because URLs contain colons.
    let (first, second) = rest.split_once(':')?;
    match kind {
        "section" => Some(Piece::Section { id: first.to_owned(), label: second.to_owned() }),
        "url" if second.starts_with("http") => Some(Piece::Link { label: first.to_owned(), url: second.to_owned() }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_and_other_at_signs_are_text() {
        let got = split_pieces("See @section:Occupancy:Occupancy@ and the @url:Kernel Guide:https://x.y/z#a:b@. a@b @what:is@");
        assert_eq!(
            got,
            [
                Piece::Text("See ".into()),
                Piece::Section { id: "Occupancy".into(), label: "Occupancy".into() },
                Piece::Text(" and the ".into()),
                Piece::Link { label: "Kernel Guide".into(), url: "https://x.y/z#a:b".into() },
                Piece::Text(". a@b @what:is@".into()),
            ]
        );
        assert!(split_pieces("").is_empty());
        assert_eq!(split_pieces("@"), [Piece::Text("@".into())]);
    }
}
