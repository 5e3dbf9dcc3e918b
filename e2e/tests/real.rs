//! Every scenario on real kcp, kube-apiserver and etcd: `e2e/real`.

fn main() -> std::process::ExitCode {
    carrick_e2e::harness::real()
}
