//! Enums that users see as words, each written once: the variant, its word, and what it means.

/// Defines the enum. The meaning is also the variant's documentation, so that the two cannot differ.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$mark:meta])* $variant:ident = $word:literal: $meaning:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $(#[doc = concat!($meaning, ".")] $(#[$mark])* $variant,)+
        }

        impl $name {
            /// Every one, for tables.
            pub const ALL: [$name; [$($word),+].len()] = [$($name::$variant),+];

            /// The word used in events, logs, tables and metrics.
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
