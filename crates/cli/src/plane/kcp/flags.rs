//! kcp's command line, read as kcp reads it.

use std::net::{IpAddr, Ipv4Addr};

use super::ignored;

/// What is wrong with the command line, in kcp's words.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FlagError {
    /// kcp has no such flag.
    #[error("unknown flag: --{0}")]
    Unknown(String),
    /// kcp has no such flag of one letter.
    #[error("unknown shorthand flag: {letter:?} in {argument}")]
    UnknownLetter {
        /// The letter.
        letter: char,
        /// Where it stands.
        argument: String,
    },
    /// The flag is the last argument and needs a value.
    #[error("flag needs an argument: {0}")]
    NoValue(String),
    /// The value does not fit.
    #[error("invalid argument {value:?} for {flag:?} flag: {why}")]
    Invalid {
        /// The flag with its dashes.
        flag: String,
        /// What was given.
        value: String,
        /// What is wrong with it.
        why: String,
    },
    /// The first word is not `start`.
    #[error("unknown command {0:?} for \"kcp\"")]
    UnknownCommand(String),
    /// Values that do not fit together.
    #[error("{}", several(.0))]
    Together(Vec<String>),
}

fn several(problems: &[String]) -> String {
    match problems {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

/// Objects and users that kcp starts with, if wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batteries {
    /// Write `admin.kubeconfig`.
    pub admin: bool,
    /// With a user without rights in it.
    pub user: bool,
}

/// What kcp is told, as far as it matters to a plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Only show help.
    pub help: bool,
    /// Folder for everything; empty means no files.
    pub root_directory: String,
    /// Where to listen.
    pub bind_address: IpAddr,
    /// On which port.
    pub secure_port: i64,
    /// On any free port.
    pub free_port: bool,
    /// Users with tokens.
    pub token_auth_file: String,
    /// Authorities of client certificates.
    pub client_ca_file: String,
    /// Folder of the server's certificate; by default the root directory.
    pub cert_dir: Option<String>,
    /// The server's certificate.
    pub tls_cert_file: String,
    /// Its key.
    pub tls_private_key_file: String,
    /// Where the administrator's kubeconfig is written.
    pub kubeconfig_path: Option<String>,
    /// Where the hash of the administrator's token is kept.
    pub admin_token_path: Option<String>,
    /// Where the data is kept.
    pub data_directory: Option<String>,
    /// The address of the shard.
    pub shard_base_url: String,
    /// The address of workspaces.
    pub shard_external_url: String,
    /// The address of virtual workspaces.
    pub shard_virtual_workspace_url: String,
    /// How much to log.
    pub verbosity: u32,
    /// Flags that were given and do nothing, with the reason.
    pub ignored: Vec<(String, &'static str)>,
    shard_name: String,
    cache_kubeconfig: String,
    logical_cluster_admin_kubeconfig: String,
    batteries: Option<Vec<String>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            help: false,
            root_directory: ".kcp".to_owned(),
            bind_address: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            secure_port: 6443,
            free_port: false,
            token_auth_file: String::new(),
            client_ca_file: String::new(),
            cert_dir: None,
            tls_cert_file: String::new(),
            tls_private_key_file: String::new(),
            kubeconfig_path: None,
            admin_token_path: None,
            data_directory: None,
            shard_base_url: String::new(),
            shard_external_url: String::new(),
            shard_virtual_workspace_url: String::new(),
            verbosity: 2,
            ignored: Vec::new(),
            shard_name: "root".to_owned(),
            cache_kubeconfig: String::new(),
            logical_cluster_admin_kubeconfig: String::new(),
            batteries: None,
        }
    }
}

impl Options {
    /// Reads the arguments; the word `start` may come first.
    pub fn parse(arguments: &[String]) -> Result<Self, FlagError> {
        let mut options = Self::default();
        let mut rest = arguments.iter();
        let mut first = true;
        while let Some(argument) = rest.next() {
            if argument == "--" {
                break;
            }
            if let Some(long) = argument.strip_prefix("--") {
                let (name, value) = match long.split_once('=') {
                    Some((name, value)) => (name, Some(value.to_owned())),
                    None => (long, None),
                };
                let value = match value {
                    None if !takes_none(name)? => {
                        let next = rest.next().ok_or_else(|| FlagError::NoValue(argument.clone()))?;
                        Some(next.clone())
                    }
                    other => other,
                };
                options.set(name, value.as_deref())?;
            } else if let Some(letters) = argument.strip_prefix('-').filter(|letters| !letters.is_empty()) {
                options.short(argument, letters, &mut rest)?;
            } else if first {
                first = false;
                if argument != "start" {
                    return Err(FlagError::UnknownCommand(argument.clone()));
                }
            }
        }
        Ok(options)
    }

