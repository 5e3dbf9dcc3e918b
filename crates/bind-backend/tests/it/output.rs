//! What the program prints.

use std::process::Command;

#[test]
fn no_name_forges_a_line_of_an_error() {
    let folder = std::env::temp_dir().join(format!("kube-bind-backend-output-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("kubeconfig\nerror: forged\u{1b}[2J\u{202e}");
    std::fs::write(&file, "{apiVersion: v1, kind: Config, current-context: gone}").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_kube-bind-backend"))
        .arg("--kubeconfig")
        .arg(&file)
        .arg("roles")
        .env_remove("KUBECONFIG")
        .output()
        .unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && printed.contains("forged"), "it quotes the name: {printed:?}");
    assert_eq!(printed.lines().count(), 1, "{printed:?}");
    assert!(!printed.trim_end().chars().any(|c| c.is_control() || c == '\u{202e}'), "{printed:?}");
    assert!(output.stdout.is_empty());
}
