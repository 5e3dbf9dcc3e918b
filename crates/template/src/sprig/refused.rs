//! Functions of sprig that templates may name and not call.

/// Why a function is refused, and the way out.
pub(crate) struct Refusal {
    names: &'static [&'static str],
    reason: &'static str,
}

/// In every template. What is rendered with them is another text each time, also when nothing has changed, and what decrypts or repacks their
/// results is of no use without them.
const ALWAYS: &[Refusal] = &[
    Refusal {
        names: &[
            "genPrivateKey",
            "genCA",
            "genCAWithKey",
            "genSelfSignedCert",
            "genSelfSignedCertWithKey",
            "genSignedCert",
            "genSignedCertWithKey",
        ],
        reason: "its result is different at every rendering, so that a rule with it never comes to rest; \
                 let cert-manager or another operator make keys and certificates, and read them from their Secret",
    },
    Refusal {
        names: &["buildCustomCert"],
        reason: "it serves only genSignedCert and the like, which are different at every rendering and refused; \
                 let cert-manager or another operator make keys and certificates, and read them from their Secret",
    },
    Refusal {
        names: &["bcrypt", "htpasswd"],
        reason: "its result is different at every rendering, so that a rule with it never comes to rest; \
                 hash the password once, keep the hash in a Secret, and read it from there",
    },
    Refusal {
        names: &["encryptAES"],
        reason: "its result is different at every rendering, so that a rule with it never comes to rest; \
                 keep what is confidential in a Secret, and read it from there",
    },
    Refusal {
        names: &["decryptAES"],
        reason: "it serves only encryptAES, which is different at every rendering and refused; \
                 keep what is confidential in a Secret, and read it from there",
    },
];

/// In templates that are rendered again and again and have nothing to remember the first result by.
const RANDOM: Refusal = Refusal {
    names: &["randAlphaNum", "randAlpha", "randNumeric", "randAscii", "randBytes", "randInt", "shuffle", "uuidv4"],
    reason: "its result is different at every rendering, so that this rule would never come to rest; \
             make the text of what is known about the object, for example with sha3short",
};

/// Why no template may call a function.
pub(crate) fn always(name: &str) -> Option<&'static str> {
    ALWAYS.iter().find(|refusal| refusal.names.contains(&name)).map(|refusal| refusal.reason)
}

/// Why a template that has to give the same each time may not call a function.
pub(crate) fn in_steady(name: &str) -> Option<&'static str> {
    RANDOM.names.contains(&name).then_some(RANDOM.reason)
}

/// Every function that no template may call, and why.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    ALWAYS.iter().flat_map(|refusal| refusal.names.iter().map(|name| (*name, refusal.reason)))
}

#[cfg(test)]
mod tests {
    use super::super::random;
    use super::RANDOM;

    #[test]
    fn every_random_function_is_refused_where_the_same_is_needed_each_time() {
        let mut random: Vec<&str> = random::FUNCTIONS.iter().map(|function| function.name).collect();
        let mut refused = RANDOM.names.to_vec();
        random.sort_unstable();
        refused.sort_unstable();
        assert_eq!(refused, random);
    }
}