    /// `-v4`, `-v=4`, `-v 4` and `-h`.
    fn short<'a>(
        &mut self,
        argument: &str,
        letters: &str,
        rest: &mut impl Iterator<Item = &'a String>,
    ) -> Result<(), FlagError> {
        if letters.starts_with('h') {
            self.help = true;
            return Ok(());
        }
        let Some(value) = letters.strip_prefix('v') else {
            let letter = letters.chars().next().unwrap_or_default();
            return Err(FlagError::UnknownLetter { letter, argument: argument.to_owned() });
        };
        let value = match value.strip_prefix('=').unwrap_or(value) {
            "" => rest.next().ok_or_else(|| FlagError::NoValue("'v' in -v".to_owned()))?,
            value => value,
        };
        self.set("v", Some(value))
    }

    fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), FlagError> {
        let text = value.unwrap_or_default().to_owned();
        match name {
            "root-directory" => self.root_directory = text,
            "token-auth-file" => self.token_auth_file = text,
            "client-ca-file" => self.client_ca_file = text,
            "tls-cert-file" => self.tls_cert_file = text,
            "tls-private-key-file" => self.tls_private_key_file = text,
            "shard-base-url" => self.shard_base_url = text,
            "shard-external-url" => self.shard_external_url = text,
            "shard-virtual-workspace-url" => self.shard_virtual_workspace_url = text,
            "shard-name" => self.shard_name = text,
            "cache-kubeconfig" => self.cache_kubeconfig = text,
            "logical-cluster-admin-kubeconfig" => self.logical_cluster_admin_kubeconfig = text,
            "cert-dir" => self.cert_dir = Some(text),
            "kubeconfig-path" => self.kubeconfig_path = Some(text),
            "authentication-admin-token-path" => self.admin_token_path = Some(text),
            "embedded-etcd-directory" => self.data_directory = Some(text),
            "help" => self.help = switch(name, value)?,
            "experimental-bind-free-port" => self.free_port = switch(name, value)?,
            "secure-port" => {
                let wrong = |why| invalid("--secure-port", &text, format!("strconv.ParseInt: {why}"));
                self.secure_port = number(&text).map_err(wrong)?;
            }
            "v" => {
                let wrong = |why| invalid("-v, --v", &text, format!("strconv.ParseUint: {why}"));
                self.verbosity = number(&text).map_err(wrong)?;
            }
            "bind-address" => {
                let wrong = |_| invalid("--bind-address", &text, format!("failed to parse IP: {text:?}"));
                self.bind_address = text.trim().parse().map_err(wrong)?;
            }
            "batteries-included" => {
                let words = text.split(',').filter(|word| !word.is_empty()).map(str::to_owned);
                self.batteries.get_or_insert_default().extend(words);
            }
            "feature-gates" => {
                check_gates(&text)?;
                self.ignored.push((name.to_owned(), "features are what they are by default"));
            }
            _ => self.ignore(name, value)?,
        }
        Ok(())
    }

    fn ignore(&mut self, name: &str, value: Option<&str>) -> Result<(), FlagError> {
        let (reason, is_switch) = ignored::find(name).ok_or_else(|| FlagError::Unknown(name.to_owned()))?;
        if is_switch {
            switch(name, value)?;
        }
        self.ignored.push((name.to_owned(), reason));
        Ok(())
    }

    /// Checks what belongs together, and says which batteries are included.
    pub fn validate(&self) -> Result<Batteries, FlagError> {
        let mut problems = Vec::new();
        if self.free_port {
            if self.secure_port != 0 {
                problems.push("--secure-port=0 required if --experimental-bind-free-port is set".to_owned());
            }
        } else if !(1..=65535).contains(&self.secure_port) {
            problems.push(format!(
                "--secure-port {} must be between 1 and 65535, inclusive. It cannot be turned off with 0",
                self.secure_port
            ));
        }
        if self.shard_name != "root" {
            problems.push(if self.cache_kubeconfig.is_empty() {
                "--cache-kubeconfig is required for non-root shards".to_owned()
            } else {
                "a plane started like kcp is the root shard and the only one; `carrick plane --shards` starts several"
                    .to_owned()
            });
        }
        let batteries = self.batteries(&mut problems);
        if !self.logical_cluster_admin_kubeconfig.is_empty() && self.shard_external_url.is_empty() {
            problems.push("--shard-external-url is required if --logical-cluster-admin-kubeconfig is set".to_owned());
        }
        if problems.is_empty() { Ok(batteries) } else { Err(FlagError::Together(problems)) }
    }

    /// The default ones, with those prefixed with `+` and without those prefixed with `-`; or exactly the given ones.
    fn batteries(&self, problems: &mut Vec<String>) -> Batteries {
        const ALL: [&str; 4] = ["workspace-types", "admin", "user", "metrics-viewer"];
        let mut set = vec!["workspace-types", "admin"];
        if let Some(given) = &self.batteries {
            let relative = given.iter().any(|word| word.starts_with(['+', '-']));
            if !relative {
                set.clear();
            }
            for word in given {
                let name = word.trim_start_matches(['+', '-']);
                // kcp, too, forgets a word without a sign among words with one.
                match (relative, word.chars().next()) {
                    (true, Some('-')) => set.retain(|known| *known != name),
                    (true, Some('+')) | (false, _) => set.push(name),
                    _ => {}
                }
            }
            let unknown = set.iter().filter(|name| !ALL.contains(name));
            problems.extend(unknown.map(|name| format!("unknown battery: {name}")));
        }
        let (admin, user) = (set.contains(&"admin"), set.contains(&"user"));
        if user && !admin {
            problems.push("battery user enabled which requires admin as well".to_owned());
        }
        Batteries { admin, user }
    }
}

