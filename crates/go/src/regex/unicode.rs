//! The names that `\p{…}` takes.

/// General categories by their short names.
const CATEGORIES: &str = "C Cc Cf Cn Co Cs L LC Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm \
    So Z Zl Zp Zs";

/// Long names of categories.
const ALIASES: &str = "Cased_Letter=LC Close_Punctuation=Pe Combining_Mark=M Connector_Punctuation=Pc Control=Cc \
    Currency_Symbol=Sc Dash_Punctuation=Pd Decimal_Number=Nd Enclosing_Mark=Me Final_Punctuation=Pf Format=Cf \
    Initial_Punctuation=Pi Letter=L Letter_Number=Nl Line_Separator=Zl Lowercase_Letter=Ll Mark=M Math_Symbol=Sm \
    Modifier_Letter=Lm Modifier_Symbol=Sk Nonspacing_Mark=Mn Number=N Open_Punctuation=Ps Other=C Other_Letter=Lo \
    Other_Number=No Other_Punctuation=Po Other_Symbol=So Paragraph_Separator=Zp Private_Use=Co Punctuation=P \
    Separator=Z Space_Separator=Zs Spacing_Mark=Mc Surrogate=Cs Symbol=S Titlecase_Letter=Lt Unassigned=Cn \
    Uppercase_Letter=Lu cntrl=Cc digit=Nd punct=P";

/// Scripts.
const SCRIPTS: &str = "Adlam Ahom Anatolian_Hieroglyphs Arabic Armenian Avestan Balinese Bamum Bassa_Vah Batak Bengali \
    Bhaiksuki Bopomofo Brahmi Braille Buginese Buhid Canadian_Aboriginal Carian Caucasian_Albanian Chakma Cham \
    Cherokee Chorasmian Common Coptic Cuneiform Cypriot Cypro_Minoan Cyrillic Deseret Devanagari Dives_Akuru Dogra \
    Duployan Egyptian_Hieroglyphs Elbasan Elymaic Ethiopic Georgian Glagolitic Gothic Grantha Greek Gujarati \
    Gunjala_Gondi Gurmukhi Han Hangul Hanifi_Rohingya Hanunoo Hatran Hebrew Hiragana Imperial_Aramaic Inherited \
    Inscriptional_Pahlavi Inscriptional_Parthian Javanese Kaithi Kannada Katakana Kawi Kayah_Li Kharoshthi \
    Khitan_Small_Script Khmer Khojki Khudawadi Lao Latin Lepcha Limbu Linear_A Linear_B Lisu Lycian Lydian Mahajani \
    Makasar Malayalam Mandaic Manichaean Marchen Masaram_Gondi Medefaidrin Meetei_Mayek Mende_Kikakui \
    Meroitic_Cursive Meroitic_Hieroglyphs Miao Modi Mongolian Mro Multani Myanmar Nabataean Nag_Mundari Nandinagari \
    New_Tai_Lue Newa Nko Nushu Nyiakeng_Puachue_Hmong Ogham Ol_Chiki Old_Hungarian Old_Italic Old_North_Arabian \
    Old_Permic Old_Persian Old_Sogdian Old_South_Arabian Old_Turkic Old_Uyghur Oriya Osage Osmanya Pahawh_Hmong \
    Palmyrene Pau_Cin_Hau Phags_Pa Phoenician Psalter_Pahlavi Rejang Runic Samaritan Saurashtra Sharada Shavian \
    Siddham SignWriting Sinhala Sogdian Sora_Sompeng Soyombo Sundanese Syloti_Nagri Syriac Tagalog Tagbanwa Tai_Le \
    Tai_Tham Tai_Viet Takri Tamil Tangsa Tangut Telugu Thaana Thai Tibetan Tifinagh Tirhuta Toto Ugaritic Vai \
    Vithkuqi Wancho Warang_Citi Yezidi Yi Zanabazar_Square";

/// What goes between the braces for the regex crate; none if Go does not know the name.
///
/// Case, underscores, spaces and hyphens do not matter.
pub(super) fn property(name: &str) -> Option<String> {
    let wanted = plain(name);
    let is = |known: &&str| plain(known) == wanted;
    match wanted.as_str() {
        "any" | "assigned" | "ascii" => return Some(wanted),
        _ => {}
    }
    let alias = |pair: &'static str| pair.split_once('=').filter(|(long, _)| is(long)).map(|(_, short)| short);
    let category = CATEGORIES.split(' ').find(is).or_else(|| ALIASES.split(' ').find_map(alias));
    category.map(|name| format!("gc={name}")).or_else(|| SCRIPTS.split(' ').find(is).map(|name| format!("sc={name}")))
}

fn plain(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).map(|c| c.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_regex_crate_knows_every_name() {
        let aliases = ALIASES.split(' ').filter_map(|pair| pair.split('=').next());
        for name in CATEGORIES.split(' ').chain(aliases).chain(SCRIPTS.split(' ')).filter(|name| plain(name) != "cs") {
            let property = property(name).expect(name);
            if property != "gc=Cs" {
                regex::Regex::new(&format!(r"\p{{{property}}}")).expect(name);
            }
        }
    }

    #[test]
    fn names_are_loose_but_closed() {
        for name in ["greek", "LU", "uppercase letter", "Any", "ASCII", "old-persian"] {
            assert!(property(name).is_some(), "{name}");
        }
        for name in ["", "Grek", "Alphabetic", "gc=L", "White_Space", "Klingon"] {
            assert!(property(name).is_none(), "{name}");
        }
    }
}
