//! Enums that users see as words, each written once: the variant, its word, and what it means.

/// Defines the enum. The meaning is also the variant's documentation, so that the two cannot differ.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($variant:ident = $word:literal: $meaning:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $(#[doc = concat!($meaning, ".")] $variant,)+
        }

        impl $name {
            /// Every one, for tables.
            pub const ALL: [$name; [$($word),+].len()] = [$($name::$variant),+];

            /// The word used in events, logs and metrics.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)+
                }
            }

            /// What it means, in a few words.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $($name::$variant => $meaning,)+
                }
            }
        }
    };
}

pub(crate) use words;