/// Whether a flag may stand without a value.
fn takes_none(name: &str) -> Result<bool, FlagError> {
    const VALUES: [&str; 20] = [
        "authentication-admin-token-path",
        "batteries-included",
        "bind-address",
        "cache-kubeconfig",
        "cert-dir",
        "client-ca-file",
        "embedded-etcd-directory",
        "feature-gates",
        "kubeconfig-path",
        "logical-cluster-admin-kubeconfig",
        "root-directory",
        "secure-port",
        "shard-base-url",
        "shard-external-url",
        "shard-name",
        "shard-virtual-workspace-url",
        "tls-cert-file",
        "tls-private-key-file",
        "token-auth-file",
        "v",
    ];
    if matches!(name, "help" | "experimental-bind-free-port") {
        return Ok(true);
    }
    if VALUES.contains(&name) {
        return Ok(false);
    }
    ignored::find(name).map(|(_, switch)| switch).ok_or_else(|| FlagError::Unknown(name.to_owned()))
}

fn invalid(flag: &str, value: &str, why: String) -> FlagError {
    FlagError::Invalid { flag: flag.to_owned(), value: value.to_owned(), why }
}

/// A switch without a value is on.
fn switch(name: &str, value: Option<&str>) -> Result<bool, FlagError> {
    let Some(value) = value else { return Ok(true) };
    boolean(value).ok_or_else(|| {
        invalid(&format!("--{name}"), value, format!("strconv.ParseBool: parsing {value:?}: invalid syntax"))
    })
}

/// Go's words for true and false.
fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// A number, or what Go says about it.
fn number<T: std::str::FromStr<Err = std::num::ParseIntError>>(text: &str) -> Result<T, String> {
    use std::num::IntErrorKind::{NegOverflow, PosOverflow};
    text.parse().map_err(|error: std::num::ParseIntError| match error.kind() {
        PosOverflow | NegOverflow => format!("parsing {text:?}: value out of range"),
        _ => format!("parsing {text:?}: invalid syntax"),
    })
}

/// `Name=true,Other=false`; which features exist is not checked.
fn check_gates(text: &str) -> Result<(), FlagError> {
    for gate in text.split(',').filter(|gate| !gate.is_empty()) {
        let Some((name, value)) = gate.split_once('=') else {
            return Err(invalid("--feature-gates", text, format!("missing bool value for {gate}")));
        };
        if boolean(value.trim()).is_none() {
            let name = name.trim();
            let why = format!("strconv.ParseBool: parsing {value:?}: invalid syntax");
            return Err(invalid("--feature-gates", text, format!("invalid value of {name}={value}, err: {why}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, FlagError> {
        Options::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn the_flags_of_known_scripts_are_taken() {
        // kcp's own tests.
        let options = parse(
            "start --root-directory /d --secure-port=1 --embedded-etcd-client-port=2 --embedded-etcd-peer-port=3 \
             --embedded-etcd-wal-size-bytes=5000 --kubeconfig-path=/d/k --audit-log-path /a --v=4 \
             --feature-gates=WorkspaceMounts=true,CacheAPIs=true --bind-address=127.0.0.1 --audit-policy-file p \
             --client-ca-file c --token-auth-file t",
        );
        let options = options.unwrap();
        assert_eq!((options.root_directory.as_str(), options.secure_port, options.verbosity), ("/d", 1, 4));
        assert_eq!((options.client_ca_file.as_str(), options.token_auth_file.as_str()), ("c", "t"));
        assert_eq!(options.bind_address, IpAddr::V4(Ipv4Addr::LOCALHOST));
        assert_eq!(options.kubeconfig_path.as_deref(), Some("/d/k"));
        let ignored: Vec<&str> = options.ignored.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            ignored,
            [
                "embedded-etcd-client-port",
                "embedded-etcd-peer-port",
                "embedded-etcd-wal-size-bytes",
                "audit-log-path",
                "feature-gates",
                "audit-policy-file"
            ]
        );
        // The agent's test script, and the chart's switches.
        assert_eq!(parse("start -v4 --token-auth-file t --root-directory d").unwrap().verbosity, 4);
        assert_eq!(parse("-v 6").unwrap().verbosity, 6);
        let chart = "--root-directory= --audit-log-compress --enable-leader-election --enable-home-workspaces=true";
        assert_eq!(parse(chart).unwrap().root_directory, "");
    }

    #[test]
    fn mistakes_are_reported_as_kcp_reports_them() {
        for (line, wanted) in [
            ("--nope", "unknown flag: --nope"),
            ("-x", "unknown shorthand flag: 'x' in -x"),
            ("--root-directory", "flag needs an argument: --root-directory"),
            ("--profiler-address", "flag needs an argument: --profiler-address"),
            ("foo", "unknown command \"foo\" for \"kcp\""),
            (
                "--secure-port=abc",
                "invalid argument \"abc\" for \"--secure-port\" flag: strconv.ParseInt: parsing \"abc\": invalid syntax",
            ),
            ("--v=x", "invalid argument \"x\" for \"-v, --v\" flag: strconv.ParseUint: parsing \"x\": invalid syntax"),
            ("--bind-address=foo", "invalid argument \"foo\" for \"--bind-address\" flag: failed to parse IP: \"foo\""),
            (
                "--feature-gates=Foo",
                "invalid argument \"Foo\" for \"--feature-gates\" flag: missing bool value for Foo",
            ),
            (
                "--run-controllers=maybe",
                "invalid argument \"maybe\" for \"--run-controllers\" flag: strconv.ParseBool: parsing \"maybe\": invalid syntax",
            ),
        ] {
            assert_eq!(parse(line).unwrap_err().to_string(), wanted, "{line}");
        }
        for (line, wanted) in [
            (
                "--secure-port=0",
                "--secure-port 0 must be between 1 and 65535, inclusive. It cannot be turned off with 0",
            ),
            ("--shard-name=x", "--cache-kubeconfig is required for non-root shards"),
            ("--batteries-included=foo", "unknown battery: foo"),
            ("--batteries-included=user", "battery user enabled which requires admin as well"),
            (
                "--experimental-bind-free-port --batteries-included=foo",
                "[--secure-port=0 required if --experimental-bind-free-port is set, unknown battery: foo]",
            ),
        ] {
            assert_eq!(parse(line).unwrap().validate().unwrap_err().to_string(), wanted, "{line}");
        }
    }

    #[test]
    fn batteries_are_added_to_the_default_ones_or_replace_them() {
        for (line, admin, user) in [
            ("", true, false),
            ("--batteries-included=+user", true, true),
            ("--batteries-included=+user,admin", true, true),
            ("--batteries-included=-admin", false, false),
            ("--batteries-included=workspace-types", false, false),
            ("--batteries-included=admin --batteries-included=user", true, true),
        ] {
            assert_eq!(parse(line).unwrap().validate(), Ok(Batteries { admin, user }), "{line}");
        }
    }
}
